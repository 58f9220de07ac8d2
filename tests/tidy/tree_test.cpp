// The rules over this repository. What each rule catches is shown in rules_test.cpp.
#include <gtest/gtest.h>

#include "tests/tidy/rules.hpp"

namespace troupe::tidy {
namespace {

const source_tree& repository() {
  static const source_tree tree = read_tree(TROUPE_SOURCE_DIR);
  return tree;
}

TEST(repository, is_read_as_a_whole) {
  // Guards the tests below against passing over an empty tree.
  EXPECT_TRUE(repository().contains("CMakeLists.txt"));
  EXPECT_TRUE(repository().contains(".ci/run"));
  EXPECT_TRUE(repository().contains("tests/tidy/tree_test.cpp"));
  EXPECT_GT(repository().size(), 150u);
}

TEST(repository, includes_only_downwards) {
  EXPECT_EQ(print(include_directions(repository())), "");
}
TEST(repository, keeps_each_library_at_home) { EXPECT_EQ(print(library_homes(repository())), ""); }
TEST(repository, promises_something_for_each_folder) {
  EXPECT_EQ(print(folder_promises(repository())), "");
}
TEST(repository, forgets_no_test_file) { EXPECT_EQ(print(registered_tests(repository())), ""); }
TEST(repository, compiles_every_source) { EXPECT_EQ(print(compiled_sources(repository())), ""); }
TEST(repository, tests_every_source) { EXPECT_EQ(print(mirrored_tests(repository())), ""); }
TEST(repository, calls_nothing_forbidden) { EXPECT_EQ(print(forbidden_calls(repository())), ""); }
TEST(repository, has_no_leftovers) { EXPECT_EQ(print(leftovers(repository())), ""); }
TEST(repository, runs_every_example) { EXPECT_EQ(print(run_examples(repository())), ""); }
TEST(repository, has_pages_that_stand_by_themselves) {
  EXPECT_EQ(print(self_contained_pages(repository())), "");
}

}  // namespace
}  // namespace troupe::tidy
