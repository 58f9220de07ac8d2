#include "config/base/nearest.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace troupe {
namespace {

TEST(nearest, counts_inserted_dropped_changed_and_swapped_letters) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("steps", "steps"), 0u);
  EXPECT_EQ(edit_distance("stepps", "steps"), 1u);
  EXPECT_EQ(edit_distance("stps", "steps"), 1u);
  EXPECT_EQ(edit_distance("stops", "steps"), 1u);
  EXPECT_EQ(edit_distance("setps", "steps"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(nearest, takes_case_and_dashes_for_habits) {
  EXPECT_EQ(edit_distance("Seq-Len", "seq_len"), 0u);
}

TEST(nearest, finds_the_nearest_and_the_first_of_equals) {
  const std::vector<std::string> words{"warmup_steps", "steps", "sleps"};
  EXPECT_EQ(nearest("stepss", words), "steps");
  EXPECT_EQ(nearest("seps", words), "steps");
  EXPECT_EQ(nearest("slep", words), "sleps");
}

TEST(nearest, suggests_nothing_when_nothing_is_near) {
  const std::vector<std::string> words{"steps", "seq_len"};
  EXPECT_EQ(nearest("banana", words), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
}

}  // namespace
}  // namespace troupe
