#include "actors/plan_preview.hpp"

#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

TEST(plan_preview, a_second_source_of_a_block_is_counted_with_its_own_size) {
  world_shape shape;
  shape.layers = {{{.elements = 300, .sources = {300, 300}},
                   {.elements = 300, .sources = {300, 100}},
                   {.elements = 100, .sources = {100}}},
                  {{.elements = 50, .sources = {50}}}};
  const protocol::model_sizes sizes = sizes_of(shape);
  ASSERT_EQ(sizes.size(), 2u);
  ASSERT_EQ(sizes[0].size(), 3u);
  EXPECT_EQ(sizes[0][0].elements, 300u);
  EXPECT_EQ(sizes[0][0].tied, 300u);
  EXPECT_EQ(sizes[0][1].tied, 100u);
  EXPECT_EQ(sizes[0][2].elements, 100u);
  EXPECT_EQ(sizes[0][2].tied, 0u);
  ASSERT_EQ(sizes[1].size(), 1u);
  EXPECT_EQ(sizes[1][0].elements, 50u);
}

TEST(plan_preview, more_threads_get_more_virtual_ranks) {
  const protocol::model_sizes sizes(4, std::vector<protocol::block_sizes>{{1000, 0}, {1000, 0}});
  const plan_preview p = preview_plan(sizes, {.threads = {3, 1}, .virtual_ranks = 8, .backups = 1});
  EXPECT_EQ(p.costs[0].leaves, 6u);
  EXPECT_EQ(p.costs[1].leaves, 2u);
  EXPECT_EQ(p.costs[0].primary_blocks, 4u);
  EXPECT_EQ(p.costs[0].backup_blocks, 4u);
  EXPECT_EQ(p.plan.members[1].name, "worker-1");
  EXPECT_TRUE(p.plan.exposed);  // one machine
}

TEST(plan_preview, no_worker_or_no_thread_is_our_mistake) {
  EXPECT_DEATH((void)preview_plan({}, {.threads = {}, .virtual_ranks = 1, .backups = 1}),
               "no work");
  EXPECT_DEATH((void)preview_plan({}, {.threads = {0}, .virtual_ranks = 1, .backups = 1}),
               "without threads");
}

}  // namespace
}  // namespace troupe::actors
