#include "actors/validation.hpp"

#include <algorithm>
#include <vector>

#include "config/base/tree.hpp"

namespace troupe::actors {

result<std::vector<leaf_loss>> share_losses(model::evaluation& evaluation,
                                            const model::model_state& state, std::size_t seq_len,
                                            const validation_cut& cut, tree_node shares,
                                            const window_source& source) {
  ensure(cut.windows >= 1 && cut.shares >= 1,
         "a validation needs at least one window and one share");
  const std::size_t at_once = std::max<std::size_t>(1, evaluation.rows() / seq_len);
  std::vector<std::int32_t> tokens(at_once * seq_len), targets(at_once * seq_len);
  std::vector<float> losses(at_once * seq_len);
  std::vector<leaf_loss> all;
  for (std::uint32_t i = 0; i < shares.leaves; ++i) all.push_back({shares.first + i, 0, 0});
  const std::uint64_t end = cut.first_window(std::uint64_t{shares.first} + shares.leaves);
  for (std::uint64_t first = cut.first_window(shares.first); first < end; first += at_once) {
    const std::size_t count = std::min<std::uint64_t>(at_once, end - first);
    for (std::size_t i = 0; i < count; ++i) {
      status filled = source(first + i, std::span(tokens).subspan(i * seq_len, seq_len),
                             std::span(targets).subspan(i * seq_len, seq_len));
      if (!filled) return filled.failure();
    }
    const std::size_t rows = count * seq_len;
    evaluation.losses(state, count, seq_len, std::span(tokens).first(rows),
                      std::span(targets).first(rows), std::span(losses).first(rows));
    for (std::size_t i = 0; i < count; ++i) {
      leaf_loss& share = all[(first + i) * cut.shares / cut.windows - shares.first];
      for (std::size_t t = i * seq_len; t < (i + 1) * seq_len; ++t) {
        share.loss_sum += static_cast<double>(losses[t]);
        share.tokens += targets[t] >= 0 ? 1.0 : 0.0;
      }
    }
  }
  return all;
}

validation_result add_shares(std::span<const leaf_loss> shares) {
  std::vector<double> sums, counts;
  for (const leaf_loss& share : shares) {
    sums.push_back(share.loss_sum);
    counts.push_back(share.tokens);
  }
  const double counted = tree_sum(counts);
  return {counted > 0 ? tree_sum(sums) / counted : 0.0, counted};
}

result<validation_result> validate(model::evaluation& evaluation, const model::model_state& state,
                                   std::size_t seq_len, std::uint64_t windows, std::size_t shares,
                                   const window_source& source) {
  const result<std::vector<leaf_loss>> all =
      share_losses(evaluation, state, seq_len, {windows, shares},
                   {0, static_cast<std::uint32_t>(shares)}, source);
  if (!all) return all.failure();
  return add_shares(*all);
}

}  // namespace troupe::actors
