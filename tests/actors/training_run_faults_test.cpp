// Runs that something happens to: starting them again ends where an undisturbed run does, or says
// why not.
#include "config/base/faulty_file.hpp"
#include "config/base/memory_file.hpp"
#include "tests/actors/tiny_run.hpp"
#include "tests/support/forwarding_file_system.hpp"

namespace troupe::actors {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using training_run_faults_test = tiny_run_test;

TEST_F(training_run_faults_test, killed_without_a_save_compares_the_steps_it_computes_again) {
  const run_outcome straight = train("straight");
  for (const fault_kind kind : {fault_kind::crash, fault_kind::crash_half_way}) {
    const std::string name = kind == fault_kind::crash ? "between" : "torn";
    SCOPED_TRACE(name);
    ASSERT_EQ(train(name, {}, {.stop = stop_before(2)}).code, 75);
    faulty_file_system dying(real_file_system());
    dying.inject({.operation = file_operation::append,
                  .path_pattern = "*/steps.jsonl",
                  .at = 3,
                  .kind = kind});
    train(name, {}, {.files = &dying});
    ASSERT_TRUE(dying.all_injected());
    const run_outcome again = train(name);
    ASSERT_EQ(again.code, 0) << again.err;
    expect_same_bits(again, straight);
    EXPECT_EQ(again.report["steps_redone"], 2);
    EXPECT_EQ(std::ranges::count(file(name, "steps.jsonl"), '\n'), 6);
  }
}

TEST_F(training_run_faults_test, that_computes_other_bits_than_are_recorded_ends_with_a_defect) {
  ASSERT_EQ(train("run", {}, {.stop = stop_before(2)}).code, 75);
  faulty_file_system dying(real_file_system());
  dying.inject({.operation = file_operation::append,
                .path_pattern = "*/steps.jsonl",
                .at = 3,
                .kind = fault_kind::crash});
  train("run", {}, {.files = &dying});
  std::string steps = file("run", "steps.jsonl");
  const std::size_t norm = steps.find("\"grad_norm\":", steps.find("\"step\":4"));
  char& digit = steps[norm + 16];
  digit = digit == '1' ? '2' : '1';
  (void)place.write("run/steps.jsonl", steps);
  const run_outcome o = train("run");
  EXPECT_EQ(o.code, 70);
  EXPECT_THAT(o.err, AllOf(HasSubstr("step 4"), HasSubstr("other bits"), HasSubstr("steps.jsonl")));
  EXPECT_THAT(checkpoints("run"), ElementsAre("step-00000002"));
}

// Every write of the save in turn meets a full disk.
TEST_F(training_run_faults_test, on_a_disk_that_fills_up_during_the_save_loses_nothing) {
  const run_outcome straight = train("straight");
  ASSERT_EQ(train("half", {}, {.stop = stop_before(3)}).code, 75);
  for (std::size_t at = 1;; ++at) {
    SCOPED_TRACE(fmt::format("write {} of the save", at));
    const std::string name = fmt::format("run-{}", at);
    std::filesystem::copy(place / "half", place / name, std::filesystem::copy_options::recursive);
    faulty_file_system full(real_file_system());
    full.inject({.operation = file_operation::write,
                 .path_pattern = "*/checkpoints/*",
                 .at = at,
                 .times = 1000,
                 .kind = fault_kind::fail_half_way,
                 .error_number = ENOSPC});
    const run_outcome failed = train(name, {}, {.files = &full});
    if (!full.all_injected()) {
      EXPECT_GT(at, 10u);
      EXPECT_EQ(failed.code, 0);
      break;
    }
    EXPECT_EQ(failed.code, 74);
    EXPECT_EQ(failed.report["exit"], 74);
    EXPECT_THAT(failed.err, AllOf(HasSubstr("the save of step 6 failed"),
                                  HasSubstr("older checkpoints are untouched"),
                                  HasSubstr(place / name), HasSubstr("No space left on device")));
    EXPECT_THAT(file(name, "events.jsonl"), HasSubstr("\"checkpoint_failed\""));
    EXPECT_THAT(checkpoints(name), ElementsAre("step-00000003"));
    const run_outcome again = train(name);
    ASSERT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(again.report["steps_redone"], 3);
    expect_same_bits(again, straight);
  }
}

// The real file system with less room than it has.
class small_disk final : public forwarding_file_system {
 public:
  explicit small_disk(std::uint64_t free)
      : forwarding_file_system(real_file_system()), free_(free) {}
  result<std::uint64_t> free_bytes(const std::string&) override { return free_; }

 private:
  std::uint64_t free_;
};

TEST_F(training_run_faults_test, on_a_disk_without_room_says_how_much_it_needs) {
  small_disk disk(10'007);
  const run_outcome o = train("run", {}, {.files = &disk, .quiet = true});
  EXPECT_EQ(o.code, 74);
  EXPECT_EQ(o.out, "");
  EXPECT_THAT(o.err, AllOf(HasSubstr(place / "run/checkpoints/step-00000006"), HasSubstr("10007"),
                           HasSubstr("needed")));
  EXPECT_EQ(std::ranges::count(o.err, '\n'), 1) << o.err;
  EXPECT_TRUE(checkpoints("run").empty());
}

// The machine is lost at some operation of a new or of a resumed run: what was not synced is gone,
// kept, or kept in part.
TEST_F(training_run_faults_test, whose_machine_is_lost_at_any_moment_ends_with_the_same_bits) {
  const run_outcome straight = train("straight");
  const config::settings settings = configured({})->settings;
  std::filesystem::create_directories(place / "run");  // for the lock, which the kernel keeps
  const auto start = [&](file_system& files, const run_directory& run, std::size_t stop) {
    testing::internal::CaptureStderr();
    console screen({.terminal = false, .color = false, .quiet = true});
    training_run training(run, {settings, {}, ""}, {files, clock, screen, stop_before(stop)});
    const int code = training.run();
    return std::pair(code, testing::internal::GetCapturedStderr());
  };
  std::size_t moments = 0;
  for (const bool resumed : {false, true}) {
    for (std::size_t at = 1;; at += 3) {
      const std::uint64_t seed = moments++ % 11;
      SCOPED_TRACE(
          fmt::format("{} run, operation {}, seed {}", resumed ? "resumed" : "new", at, seed));
      memory_file_system disk;
      const auto run = run_directory::claim(disk, place / "run", clock);
      ASSERT_TRUE(run) << run.failure().message;
      if (resumed) {
        ASSERT_EQ(start(disk, *run, 3).first, 75);
      }
      faulty_file_system dying(disk);
      dying.inject({.at = at, .kind = fault_kind::crash_half_way});
      start(dying, *run, 9);
      if (!dying.all_injected()) break;
      disk.power_loss(seed);
      const auto [code, told] = start(disk, *run, 9);
      ASSERT_EQ(code, 0) << told << dying.operations().back();
      const auto steps = read_steps(disk, run->file("steps.jsonl"));
      ASSERT_TRUE(steps) << steps.failure().message;
      ASSERT_EQ(steps->size(), 6u);
      for (std::size_t i = 0; i < 6; ++i) ASSERT_TRUE((*steps)[i].same_bits(straight.steps[i]));
      const auto all = checkpoint::list(disk, run->file("checkpoints"));
      ASSERT_EQ(all->size(), resumed ? 2u : 1u);
      ASSERT_EQ(all->back().state, checkpoint::condition::whole);
      ASSERT_EQ(all->back().contents->state_hash.hex(), straight.state_hash());
    }
  }
  EXPECT_GT(moments, 40u);
}

TEST_F(training_run_faults_test, passes_over_a_damaged_checkpoint_and_says_so) {
  const run_outcome straight = train("straight");
  ASSERT_EQ(train("run", {}, {.stop = stop_before(2)}).code, 75);
  ASSERT_EQ(train("run", {}, {.stop = stop_before(2)}).code, 75);
  ASSERT_THAT(checkpoints("run"), ElementsAre("step-00000002", "step-00000004"));
  const std::string newest = "run/checkpoints/step-00000004/";
  std::string damaged;
  for (const auto& e : std::filesystem::directory_iterator(place / newest)) {
    if (e.path().extension() == ".safetensors") damaged = newest + e.path().filename().string();
  }
  std::string bytes = model::data::read_all(place / damaged);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  (void)place.write(damaged, bytes);

  const run_outcome o = train("run");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.err, AllOf(HasSubstr("skipped the damaged checkpoint of step 4"),
                           HasSubstr(place / damaged)));
  EXPECT_EQ(o.report["steps_redone"], 2);
  expect_same_bits(o, straight);
}

}  // namespace
}  // namespace troupe::actors
