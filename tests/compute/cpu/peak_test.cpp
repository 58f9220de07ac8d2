#include <gtest/gtest.h>

#include <string>

#include "compute/cpu/instruction_set.hpp"
#include "compute/cpu/kernels.hpp"

namespace troupe::compute::cpu {
namespace {

TEST(fma_peak, is_a_rate_that_this_kind_of_machine_can_have) {
  const double peak = measure_fma_peak(1);
  EXPECT_GT(peak, 1.0);
  EXPECT_LT(peak, 400.0);  // 64 operations a cycle at 6 GHz
}

TEST(fma_peak, is_measured_with_several_threads) { EXPECT_GT(measure_fma_peak(3), 1.0); }

TEST(fma_peak, names_the_widest_instruction_set_unless_another_is_chosen) {
  const bool wide = widest_instruction_set() == instruction_set::avx512;
  EXPECT_EQ(fma_instruction_set(), std::string(wide ? "avx512" : "avx2"));
  choose_instruction_set(instruction_set::avx2);
  EXPECT_EQ(fma_instruction_set(), std::string("avx2"));
  choose_instruction_set(widest_instruction_set());
}

}  // namespace
}  // namespace troupe::compute::cpu
