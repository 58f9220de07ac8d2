#include "actors/chaos/random_mix.hpp"

#include <iterator>

#include "config/base/mixing.hpp"

namespace troupe::actors::chaos {
namespace {

// Shares in percent.
const std::map<fault_kind, double>& field() {
  static const std::map<fault_kind, double> shares = {
      {fault_kind::kill, 49.0},       // device errors, out of memory, kernel, container
      {fault_kind::throws, 17.3},     // code and data
      {fault_kind::cpu_steal, 11.8},  // overload, slow machines
      {fault_kind::hang, 9.9},        // hangs
      {fault_kind::stop, 4.0},        // storage that does not answer
      {fault_kind::cut, 2.9},         // fabric
      {fault_kind::nan, 0.3},         // not a number
  };
  return shares;
}

}  // namespace

std::map<fault_kind, double> weights_of(const random_faults& random, run_mode mode,
                                        std::uint64_t seed) {
  std::map<fault_kind, double> weights = random.kinds;
  if (weights.empty()) {
    for (const kind_row& row : kind_table()) {
      if (cannot_do(mode, row.kind)) continue;
      const auto share = field().find(row.kind);
      double weight = random.mix != "field" ? 1 : share == field().end() ? 0 : share->second;
      // Who is drained does not come back, so many of them would leave nobody to strike.
      if (row.kind == fault_kind::drain) weight = 0;
      if (weight > 0) weights[row.kind] = weight;
    }
  }
  if (!random.swarm) return weights;
  // Each with even chances; one always stays.
  std::map<fault_kind, double> some;
  for (const auto& [kind, weight] : weights) {
    if (mixed(mixed(seed, "swarm"), name_of(kind)) % 2 == 0) some[kind] = weight;
  }
  if (some.empty()) {
    auto one = weights.begin();
    std::advance(one, below(mixed(mixed(seed, "swarm"), "one"), weights.size()));
    some.insert(*one);
  }
  return some;
}

fault_kind drawn(const std::map<fault_kind, double>& weights, double at) {
  ensure(!weights.empty(), "a fault was drawn from no kind");
  double sum = 0;
  for (const auto& [kind, weight] : weights) sum += weight;
  double left = at * sum;
  for (const auto& [kind, weight] : weights) {
    if (left < weight) return kind;
    left -= weight;
  }
  return weights.rbegin()->first;
}

}  // namespace troupe::actors::chaos
