#include "actors/sim/world.hpp"

#include <gmock/gmock.h>

#include "actors/sim/toy_reference.hpp"

namespace troupe::actors::sim {
namespace {

void expect_reference(world& w, const world_settings& s) {
  ASSERT_EQ(w.trouble(), "");
  const toy_reference reference(s.toy, toy_reference_settings(), s.steps);
  ASSERT_EQ(w.store().saves.count(s.steps), 1u);
  for (const auto& [id, state] : w.store().saves.at(s.steps).blocks) {
    EXPECT_EQ(hashes_of(state).state, hashes_of(reference.state(s.steps, id)).state)
        << "layer " << id.layer << " block " << id.block;
  }
}

TEST(world, of_one_member_trains_like_the_reference) {
  world_settings s;
  s.members = 1;
  world_watcher nobody;
  world w(s, nobody);
  w.run();
  expect_reference(w, s);
}

TEST(world, of_many_members_trains_like_the_reference) {
  for (const std::uint32_t members : {2u, 3u, 4u, 7u, 8u, 9u}) {
    for (const std::uint32_t backups : {0u, 1u, 2u}) {
      world_settings s;
      s.members = members;
      s.backups = backups;
      s.seed = members * 10 + backups;
      world_watcher nobody;
      world w(s, nobody);
      w.run();
      SCOPED_TRACE(testing::Message() << members << " members, " << backups << " backups");
      expect_reference(w, s);
    }
  }
}

}  // namespace
}  // namespace troupe::actors::sim
