#include "actors/resume_identity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

run_identity identity() {
  return {"run-a", {{"training.seed", "1"}, {"optimizer.lr", "0.001"}}, "digest-a", "cpu-chain", 1};
}

checkpoint::facts facts_of(const run_identity& id) {
  checkpoint::facts about;
  about.run_id = id.run_id;
  about.step = 30;
  for (const config::printed_setting& s : id.config) about.config.emplace_back(s.key, s.value);
  about.data_digest = id.data_digest;
  about.numerics_class = id.numerics_class;
  about.numerics_version = id.numerics_version;
  return about;
}

TEST(resume_identity, accepts_a_checkpoint_of_the_same_run) {
  EXPECT_TRUE(check_identity(facts_of(identity()), identity()));
}

TEST(resume_identity, refuses_another_run_as_unusable_and_names_both) {
  run_identity other = identity();
  other.run_id = "run-b";
  const status refused = check_identity(facts_of(identity()), other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().code, exit_code::cannot_use);
  EXPECT_THAT(refused.failure().message, AllOf(HasSubstr("run-a"), HasSubstr("run-b")));
}

TEST(resume_identity, refuses_each_thing_that_would_change_the_bits_and_names_it) {
  struct wrong {
    void (*change)(run_identity&);
    const char* named;
  };
  const wrong cases[] = {
      {[](run_identity& id) { id.config[0].value = "2"; }, "training.seed"},
      {[](run_identity& id) { id.config.pop_back(); }, "optimizer.lr"},
      {[](run_identity& id) { id.data_digest = "digest-b"; }, "digest-b"},
      {[](run_identity& id) { id.numerics_class = "cuda-90"; }, "cuda-90"},
      {[](run_identity& id) { id.numerics_version = 2; }, "version 2"},
  };
  for (const wrong& c : cases) {
    run_identity now = identity();
    c.change(now);
    const status refused = check_identity(facts_of(identity()), now);
    ASSERT_FALSE(refused) << c.named;
    EXPECT_EQ(refused.failure().code, exit_code::bad_config);
    EXPECT_THAT(refused.failure().message, AllOf(HasSubstr(c.named), HasSubstr("step 30")));
  }
}

}  // namespace
}  // namespace troupe::actors
