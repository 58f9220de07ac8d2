// Two runs, and the first bit in which they differ.
#include <sstream>

#include "actors/cli/commands.hpp"
#include "config/print.hpp"
#include "tests/actors/tiny_run.hpp"

namespace troupe::actors::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class diff_command_test : public tiny_run_test {
 protected:
  struct outcome {
    int code;
    std::string out, err;
  };
  // Trains with the effective config in the run's directory, where diff looks for it.
  run_outcome run(const std::string& name, const texts& overrides, const how_to_run& how = {}) {
    run_outcome o = train(name, overrides, how);
    (void)place.write(name + "/config.toml", config::show_toml(configured(overrides)->settings));
    return o;
  }
  outcome diff(const std::string& a, const std::string& b, const texts& more = {}) {
    texts words = {place / a, place / b};
    words.insert(words.end(), more.begin(), more.end());
    std::ostringstream out, err;
    const int code = diff_command(words, out, err);
    return {code, out.str(), err.str()};
  }
};

TEST_F(diff_command_test, finds_the_same_bits_in_runs_that_were_computed_differently) {
  const run_outcome a = run("a", {});
  ASSERT_EQ(run("b", {"training.micro_batch_size=4", "compute.threads=2"}).code, 0);
  const outcome o = diff("a", "b");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, "same bits in steps 1 to 6 and in all tensors of step 6 (state_hash " +
                       a.state_hash() + ")\n");
  const auto json = nlohmann::json::parse(diff("a", "b", {"--json"}).out);
  EXPECT_EQ(json["same_bits"], true);
  EXPECT_EQ(json["steps_compared"], 6);
}

TEST_F(diff_command_test, names_the_first_step_that_differs) {
  ASSERT_EQ(run("a", {}).code, 0);
  ASSERT_EQ(run("b", {"optimizer.lr=0.011"}).code, 0);
  const outcome o = diff("a", "b");
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.out, AllOf(HasSubstr("first difference at step 1"), HasSubstr("lr ")));
}

TEST_F(diff_command_test, names_the_first_tensor_that_differs) {
  // The recorded step is the same: a decay of the weights shows only in what the update wrote.
  ASSERT_EQ(run("a", {"training.steps=1"}).code, 0);
  ASSERT_EQ(run("b", {"training.steps=1", "optimizer.weight_decay=0.3"}).code, 0);
  const outcome o = diff("a", "b");
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.out, AllOf(HasSubstr("first difference in the tensors of step 1"),
                           HasSubstr("(parameters)"), HasSubstr("elements differ, first at")));
  EXPECT_EQ(nlohmann::json::parse(diff("a", "b", {"--json"}).out)["same_bits"], false);
}

TEST_F(diff_command_test, compares_what_both_have) {
  ASSERT_EQ(run("a", {}).code, 0);
  ASSERT_EQ(run("b", {}, {.stop = stop_before(4)}).code, 75);
  const outcome o = diff("a", "b");
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.out, AllOf(HasSubstr("same bits in steps 1 to 4"), HasSubstr("has 6 steps"),
                           HasSubstr("no step is saved in both runs")));
  ASSERT_EQ(run("c", {}, {.stop = stop_before(0)}).code, 75);
  const outcome none = diff("a", "c");
  EXPECT_EQ(none.code, 1) << "nothing in common is not the same";
  EXPECT_THAT(none.out, HasSubstr("no step is in both runs"));
}

TEST_F(diff_command_test, refuses_what_is_no_run) {
  ASSERT_EQ(run("a", {}).code, 0);
  const outcome o = diff("a", "nowhere");
  EXPECT_EQ(o.code, 73);
  EXPECT_THAT(o.err, HasSubstr(place / "nowhere"));
}

}  // namespace
}  // namespace troupe::actors::cli
