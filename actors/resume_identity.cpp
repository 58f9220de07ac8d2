#include "actors/resume_identity.hpp"

#include <fmt/format.h>

namespace troupe::actors {

status check_identity(const checkpoint::facts& found, const run_identity& now) {
  if (found.run_id != now.run_id) {
    return error{exit_code::cannot_use,
                 fmt::format("the checkpoint of step {} belongs to run {}, this is run {}",
                             found.step, found.run_id, now.run_id)};
  }
  config::fingerprint before;
  for (const auto& [key, value] : found.config) before.push_back({key, value});
  const std::vector<config::difference> changed = config::differences(before, now.config);
  if (!changed.empty()) {
    return error{
        exit_code::bad_config,
        fmt::format("this run cannot go on from step {} with other settings:\n{}\ngo back to "
                    "those, or start anew with --run-dir",
                    found.step, config::describe(changed))};
  }
  if (found.data_digest != now.data_digest) {
    return error{exit_code::bad_config,
                 fmt::format("the training data changed since step {}: digest {} before, {} now; "
                             "restore them, or start anew with --run-dir",
                             found.step, found.data_digest, now.data_digest)};
  }
  if (found.numerics_class != now.numerics_class ||
      found.numerics_version != now.numerics_version) {
    return error{
        exit_code::bad_config,
        fmt::format("the checkpoint of step {} was computed in numerics class {} version {}, "
                    "this program computes in {} version {}: the bits would change",
                    found.step, found.numerics_class, found.numerics_version, now.numerics_class,
                    now.numerics_version)};
  }
  return done{};
}

}  // namespace troupe::actors
