#include "actors/plan_text.hpp"

#include <gmock/gmock.h>

#include "tests/actors/protocol/random_world.hpp"

namespace troupe::actors {
namespace {

using protocol::make_plan;
using protocol::plan;
using protocol::planner_input;
using protocol::random_world;
using testing::HasSubstr;

plan small_plan() {
  planner_input in = protocol::equal_world(3, 8, 2, 4, 1);
  in.number = generation(2);
  in.parent = "0123";
  in.base = 77;
  return make_plan(in);
}

std::string wrong(const std::string& text) {
  const auto parsed = parse_plan(text, "plan-000002");
  EXPECT_FALSE(parsed);
  if (parsed) return "";
  EXPECT_EQ(parsed.failure().code, exit_code::bad_data);
  return parsed.failure().message;
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(plan_text, random_plans_come_back_as_they_were) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    planner_input in = random_world(seed).world();
    in.base = ~std::uint64_t{0} - seed;
    in.candidates[0].name = "with \"quotes\"\n and lines, \xc3\xa4";
    in.candidates[0].life = incarnation(~std::uint64_t{0});
    const plan p = make_plan(in);
    const std::string text = print_plan(p);
    const auto parsed = parse_plan(text, "here");
    ASSERT_TRUE(parsed) << parsed.failure().message;
    EXPECT_EQ(*parsed, p);
    EXPECT_EQ(print_plan(*parsed), text);
  }
}

TEST(plan_text, is_made_for_people) {
  const std::string text = print_plan(small_plan());
  EXPECT_THAT(text, HasSubstr("\"verdict\": \"start\""));
  EXPECT_THAT(text, HasSubstr("\n    {\"id\":1,\"life\":"));
  EXPECT_THAT(text, HasSubstr("\n    {\"layer\":0,\"first_block\":0,\"blocks\":"));
}

TEST(plan_text, its_hash_is_that_of_the_text) {
  const std::string text = print_plan(small_plan());
  EXPECT_EQ(plan_hash(text).size(), 32u);
  EXPECT_EQ(plan_hash(text), plan_hash(print_plan(small_plan())));
  EXPECT_NE(plan_hash(text), plan_hash(text + " "));
}

TEST(plan_text, what_is_missing_unknown_or_of_another_kind_is_named) {
  const std::string text = print_plan(small_plan());
  EXPECT_THAT(wrong(with(text, "\"base\": 77", "\"base\": -1")), HasSubstr("plan-000002: base"));
  EXPECT_THAT(wrong(with(text, "\"base\": 77,", "")), HasSubstr("base"));
  EXPECT_THAT(wrong(with(text, "\"base\"", "\"bass\"")), HasSubstr("base"));
  EXPECT_THAT(wrong(with(text, "\"store\":true", "\"store\":1")), HasSubstr("members[0].store"));
  EXPECT_THAT(wrong(with(text, "\"format\": 1", "\"format\": 2")), HasSubstr("another version"));
  EXPECT_THAT(wrong(with(text, "\"leaves\":", "\"leaves\":1111111111")), HasSubstr("too large"));
  EXPECT_THAT(wrong(with(text, "\"backups\":[1]", "\"backups\":[-1]")), HasSubstr("backups"));
  EXPECT_THAT(wrong(with(text, "\"backups\":[1]", "\"backups\":1")), HasSubstr("backups"));
  EXPECT_THAT(wrong(text.substr(0, text.size() / 2)), HasSubstr("plan-000002"));
  EXPECT_THAT(wrong(""), HasSubstr("plan-000002"));
}

TEST(plan_text, a_plan_that_nobody_could_have_made_is_refused) {
  const auto refused = [](auto change) {
    plan p = small_plan();
    change(p);
    return wrong(print_plan(p));
  };
  EXPECT_THAT(refused([](plan& p) { p.members.clear(); }), HasSubstr("no members"));
  EXPECT_THAT(refused([](plan& p) { std::swap(p.members[0], p.members[1]); }),
              HasSubstr("order of their ids"));
  EXPECT_THAT(refused([](plan& p) { p.members[1].id = p.members[0].id; }),
              HasSubstr("order of their ids"));
  EXPECT_THAT(refused([](plan& p) { p.coordinator = member_id(9); }), HasSubstr("coordinator"));
  EXPECT_THAT(refused([](plan& p) { p.members[1].first_leaf += 1; }), HasSubstr("virtual ranks"));
  EXPECT_THAT(refused([](plan& p) { p.members[2].leaves += 1; }), HasSubstr("virtual ranks"));
  EXPECT_THAT(refused([](plan& p) { p.members[0].computes = false; }), HasSubstr("virtual ranks"));
  EXPECT_THAT(refused([](plan& p) { p.placement[0].primary = member_id(9); }),
              HasSubstr("holder is no member"));
  EXPECT_THAT(refused([](plan& p) { p.placement[0].backups = {member_id(9)}; }),
              HasSubstr("holder is no member"));
  EXPECT_THAT(refused([](plan& p) { p.placement[0].backups = {p.placement[0].primary}; }),
              HasSubstr("holders do not stand in order"));
  EXPECT_THAT(refused([](plan& p) { p.placement[1].first_block += 1; }), HasSubstr("in order"));
  EXPECT_THAT(refused([](plan& p) { p.placement[0].blocks = 0; }), HasSubstr("in order"));
  EXPECT_THAT(refused([](plan& p) { p.placement.insert(p.placement.begin(), p.placement[0]); }),
              HasSubstr("in order"));
  EXPECT_THAT(refused([](plan& p) { p.placement.back().layer += 1; }), HasSubstr("in order"));
}

}  // namespace
}  // namespace troupe::actors
