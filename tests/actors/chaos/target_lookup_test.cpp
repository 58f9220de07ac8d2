#include "actors/chaos/target_lookup.hpp"

#include <gmock/gmock.h>

#include "tests/actors/chaos/small_world.hpp"

namespace troupe::actors::chaos {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

selector parsed(std::string_view text) {
  result<selector> s = parse_selector(text);
  EXPECT_TRUE(s) << text << ": " << (s ? "" : s.failure().message);
  return s ? *s : selector();
}

std::vector<std::uint32_t> members_of(std::string_view text, const world_view& world,
                                      std::uint64_t draw = 0, const preference& prefer = {}) {
  std::vector<std::uint32_t> all;
  for (const member_id m : resolve_members(parsed(text), world, draw, prefer).members) {
    all.push_back(m.value);
  }
  return all;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> links_of(std::string_view text,
                                                              const world_view& world) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
  for (const link& l : resolve_links(parsed(text), world, 0, {}).links) {
    all.emplace_back(l.from.value, l.to.value);
  }
  return all;
}

TEST(target_lookup, finds_whom_the_present_plan_means) {
  const world_view w = world_of(4, 2);
  EXPECT_THAT(members_of("m1", w), ElementsAre(1));
  EXPECT_THAT(members_of("coordinator", w), ElementsAre(2));
  EXPECT_THAT(members_of("primary:3", w), ElementsAre(3));
  EXPECT_THAT(members_of("backup:3", w), ElementsAre(0));
  EXPECT_THAT(members_of("layer:1", w), ElementsAre(1));
  EXPECT_THAT(members_of("all", w), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(members_of("domain:3", w), ElementsAre(3)) << "without a list each is its own domain";
}

TEST(target_lookup, looks_only_at_those_who_are_alive) {
  world_view w = world_of(4);
  w.domains = {{member_id(0), member_id(1)}, {member_id(2), member_id(3)}};
  w.alive.erase(member_id(3));
  EXPECT_THAT(members_of("domain:1", w), ElementsAre(2));
  EXPECT_THAT(members_of("all", w), ElementsAre(0, 1, 2));
  EXPECT_THAT(members_of("holder:2", w, 7), ElementsAre(2)) << "its backup is dead";
  const chosen dead = resolve_members(parsed("m3"), w, 0, {});
  EXPECT_THAT(dead.members, IsEmpty());
  EXPECT_EQ(dead.nobody, "m3 is not alive");
}

TEST(target_lookup, draws_each_of_several_and_always_the_same_for_a_number) {
  const world_view w = world_of(4);
  std::set<std::uint32_t> any, holders, others;
  for (std::uint64_t i = 0; i < 64; ++i) {
    const std::uint64_t draw = i << 58;
    any.insert(members_of("any", w, draw).front());
    holders.insert(members_of("holder:1", w, draw).front());
    others.insert(members_of("any-not:coordinator", w, draw).front());
    EXPECT_EQ(members_of("any", w, draw), members_of("any", w, draw));
  }
  EXPECT_THAT(any, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(holders, ElementsAre(1, 2));
  EXPECT_THAT(others, ElementsAre(1, 2, 3));
}

TEST(target_lookup, keeps_to_those_who_are_preferred_while_there_are_some) {
  const world_view w = world_of(4);
  const preference only_two = [](const std::vector<member_id>& m) {
    return m == std::vector{member_id(2)};
  };
  const preference nobody = [](const auto&) { return false; };
  for (std::uint64_t draw : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    EXPECT_THAT(members_of("any", w, draw, only_two), ElementsAre(2));
    EXPECT_EQ(members_of("any", w, draw, nobody).size(), 1u);
  }
}

TEST(target_lookup, knows_who_joined_and_who_got_the_message) {
  world_view w = world_of(3);
  EXPECT_EQ(resolve_members(parsed("joiner"), w, 0, {}).nobody, "nobody has joined yet");
  w.joiner = member_id(2);
  w.receivers["head"] = member_id(1);
  EXPECT_THAT(members_of("joiner", w), ElementsAre(2));
  EXPECT_THAT(members_of("receiver:head", w), ElementsAre(1));
  EXPECT_THAT(resolve_members(parsed("receiver:tail"), w, 0, {}).nobody, HasSubstr("tail"));
}

TEST(target_lookup, means_links_one_way_both_ways_or_all_of_a_side) {
  const world_view w = world_of(3);
  using testing::Pair;
  EXPECT_THAT(links_of("link:m2>m0", w), ElementsAre(Pair(2, 0)));
  EXPECT_THAT(links_of("pair:m2-m0", w), ElementsAre(Pair(0, 2), Pair(2, 0)));
  EXPECT_THAT(links_of("side:m0,m1", w),
              ElementsAre(Pair(0, 2), Pair(1, 2), Pair(2, 0), Pair(2, 1)));
  EXPECT_THAT(links_of("m1", w), ElementsAre(Pair(0, 1), Pair(1, 0), Pair(1, 2), Pair(2, 1)));
  EXPECT_EQ(links_of("all", w).size(), 6u);
}

}  // namespace
}  // namespace troupe::actors::chaos
