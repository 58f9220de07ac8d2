#include "actors/machine.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>

namespace troupe::actors {
namespace {

TEST(machine, has_a_name_and_at_least_one_core) {
  EXPECT_FALSE(host_name().empty());
  EXPECT_GE(usable_cores(), 1);
}

TEST(machine, the_facts_of_this_process_are_plausible) {
  const process_facts f = facts_of_this_process();
  EXPECT_GT(f.resident_bytes, std::uint64_t{1} << 20);
  EXPECT_GE(f.peak_bytes + (std::uint64_t{1} << 20), f.resident_bytes);
  EXPECT_GE(f.cpu_seconds, 0);
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_GT(f.start_seconds, now - 3600);
  EXPECT_LE(f.start_seconds, now + 2);
}

TEST(machine, an_opened_file_is_counted) {
  const std::uint64_t before = facts_of_this_process().open_files;
  const int fd = open("/dev/null", O_RDONLY);
  EXPECT_EQ(facts_of_this_process().open_files, before + 1);
  close(fd);
  EXPECT_EQ(facts_of_this_process().open_files, before);
}

}  // namespace
}  // namespace troupe::actors
