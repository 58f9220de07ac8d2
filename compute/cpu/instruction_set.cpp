#include "compute/cpu/instruction_set.hpp"

#include <atomic>

#include "compute/cpu/kernels.hpp"
#include "config/base/error.hpp"

namespace troupe::compute::cpu {
namespace {

std::atomic<instruction_set>& active() {
  static std::atomic<instruction_set> set{widest_instruction_set()};
  return set;
}

}  // namespace

instruction_set widest_instruction_set() {
  __builtin_cpu_init();
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  return wide ? instruction_set::avx512 : instruction_set::avx2;
}

instruction_set active_instruction_set() { return active().load(std::memory_order_relaxed); }

void choose_instruction_set(instruction_set set) {
  ensure(set <= widest_instruction_set(),
         "an instruction set was chosen that this processor does not have");
  active().store(set, std::memory_order_relaxed);
}

const char* fma_instruction_set() {
  return active_instruction_set() == instruction_set::avx512 ? "avx512" : "avx2";
}

}  // namespace troupe::compute::cpu
