#include "actors/plan_preview.hpp"

#include <gmock/gmock.h>

#include "model/description.hpp"

namespace troupe::actors {
namespace {

model::layer_layout embedding(std::size_t table, std::size_t positions) {
  model::layer_layout layer;
  layer.kind = model::layer_kind::embedding;
  layer.name = "embedding";
  layer.elements = table + positions;
  model::tensor_info& tokens = layer.tensors.emplace_back();
  tokens.role = model::tensor_role::token_table;
  tokens.size = table;
  return layer;
}

TEST(plan_preview, a_tied_table_has_a_second_gradient_in_its_own_blocks_only) {
  constexpr std::size_t block = model::block_elements;
  const model::model_layout layout{embedding(block + 100, block)};
  const auto tied = sizes_of(layout, true);
  ASSERT_EQ(tied.size(), 1u);
  ASSERT_EQ(tied[0].size(), 3u);
  EXPECT_EQ(tied[0][0].elements, block);
  EXPECT_EQ(tied[0][0].tied, block);
  EXPECT_EQ(tied[0][1].tied, 100u);
  EXPECT_EQ(tied[0][2].elements, 100u);
  EXPECT_EQ(tied[0][2].tied, 0u);
  const auto untied = sizes_of(layout, false);
  for (const auto& b : untied[0]) EXPECT_EQ(b.tied, 0u);
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
