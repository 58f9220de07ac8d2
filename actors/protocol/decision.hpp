// What the coordinator decides once a step's votes cover every block: the decision record. A pure
// function of (votes, settings in force), so that a step that is decided but unknown to the next
// plan can be computed again and reaches the same record.
//
// A skipped step changes no parameter and no moment; it still counts as a step and uses its data,
// so that data order and learning rate never depend on what was skipped.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "config/base/ids.hpp"

namespace troupe::actors::protocol {

// A whole step's votes, already summed in the fixed trees.
struct step_votes {
  double loss_sum = 0;  // nats, over counted target tokens
  double tokens = 0;    // counted target tokens
  double squares = 0;   // sum of squares of the gradient sums; not finite if any gradient is not
};

// What is in force for this step.
struct step_settings {
  double max_norm = 0;  // 0: no clipping
  bool skip_nonfinite = true;
  float lr = 0;  // rate of this step
};

struct decision_record {
  std::uint64_t step = 0;     // 1-based: takes version step - 1 to step
  std::uint64_t updates = 0;  // updates made up to and including this step
  bool skip = false;          // the parameters stay as they are
  std::string why_skipped;    // in words; empty if not skipped
  float scale = 0;            // clip factor / token count; 0 if skipped
  float lr = 0;
  double loss = 0;       // mean over counted target tokens
  double grad_norm = 0;  // of the mean gradient, before clipping
  double tokens = 0;
  friend bool operator==(const decision_record&, const decision_record&) = default;
};

// Coordinator to all: the decision. Seeing it, in whatever message, is what makes a holder apply.
// Members keep it until its line is known to be written, and plans carry it, so whoever coordinates
// next knows all that the one before knew.
struct record_notice {
  decision_record record;
  bool last = false;                   // no step follows in this plan
  bool validate = false;               // measure validation at this version
  std::uint64_t lines = 0;             // steps whose lines are known to be written
  std::uint64_t total_tokens = 0;      // counted target tokens of all steps up to this one
  std::uint64_t skipped_in_a_row = 0;  // up to this step
  generation plan;                     // that decided it
  std::uint32_t world = 0;             // members of it that computed
  friend bool operator==(const record_notice&, const record_notice&) = default;
};

decision_record decide(std::uint64_t step, std::uint64_t updates_before, const step_votes& votes,
                       const step_settings& settings);

}  // namespace troupe::actors::protocol
