#include "model/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "compute/math.hpp"
#include "compute/random.hpp"
#include "config/base/error.hpp"

namespace troupe::model {

std::int32_t draw_token(std::span<const float> logits, const sampling_settings& settings,
                        std::uint64_t sample, std::uint64_t position) {
  ensure(!logits.empty(), "a token cannot be drawn from no logits");
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  // By falling logit, ties by rising id: one order, whatever sort does with equals.
  std::ranges::sort(order, [&](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) || (std::isnan(y) && a < b);
    return x != y ? x > y : a < b;
  });
  if (settings.temperature <= 0) return order.front();
  if (settings.top_k > 0 && settings.top_k < order.size()) order.resize(settings.top_k);

  const auto at = [&](std::int32_t id) {
    return static_cast<double>(logits[static_cast<std::size_t>(id)]);
  };
  std::vector<double> weights;
  double total = 0;
  for (std::int32_t id : order) {
    weights.push_back(compute::math::exp((at(id) - at(order.front())) / settings.temperature));
    total += weights.back();
  }
  const compute::random_key key{.seed = settings.seed,
                                .purpose = compute::random_purpose::sampling,
                                .step = sample,
                                .sequence = position};
  const double wanted = static_cast<double>(compute::uniform(compute::random_word(key, 0))) * total;
  double sum = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sum += weights[i];
    if (wanted < sum) return order[i];
  }
  return order.back();
}

}  // namespace troupe::model
