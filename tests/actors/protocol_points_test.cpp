#include "actors/protocol_points.hpp"

#include <gtest/gtest.h>

#include <set>

namespace troupe::actors {
namespace {

TEST(protocol_points, have_a_name_each_by_which_they_are_found) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < protocol_point_count; ++i) {
    const auto at = static_cast<protocol_point>(i);
    EXPECT_EQ(protocol_point_named(name_of(at)), at) << name_of(at);
    names.insert(name_of(at));
  }
  EXPECT_EQ(names.size(), protocol_point_count);
  EXPECT_EQ(name_of(protocol_point::commit_sent), "commit-sent");
  EXPECT_EQ(name_of(protocol_point::copy_half), "copy-half");
  EXPECT_EQ(protocol_point_named("no-such-point"), std::nullopt);
}

}  // namespace
}  // namespace troupe::actors
