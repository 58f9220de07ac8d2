// Which vector instructions the matrix products use. Chosen once from what the processor offers,
// because a chain of fused multiply-adds has the same bits at every register width
// (chain_kernel.hpp): a wide machine may run fast beside a narrow one in the same training run.
// Everything else in this folder is built for the baseline alone.
#pragma once

#include <cstdint>

namespace troupe::compute::cpu {

enum class instruction_set : std::uint8_t {
  avx2,    // the baseline of every build: AVX2 with FMA
  avx512,  // F, VL, DQ and BW
};

// The widest one that this processor and its operating system support.
instruction_set widest_instruction_set();

// The one in use: the widest, unless another was chosen.
instruction_set active_instruction_set();

// Uses `set` from now on, on all threads. Tests compare the bits of both with it; it must not be
// called while a product runs. Asking for more than the processor has is a defect.
void choose_instruction_set(instruction_set set);

}  // namespace troupe::compute::cpu
