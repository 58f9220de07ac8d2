// May a run go on from this checkpoint with the same bits? Only what decides the bits has to be
// equal; the length of the run may grow where the rate's curve does not depend on it.
#pragma once

#include <string>

#include "config/fingerprint.hpp"
#include "model/checkpoint/manifest.hpp"

namespace troupe::actors {

struct run_identity {
  std::string run_id;
  config::fingerprint config;
  std::string data_digest;
  std::string numerics_class;
  std::uint64_t numerics_version = 0;
};

// Exit code 73 for another run's checkpoint, 78 for anything else that differs, naming it.
status check_identity(const checkpoint::facts& found, const run_identity& now);

}  // namespace troupe::actors
