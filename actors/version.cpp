#include "actors/version.hpp"

#include <fmt/format.h>

#include "compute/cpu/kernels.hpp"
#include "compute/executor.hpp"

namespace troupe::actors {

std::string version_number() { return TROUPE_VERSION; }
std::string version_commit() { return TROUPE_COMMIT; }
std::string version_text() { return fmt::format("{} ({})", TROUPE_VERSION, TROUPE_COMMIT); }

std::string version_details() {
  return fmt::format(
      "troupe {}\ncommit    {}\ncompiler  {} {}\nbackends  cpu (numerics class cpu-chain, version "
      "{}, widest kernels "
      "here: {})\n",
      TROUPE_VERSION, TROUPE_COMMIT, "g++", __VERSION__, compute::numerics_version,
      compute::cpu::fma_instruction_set());
}

}  // namespace troupe::actors
