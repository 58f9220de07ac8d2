// One worker's training step from tokens to the next version of the parameters: compute, sum in the
// tree, vote, decide, apply. Knows no file, no clock and no terminal. It is shaped as the world of
// many workers needs it: the decision is taken by the pure function of actors/protocol, and blocks
// are updated one by one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "actors/protocol/decision.hpp"
#include "compute/executor.hpp"
#include "model/network.hpp"
#include "model/optimizer.hpp"
#include "model/schedule.hpp"
#include "model/training_pass.hpp"

namespace troupe::actors {

struct trainer_settings {
  model::batch_shape batch;
  std::size_t seq_len = 0;
  std::uint64_t seed = 0;
  double max_norm = 0;
  bool skip_nonfinite = true;
  model::schedule schedule;
  model::adamw_settings adamw;
};

// Where the time of a step went [s].
struct step_seconds {
  double compute = 0, reduce = 0, apply = 0;
};

class trainer {
 public:
  trainer(compute::executor& device, const model::description& d, const trainer_settings& settings);

  const model::network& network() const { return network_; }
  const model::model_layout& layout() const { return network_.layout(); }
  model::model_state& state() { return state_; }
  const trainer_settings& settings() const { return settings_; }

  // Parameters from the seed, moments zero.
  void initialize();

  // Takes version step - 1 to version step. tokens, targets: [global batch, T]. `give_up` is asked
  // between the jobs of the computation; once it says yes, nothing has changed and nothing is
  // returned.
  std::optional<protocol::decision_record> step(std::uint64_t step, std::uint64_t updates_before,
                                                std::span<const std::int32_t> tokens,
                                                std::span<const std::int32_t> targets,
                                                const std::function<bool()>& give_up = {});
  const step_seconds& last_times() const { return times_; }

  // The gradient sums of the last step: for tests against other implementations.
  compute::view gradient(std::size_t layer) { return pass_.gradient(layer); }

  std::size_t activation_bytes() const { return pass_.activation_bytes(); }
  std::size_t gradient_bytes() const { return pass_.gradient_bytes(); }

 private:
  double gradient_squares();
  void apply(const protocol::decision_record& record);

  trainer_settings settings_;
  model::network network_;
  model::training_pass pass_;
  model::model_state state_;
  compute::buffer squares_;  // float64, one a block of the largest layer
  step_seconds times_;
};

}  // namespace troupe::actors
