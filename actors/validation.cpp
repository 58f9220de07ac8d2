#include "actors/validation.hpp"

#include <algorithm>
#include <vector>

#include "config/base/tree.hpp"

namespace troupe::actors {

result<validation_result> validate(model::evaluation& evaluation, const model::model_state& state,
                                   std::size_t seq_len, std::uint64_t windows, std::size_t shares,
                                   const window_source& source) {
  ensure(windows >= 1 && shares >= 1, "a validation needs at least one window and one share");
  const std::size_t at_once = std::max<std::size_t>(1, evaluation.rows() / seq_len);
  std::vector<std::int32_t> tokens(at_once * seq_len), targets(at_once * seq_len);
  std::vector<float> losses(at_once * seq_len);
  std::vector<double> sums(shares, 0.0), counts(shares, 0.0);
  for (std::uint64_t first = 0; first < windows; first += at_once) {
    const std::size_t count = std::min<std::uint64_t>(at_once, windows - first);
    for (std::size_t i = 0; i < count; ++i) {
      status filled = source(first + i, std::span(tokens).subspan(i * seq_len, seq_len),
                             std::span(targets).subspan(i * seq_len, seq_len));
      if (!filled) return filled.failure();
    }
    const std::size_t rows = count * seq_len;
    evaluation.losses(state, count, seq_len, std::span(tokens).first(rows),
                      std::span(targets).first(rows), std::span(losses).first(rows));
    for (std::size_t i = 0; i < count; ++i) {
      // Window w belongs to share floor(w shares / windows): contiguous and as even as can be.
      const auto share = static_cast<std::size_t>((first + i) * shares / windows);
      for (std::size_t t = i * seq_len; t < (i + 1) * seq_len; ++t) {
        sums[share] += static_cast<double>(losses[t]);
        counts[share] += targets[t] >= 0 ? 1.0 : 0.0;
      }
    }
  }
  const double counted = tree_sum(counts);
  return validation_result{counted > 0 ? tree_sum(sums) / counted : 0.0, counted};
}

}  // namespace troupe::actors
