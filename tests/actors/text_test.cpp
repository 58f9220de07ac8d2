#include "actors/text.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using seconds = std::chrono::duration<double>;

TEST(text, counts_are_short_and_never_show_four_digits) {
  EXPECT_EQ(short_count(0), "0");
  EXPECT_EQ(short_count(999.4), "999");
  EXPECT_EQ(short_count(999.5), "1.00k");
  EXPECT_EQ(short_count(1234), "1.23k");
  EXPECT_EQ(short_count(9994), "9.99k");
  EXPECT_EQ(short_count(9995), "10.0k");
  EXPECT_EQ(short_count(99'949), "99.9k");
  EXPECT_EQ(short_count(99'950), "100k");
  EXPECT_EQ(short_count(999'499), "999k");
  EXPECT_EQ(short_count(999'500), "1.00M");
  EXPECT_EQ(short_count(2.1e9), "2.10G");
  EXPECT_EQ(short_count(7e12), "7.00T");
  EXPECT_EQ(short_count(7e15), "7000T");  // there is no unit above
}

TEST(text, bytes_step_up_at_each_1024) {
  EXPECT_EQ(short_bytes(0), "0 B");
  EXPECT_EQ(short_bytes(812), "812 B");
  EXPECT_EQ(short_bytes(1023), "1023 B");
  EXPECT_EQ(short_bytes(1024), "1.0 KiB");
  EXPECT_EQ(short_bytes(3.4 * 1024), "3.4 KiB");
  EXPECT_EQ(short_bytes(99.9 * 1024), "99.9 KiB");
  EXPECT_EQ(short_bytes(99.96 * 1024), "100 KiB");
  EXPECT_EQ(short_bytes(1024 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(short_bytes(1.25 * (1 << 30)), "1.2 GiB");
}

TEST(text, durations_name_two_units_at_most) {
  EXPECT_EQ(short_duration(seconds(0)), "0.0s");
  EXPECT_EQ(short_duration(seconds(-3)), "0.0s");
  EXPECT_EQ(short_duration(seconds(0.44)), "0.4s");
  EXPECT_EQ(short_duration(seconds(9.94)), "9.9s");
  EXPECT_EQ(short_duration(seconds(9.96)), "10s");
  EXPECT_EQ(short_duration(seconds(59.4)), "59s");
  EXPECT_EQ(short_duration(seconds(59.6)), "1m00s");
  EXPECT_EQ(short_duration(seconds(200)), "3m20s");
  EXPECT_EQ(short_duration(seconds(3599.6)), "1h00m");
  EXPECT_EQ(short_duration(seconds(2 * 3600 + 13 * 60)), "2h13m");
  EXPECT_EQ(short_duration(seconds(86'400)), "1d00h");
  EXPECT_EQ(short_duration(seconds(4 * 86'400 + 2 * 3600)), "4d02h");
}

TEST(text, a_table_aligns_its_second_column) {
  EXPECT_EQ(table({{"model", "llama"}, {"run directory", "out"}}),
            "  model          llama\n"
            "  run directory  out\n");
  EXPECT_EQ(table({}), "");
}

TEST(text, a_progress_line_has_everything_in_its_place) {
  progress p;
  p.step = 120;
  p.steps = 10000;
  p.loss = 4.12344;
  p.grad_norm = 0.9119;
  p.lr = 3e-4;
  p.tokens_per_second = 12'300;
  p.utilization = 0.312;
  p.world = 4;
  p.generation = 3;
  p.eta = seconds(2 * 3600 + 13 * 60);
  EXPECT_EQ(progress_line(p),
            "step   120/10000  loss 4.1234  grad_norm 0.912  lr 3.00e-04  tok/s 12.3k  mfu 31.2%  "
            "world 4  gen 3  eta 2h13m");
  p.utilization = -1;
  p.skipped = true;
  EXPECT_EQ(progress_line(p),
            "step   120/10000  loss 4.1234  grad_norm 0.912  lr 3.00e-04  tok/s 12.3k  "
            "world 4  gen 3  eta 2h13m  skipped");
}

}  // namespace
}  // namespace troupe::actors
