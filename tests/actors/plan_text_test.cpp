#include "actors/plan_text.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <limits>

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

// Two records up to the base of small_plan(), with numbers that are not finite, or have odd bits.
plan with_records() {
  plan p = small_plan();
  for (const std::uint64_t step : {76u, 77u}) {
    protocol::record_notice n;
    n.record = {.step = step,
                .updates = ~std::uint64_t{0} - step,
                .skip = step == 77,
                .why_skipped = step == 77 ? "norm is \"inf\"\n" : "",
                .scale = std::bit_cast<float>(0x00000001u),
                .lr = std::bit_cast<float>(0x80000000u),
                .loss = std::bit_cast<double>(std::uint64_t{0x3fb999999999999a}),
                .grad_norm = std::bit_cast<double>(std::uint64_t{0xfff8dead'beef1234}),
                .tokens = std::numeric_limits<double>::infinity()};
    n.validate = step == 77;
    n.lines = 75;
    n.total_tokens = ~std::uint64_t{0};
    n.skipped_in_a_row = 3;
    n.plan = generation(1);
    n.world = ~0u;
    p.records.push_back(n);
  }
  return p;
}

// H-28: what is decided again or told again has to be equal bit by bit, so its text is of bits.
TEST(plan_text, records_come_back_bit_by_bit) {
  const plan p = with_records();
  const std::string text = print_plan(p);
  const auto parsed = parse_plan(text, "here");
  ASSERT_TRUE(parsed) << parsed.failure().message;
  EXPECT_EQ(print_plan(*parsed), text);
  ASSERT_EQ(parsed->records.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    // A number that is none differs from itself.
    protocol::record_notice found = parsed->records[i], sent = p.records[i];
    EXPECT_EQ(std::bit_cast<std::uint64_t>(found.record.grad_norm),
              std::bit_cast<std::uint64_t>(sent.record.grad_norm));
    EXPECT_EQ(std::bit_cast<std::uint32_t>(found.record.lr), 0x80000000u) << "minus zero";
    found.record.grad_norm = sent.record.grad_norm = 0;
    EXPECT_EQ(found, sent);
  }
}

TEST(plan_text, the_bits_of_any_record_come_back) {
  std::uint64_t bits = 1;
  const auto next = [&bits] { return bits = bits * 6364136223846793005u + 1442695040888963407u; };
  for (int i = 0; i < 500; ++i) {
    plan p = small_plan();
    protocol::record_notice& n = p.records.emplace_back();
    n.record.step = p.base;
    n.record.scale = std::bit_cast<float>(static_cast<std::uint32_t>(next() >> 32));
    n.record.lr = std::bit_cast<float>(static_cast<std::uint32_t>(next() >> 32));
    n.record.loss = std::bit_cast<double>(next());
    n.record.grad_norm = std::bit_cast<double>(next());
    n.record.tokens = std::bit_cast<double>(next());
    const auto parsed = parse_plan(print_plan(p), "here");
    ASSERT_TRUE(parsed) << parsed.failure().message;
    const protocol::decision_record& found = parsed->records.at(0).record;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(found.scale),
              std::bit_cast<std::uint32_t>(n.record.scale));
    EXPECT_EQ(std::bit_cast<std::uint32_t>(found.lr), std::bit_cast<std::uint32_t>(n.record.lr));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(found.loss),
              std::bit_cast<std::uint64_t>(n.record.loss));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(found.grad_norm),
              std::bit_cast<std::uint64_t>(n.record.grad_norm));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(found.tokens),
              std::bit_cast<std::uint64_t>(n.record.tokens));
  }
}

TEST(plan_text, a_record_is_of_no_plans_last_step_any_more) {
  plan p = with_records();
  p.records.back().last = true;
  EXPECT_FALSE(parse_plan(print_plan(p), "here")->records.back().last);
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

TEST(plan_text, records_with_a_gap_or_of_another_base_are_refused) {
  const auto refused = [](auto change) {
    plan p = with_records();
    change(p);
    return wrong(print_plan(p));
  };
  EXPECT_THAT(refused([](plan& p) { p.records[0].record.step = 75; }), HasSubstr("order"));
  EXPECT_THAT(refused([](plan& p) { std::swap(p.records[0], p.records[1]); }), HasSubstr("order"));
  EXPECT_THAT(refused([](plan& p) { p.records.pop_back(); }), HasSubstr("end with step 77"));
  EXPECT_THAT(refused([](plan& p) { p.base = 76; }), HasSubstr("end with step 76"));
  const std::string text = print_plan(with_records());
  EXPECT_THAT(wrong(with(text, "\"lr_bits\":", "\"lr_bits\":99")), HasSubstr("too large"));
  EXPECT_THAT(wrong(with(text, "\"lines\":75,", "")), HasSubstr("lines"));
}

}  // namespace
}  // namespace troupe::actors
