#include "actors/protocol/decision.hpp"

#include <cmath>

namespace troupe::actors::protocol {
namespace {

// As the common clip: norm + this in the denominator, so that a zero gradient is harmless.
constexpr double clip_guard = 1e-6;

}  // namespace

decision_record decide(std::uint64_t step, std::uint64_t updates_before, const step_votes& votes,
                       const step_settings& settings) {
  decision_record record;
  record.step = step;
  record.updates = updates_before;
  record.lr = settings.lr;
  record.tokens = votes.tokens;
  if (votes.tokens == 0) {
    record.skip = true;
    record.why_skipped = "no target token counts in this step";
    return record;
  }
  record.loss = votes.loss_sum / votes.tokens;
  record.grad_norm = std::sqrt(votes.squares) / votes.tokens;
  const bool finite = std::isfinite(votes.squares) && std::isfinite(votes.loss_sum);
  if (!finite && settings.skip_nonfinite) {
    record.skip = true;
    record.why_skipped = "the gradient is not finite";
    return record;
  }
  double clip = 1.0;
  if (settings.max_norm > 0 && record.grad_norm + clip_guard > settings.max_norm) {
    clip = settings.max_norm / (record.grad_norm + clip_guard);
  }
  record.scale = static_cast<float>(clip / votes.tokens);
  record.updates = updates_before + 1;
  return record;
}

}  // namespace troupe::actors::protocol
