// The planner's tests judge whole plans; here is what only placement itself shows.
#include "actors/protocol/block_placement.hpp"

#include <gmock/gmock.h>

namespace troupe::actors::protocol {
namespace {

using testing::ElementsAre;

constexpr std::uint32_t whole = 1u << 18;

placement_request request_for(std::uint32_t members, std::vector<std::vector<std::uint32_t>> layers,
                              std::uint32_t backups) {
  placement_request r;
  r.holders.resize(members);
  for (std::uint32_t i = 0; i < members; ++i) r.holders[i].host = r.holders[i].domain = i;
  r.layers = std::move(layers);
  r.backups = backups;
  return r;
}

std::vector<std::uint32_t> primaries(const std::vector<held_by>& placed) {
  std::vector<std::uint32_t> found;
  for (const held_by& h : placed) found.push_back(h.primary);
  return found;
}

TEST(block_placement, deals_a_layer_out_in_runs_with_the_short_block_last) {
  const auto placed = place_blocks(request_for(2, {{whole, whole, whole, 5}}, 0));
  EXPECT_THAT(primaries(placed), ElementsAre(0, 0, 1, 1));
}

TEST(block_placement, small_layers_go_where_little_is) {
  const auto placed = place_blocks(request_for(3, {{100}, {50}, {50}, {50}, {10}}, 0));
  EXPECT_THAT(primaries(placed), ElementsAre(0, 1, 2, 1, 2));
}

TEST(block_placement, a_lost_primary_is_replaced_by_a_backup) {
  placement_request r = request_for(3, {{whole, whole, whole}}, 1);
  r.present = {{0, 1}, {2}, {2, 0}};  // the primary of the middle one is gone
  r.present_primary = {true, false, true};
  const auto placed = place_blocks(r);
  EXPECT_THAT(placed[0].backups, ElementsAre(1));
  EXPECT_EQ(placed[0].primary, 0u);
  // Member 1 had nothing to be primary of: it takes what must be copied anyway.
  EXPECT_EQ(placed[1].primary, 1u);
  EXPECT_THAT(placed[1].backups, ElementsAre(2));
  EXPECT_EQ(placed[2].primary, 2u);
  EXPECT_THAT(placed[2].backups, ElementsAre(0));
}

TEST(block_placement, levelling_swaps_roles_before_it_copies) {
  placement_request r = request_for(3, {{whole, whole, whole, whole, whole}}, 1);
  r.present = {{0, 2}, {0, 1}, {0, 2}, {0, 1}, {1, 2}};
  r.present_primary = {true, true, true, true, true};
  const auto placed = place_blocks(r);
  for (std::size_t b = 0; b < 5; ++b) {
    for (std::uint32_t m : {placed[b].primary, placed[b].backups.at(0)}) {
      EXPECT_TRUE(m == r.present[b][0] || m == r.present[b][1]) << b;
    }
  }
  EXPECT_THAT(primaries(placed), testing::Contains(1u));
  EXPECT_THAT(primaries(placed), testing::Contains(2u));
}

TEST(block_placement, a_holder_gives_way_to_another_domain) {
  placement_request r = request_for(3, {{whole}}, 1);
  r.holders[0].domain = r.holders[1].domain = 7;
  r.present = {{0, 1}};
  r.present_primary = {true};
  const auto placed = place_blocks(r);
  EXPECT_EQ(placed[0].primary, 0u);
  EXPECT_THAT(placed[0].backups, ElementsAre(2));
}

TEST(block_placement, an_overfull_member_is_worse_than_a_shared_domain) {
  placement_request r = request_for(3, {{whole}}, 1);
  r.holders[0].domain = r.holders[1].domain = 7;
  r.holders[2].capacity = whole - 1;
  EXPECT_THAT(place_blocks(r)[0].backups, ElementsAre(1));
}

TEST(block_placement, blocks_nobody_has_room_for_are_placed_all_the_same) {
  placement_request r = request_for(2, {{whole, whole, whole, whole}}, 1);
  for (block_holder& h : r.holders) h.capacity = whole;
  for (const held_by& h : place_blocks(r)) EXPECT_EQ(h.backups.size(), 1u);
}

}  // namespace
}  // namespace troupe::actors::protocol
