// report.json: the summary of a run, refreshed at every checkpoint and written at its end.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/run_history.hpp"
#include "config/base/json.hpp"

namespace troupe::actors {

struct report {
  std::string version;
  std::optional<int> exit;  // unset while the run goes on
  std::uint64_t steps = 0;  // committed
  double final_loss = 0;
  std::optional<double> val_loss;
  std::string weights_hash, state_hash;  // 32 hex digits; of the last save or the end
  double tokens_per_second = 0;          // committed tokens over the time in steps
  std::optional<double> utilization;     // model FLOP/s over peak
  double flops_per_token = 0;
  double peak_flops = 0;            // FLOP/s
  std::string peak_source;          // in words
  double goodput = 0;               // committed tokens over all the time of this start
  double effective_time_ratio = 0;  // time in committed steps over all the time
  std::uint64_t skipped_steps = 0;
  std::uint64_t committed_steps_lost = 0;  // that a plan began before
  // Computed again: because they came after the newest checkpoint, or because they were under way
  // when a member was lost.
  std::uint64_t steps_redone = 0;
  std::uint64_t generations = 1;               // plans of this start
  std::vector<recovery> recoveries;            // of this start
  std::uint64_t world_min = 1, world_max = 1;  // members that computed
  std::uint64_t bytes_sent = 0;                // payload and framing, all members
  std::map<std::string, std::uint64_t> peak_memory_bytes, peak_activation_bytes;  // by member
  double seconds = 0;
};

std::string to_json(const report& r);
// A recovery's fields, as they stand in report.json and in the event "recovered".
void put_fields(json_writer& to, const recovery& r);

}  // namespace troupe::actors
