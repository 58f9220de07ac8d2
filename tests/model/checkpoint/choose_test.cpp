#include "model/checkpoint/choose.hpp"

#include "tests/model/checkpoint/fixture.hpp"

namespace troupe::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

listed entry(std::uint64_t step, condition state) {
  return {step, folder_of(step), state, state == condition::whole ? "" : "because", std::nullopt};
}
const wanted newest{}, none{wanted::kind::none};
wanted step(std::uint64_t n) { return {wanted::kind::step, n}; }
using enum condition;

TEST(choose, takes_the_newest_whole_one_and_says_what_it_passed_over) {
  const std::vector all{entry(10, whole), entry(20, whole), entry(30, damaged),
                        entry(40, unfinished)};
  const auto c = *choose(all, newest);
  EXPECT_EQ(c.index, 1u);
  EXPECT_THAT(c.skipped, ElementsAre("skipped the unfinished checkpoint of step 40: because",
                                     "skipped the damaged checkpoint of step 30: because"));
}

TEST(choose, starts_from_the_beginning_only_if_nothing_was_ever_published) {
  EXPECT_EQ(choose({}, newest)->index, std::nullopt);
  const std::vector interrupted{entry(10, unfinished)};
  const auto c = *choose(interrupted, newest);
  EXPECT_EQ(c.index, std::nullopt);
  EXPECT_THAT(c.skipped, ElementsAre("skipped the unfinished checkpoint of step 10: because"));
  const std::vector broken{entry(10, damaged), entry(20, unfinished)};
  const auto refused = choose(broken, newest);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().code, exit_code::io);
  EXPECT_THAT(reason(refused), HasSubstr("skipped the damaged checkpoint of step 10: because"));
}

TEST(choose, never_means_never) {
  const std::vector all{entry(10, whole)};
  EXPECT_EQ(choose(all, none)->index, std::nullopt);
}

TEST(choose, takes_the_step_that_was_asked_for_or_fails) {
  const std::vector all{entry(10, whole), entry(20, whole), entry(30, damaged)};
  EXPECT_EQ(choose(all, step(10))->index, 0u);
  const auto is_damaged = choose(all, step(30));
  ASSERT_FALSE(is_damaged);
  EXPECT_THAT(reason(is_damaged), HasSubstr("no whole checkpoint of step 30: skipped the damaged"));
  EXPECT_THAT(reason(is_damaged), HasSubstr("whole ones: 10 20"));
  const auto missing = choose(all, step(15));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.failure().code, exit_code::cannot_use);
}

TEST(choose, says_nothing_about_an_interrupted_try_at_a_whole_step) {
  const std::vector all{entry(10, whole), entry(10, unfinished)};
  const auto c = *choose(all, newest);
  EXPECT_EQ(c.index, 0u);
  EXPECT_THAT(c.skipped, IsEmpty());
}

TEST(list, tells_whole_unfinished_and_damaged_apart) {
  memory_file_system memory;
  EXPECT_THAT(*list(memory, directory), IsEmpty());
  for (const std::uint64_t s : {100, 20, 3}) ASSERT_TRUE(save_step(memory, s));
  ASSERT_TRUE(memory.remove(folder_of(20) + "/manifest.json"));
  ASSERT_TRUE(memory.remove(folder_of(100) + "/head.parameters.safetensors"));
  faulty_file_system twin(memory);
  twin.inject({file_operation::write, "*head*", 1, 1, fault_kind::crash});
  ASSERT_FALSE(save_step(twin, 110));
  ASSERT_TRUE(make_directories(memory, directory + "/step-7"));
  const auto all = *list(memory, directory);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].step, 3u);
  EXPECT_EQ(all[0].state, whole);
  EXPECT_EQ(all[0].contents->about, facts_at(3));
  EXPECT_EQ(all[1].state, unfinished);
  EXPECT_THAT(all[1].why, HasSubstr("step-00000020/manifest.json is missing"));
  EXPECT_EQ(all[2].state, damaged);
  EXPECT_THAT(all[2].why, HasSubstr("step-00000100/head.parameters.safetensors: No such file"));
  EXPECT_EQ(all[3].state, unfinished);
}

class resume_of_a_run : public testing::Test {
 protected:
  void SetUp() override {
    for (const std::uint64_t s : {10, 20, 30}) ASSERT_TRUE(save_step(memory, s));
  }
  void damage(std::uint64_t s) {
    const std::string path = folder_of(s) + "/head.second_moments.safetensors";
    std::string bytes = content(memory, path);
    bytes.back() ^= 1;
    put(memory, path, bytes);
  }
  result<resumed> go(const wanted& want) {
    return resume(memory, directory, want, state.layout, state.memory(), accept);
  }
  memory_file_system memory;
  run_state state{tiny_model()};
  std::function<status(const manifest&)> accept = [](const manifest&) { return done{}; };
};

TEST_F(resume_of_a_run, falls_back_when_a_block_turns_out_to_be_damaged) {
  damage(30);
  const auto from = go(newest);
  ASSERT_TRUE(from) << reason(from);
  EXPECT_EQ(from->from->about.step, 20u);
  EXPECT_TRUE(state.same_bits(run_state(tiny_model(), 20)));
  EXPECT_THAT(from->skipped, ElementsAre(testing::AllOf(HasSubstr("damaged checkpoint of step 30"),
                                                        HasSubstr("does not match its hash"))));
}

TEST_F(resume_of_a_run, does_not_fall_back_from_a_step_that_was_asked_for) {
  damage(20);
  EXPECT_THAT(reason(go(step(20))), HasSubstr("no whole checkpoint of step 20"));
  EXPECT_EQ(go(step(10))->from->about.step, 10u);
}

TEST_F(resume_of_a_run, never_starts_from_nothing_when_all_are_damaged) {
  for (const std::uint64_t s : {10, 20, 30}) damage(s);
  const auto from = go(newest);
  ASSERT_FALSE(from);
  EXPECT_EQ(from.failure().code, exit_code::io);
}

TEST_F(resume_of_a_run, ends_where_the_identity_is_refused) {
  accept = [](const manifest& m) -> status {
    return error{exit_code::bad_config, fmt::format("not step {}", m.about.step)};
  };
  EXPECT_EQ(reason(go(newest)), "not step 30");
}

TEST_F(resume_of_a_run, loads_nothing_if_told_so) {
  const auto from = go(none);
  ASSERT_TRUE(from);
  EXPECT_FALSE(from->from);
  EXPECT_TRUE(state.same_bits(run_state(tiny_model())));
}

}  // namespace
}  // namespace troupe::checkpoint
