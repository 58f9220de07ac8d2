// The toy model trained straight down, by nobody but one loop: what every simulated world has to
// equal, bit by bit. It shares the arithmetic with toy_computation and nothing else.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "actors/sim/toy_model.hpp"

namespace troupe::actors::sim {

struct reference_settings {
  double max_norm = 0;
  bool skip_nonfinite = true;
  std::function<float(std::uint64_t)> rate;
};

class toy_reference {
 public:
  toy_reference(const toy_shape& toy, const reference_settings& settings, std::uint64_t steps);

  std::uint64_t steps() const { return records_.size(); }
  const toy_state& state(std::uint64_t version, block_id block) const {
    return versions_.at(version).at(block);
  }
  // Of step n, from 1.
  const protocol::decision_record& record(std::uint64_t step) const {
    return records_.at(step - 1);
  }
  const hash128& sum_hash(std::uint64_t step, block_id block) const {
    return sums_.at(step - 1).at(block);
  }

 private:
  void take_step(const reference_settings& settings);

  toy_shape toy_;
  std::vector<std::map<block_id, toy_state>> versions_;  // by version, from 0
  std::vector<protocol::decision_record> records_;
  std::vector<std::map<block_id, hash128>> sums_;
};

}  // namespace troupe::actors::sim
