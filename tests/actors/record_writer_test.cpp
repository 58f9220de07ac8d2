// The records of a run whose coordinator changes: several processes, one directory.
#include "actors/record_writer.hpp"

#include <gmock/gmock.h>

#include <deque>
#include <future>
#include <nlohmann/json.hpp>

#include "actors/plan_text.hpp"
#include "config/base/memory_file.hpp"
#include "tests/model/data/data_files.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Members 0 to `members` - 1 but for those that are gone.
protocol::plan plan_number(std::uint32_t number, std::uint32_t coordinator, std::uint64_t base,
                           const std::vector<std::uint32_t>& members) {
  protocol::plan p;
  p.run_id = "run";
  p.number = generation(number);
  p.coordinator = member_id(coordinator);
  p.base = base;
  p.virtual_ranks = static_cast<std::uint32_t>(members.size());
  p.verdict = number == 0 ? "start" : "loss";
  p.reason = number == 0 ? "the world met" : "somebody is gone";
  for (const std::uint32_t m : members) {
    p.members.emplace_back();
    p.members.back().id = member_id(m);
    p.members.back().life = incarnation(100 + m);
    p.members.back().name = "worker-" + std::to_string(m);
    p.members.back().host = "gpu" + std::to_string(m);
    p.members.back().leaves = 1;
  }
  return p;
}

committed_step step_number(std::uint64_t step, std::uint32_t plan, std::uint32_t world) {
  committed_step c;
  c.record.step = step;
  c.record.loss = 5.0 / static_cast<double>(step + 1);
  c.record.grad_norm = 0.5;
  c.record.lr = 0.25f;
  c.record.tokens = 64;
  c.world = world;
  c.plan = generation(plan);
  return c;
}

starting_point at(std::uint64_t step) {
  starting_point from;
  from.step = step;
  return from;
}

world_change loss_of(const std::string& name, time_since_start noticed, time_since_start unblocked,
                     bool redone) {
  world_change how;
  how.lost.push_back({name, "nothing was heard of it for 1000 ms"});
  how.step_redone = redone;
  how.noticed = noticed;
  how.unblocked = unblocked;
  return how;
}

class record_writer_test : public testing::Test {
 protected:
  // One process that may keep the records.
  class process {
   public:
    explicit process(record_writer_test& world, bool convenes = false)
        : world_(world), screen_({.terminal = false, .color = false, .quiet = false}) {
      record_writer_settings s;
      s.open = [this] {
        return monitor::open(world_.files, *world_.run, world_.clock, screen_,
                             {.steps = 100, .log_freq = 1, .report_file = ""});
      };
      s.rest = [this] { ++rests; };
      s.still_ours = [this](const protocol::plan&) -> result<bool> { return ours; };
      s.longest_pause = seconds(1);
      s.show_start = [this](const protocol::plan&) { ++starts; };
      s.plan_line = [](const protocol::plan& p) {
        return std::to_string(p.members.size()) + " workers";
      };
      s.member_line = [](const protocol::plan&, const protocol::plan_member& m) {
        member_status seen;
        seen.id = m.id.value;
        seen.name = m.name;
        seen.life = m.life;
        return seen;
      };
      std::optional<monitor> opened;
      if (convenes) opened.emplace(*s.open());
      writer = std::make_unique<record_writer>(
          std::move(opened), screen_, world_.clock, thread_,
          [this](std::function<void()> call) { calls_.push_back(std::move(call)); }, s);
    }

    // Waits for all that was told; the answers are given then.
    void settle() {
      std::promise<void> reached;
      thread_.add([&] { reached.set_value(); });
      reached.get_future().wait();
      for (; !calls_.empty(); calls_.pop_front()) calls_.front()();
    }
    // The answer, if there was one.
    std::optional<status> commit(const committed_step& step) {
      std::optional<status> answered;
      writer->committed(step, [&](status s) { answered = s; });
      settle();
      return answered;
    }
    bool commits(std::uint64_t first, std::uint64_t last, std::uint32_t plan, std::uint32_t world) {
      settle();  // the clock moves while nobody reads it
      for (std::uint64_t s = first; s <= last; ++s) {
        world_.clock.advance(milliseconds(500));
        const std::optional<status> answered = commit(step_number(s, plan, world));
        if (!answered || !*answered) return false;
      }
      return true;
    }
    std::optional<status> finish(std::uint64_t step) {
      std::optional<status> answered;
      writer->finished(step, exit_code::ok, "", [&](status s) { answered = s; });
      settle();
      return answered;
    }
    // Gone without a word: what was told is written, and nothing more.
    monitor* end() {
      thread_.end();
      return writer->last_words();
    }

    std::unique_ptr<record_writer> writer;
    int starts = 0, rests = 0;
    bool ours = true;

   private:
    record_writer_test& world_;
    console screen_;
    std::deque<std::function<void()>> calls_;  // by the helper thread, and read between its tasks
    helper_thread thread_;                     // ends before what it works for
  };

  record_writer_test() {
    std::filesystem::create_directories(place / "run");  // for the lock, which the kernel keeps
    result<run_directory> claimed = run_directory::claim(files, place / "run", clock);
    EXPECT_TRUE(claimed) << claimed.failure().message;
    run.emplace(*claimed);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
  }
  ~record_writer_test() override {
    (void)testing::internal::GetCapturedStdout();
    if (!shown_) (void)testing::internal::GetCapturedStderr();
  }
  std::string shown() {
    shown_ = true;
    return testing::internal::GetCapturedStderr();
  }

  std::vector<step_record> steps() { return *read_steps(files, run->file("steps.jsonl")); }
  std::vector<nlohmann::json> events(const std::string& name) {
    const std::string text = *read_file(files, run->file("events.jsonl"), 1 << 20);
    std::vector<nlohmann::json> found;
    std::size_t from = 0;
    for (std::size_t end; (end = text.find('\n', from)) != std::string::npos; from = end + 1) {
      found.push_back(nlohmann::json::parse(text.substr(from, end - from)));
      if (found.back()["event"] != name) found.pop_back();
    }
    return found;
  }
  nlohmann::json report() {
    return nlohmann::json::parse(*read_file(files, run->file("report.json"), 1 << 20));
  }
  void write_into_steps(std::string_view text) {
    auto opened = files.open(run->file("steps.jsonl"), open_mode::append);
    ASSERT_TRUE(opened && (*opened)->append(std::as_bytes(std::span(text))));
  }
  // Three members, of which the first coordinates five steps and is lost.
  void five_steps() {
    process first(*this);
    first.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
    first.writer->validated(4, 2.5, 100);
    ASSERT_TRUE(first.commits(1, 5, 0, 3));
    EXPECT_EQ(first.starts, 1);
  }

  model::data::folder place;
  memory_file_system files;
  manual_clock clock{wall_time(seconds(86400))};
  std::optional<run_directory> run;
  bool shown_ = false;
};

TEST_F(record_writer_test, a_successor_writes_on_and_every_step_stands_once) {
  five_steps();
  process second(*this);
  const time_since_start noticed = clock.now();
  clock.advance(milliseconds(1500));
  second.writer->goes_on(plan_number(1, 1, 5, {1, 2}), at(5),
                         loss_of("worker-0", noticed, noticed + milliseconds(200), true));
  ASSERT_TRUE(second.commits(4, 5, 0, 3)) << "equal lines are nothing new";
  ASSERT_TRUE(second.commits(6, 8, 1, 2));
  const std::vector<step_record> all = steps();
  ASSERT_EQ(all.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(all[i].step, i + 1);
    EXPECT_EQ(all[i].generation, i < 5 ? 0U : 1U);
    EXPECT_EQ(all[i].world, i < 5 ? 3U : 2U);
  }
  EXPECT_EQ(second.starts, 0) << "a successor is no start";
}

TEST_F(record_writer_test, a_step_whose_coordinator_died_before_its_line_gets_it_from_the_next) {
  five_steps();
  process second(*this);
  second.writer->goes_on(plan_number(1, 1, 6, {1, 2}), at(6),
                         loss_of("worker-0", clock.now(), clock.now(), false));
  ASSERT_TRUE(second.commits(5, 6, 0, 3));
  ASSERT_EQ(steps().size(), 6U);
  EXPECT_EQ(steps().back().generation, 0U) << "it is a step of the plan before";
  EXPECT_EQ(steps().back().world, 3U);
  EXPECT_TRUE(events("recovered").empty()) << "no step of the new plan is committed";
  ASSERT_TRUE(second.commits(7, 7, 1, 2));
  EXPECT_EQ(events("recovered").size(), 1U);
}

TEST_F(record_writer_test, a_torn_last_line_is_repaired_by_the_successor) {
  five_steps();
  write_into_steps("{\"step\":6,\"lo");
  process second(*this);
  second.writer->goes_on(plan_number(1, 1, 6, {1, 2}), at(6),
                         loss_of("worker-0", clock.now(), clock.now(), false));
  ASSERT_TRUE(second.commits(6, 7, 0, 3));
  EXPECT_EQ(steps().size(), 7U);
}

TEST_F(record_writer_test, a_step_with_other_bits_than_its_line_ends_the_records) {
  five_steps();
  process second(*this);
  second.writer->goes_on(plan_number(1, 1, 5, {1, 2}), at(5),
                         loss_of("worker-0", clock.now(), clock.now(), false));
  committed_step other = step_number(5, 0, 3);
  other.record.grad_norm = 0.75;
  const std::optional<status> answered = second.commit(other);
  ASSERT_TRUE(answered && !*answered);
  EXPECT_EQ(answered->failure().code, exit_code::defect);
  EXPECT_THAT(answered->failure().message, AllOf(HasSubstr("step 5"), HasSubstr("grad_norm")));
  const std::optional<status> later = second.commit(step_number(6, 1, 2));
  ASSERT_TRUE(later && !*later) << "the first failure has to stay";
  EXPECT_EQ(steps().size(), 5U);
}

TEST_F(record_writer_test, a_step_that_leaves_a_gap_is_refused) {
  five_steps();
  process second(*this);
  second.writer->goes_on(plan_number(1, 1, 7, {1, 2}), at(7),
                         loss_of("worker-0", clock.now(), clock.now(), false));
  const std::optional<status> answered = second.commit(step_number(8, 1, 2));
  ASSERT_TRUE(answered && !*answered);
  EXPECT_THAT(answered->failure().message, HasSubstr("ends with step 5"));
}

TEST_F(record_writer_test, the_events_of_a_recovery_share_its_number_and_its_times) {
  five_steps();
  process second(*this);
  const time_since_start noticed = clock.now();
  clock.advance(milliseconds(1500));
  second.writer->goes_on(plan_number(1, 1, 5, {1, 2}), at(5),
                         loss_of("worker-0", noticed, noticed + milliseconds(200), true));
  ASSERT_TRUE(second.commits(5, 7, 1, 2));  // half a second each
  const auto lost = events("member_lost"), recovered = events("recovered");
  const auto generations = events("generation");
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0]["member"], "worker-0");
  EXPECT_EQ(lost[0]["cause"], "heartbeat");
  EXPECT_EQ(lost[0]["noticed"], "nothing was heard of it for 1000 ms");
  EXPECT_EQ(lost[0]["recovery"], 1);
  EXPECT_FALSE(lost[0].contains("detect_ms")) << "nobody had heard of it here";
  ASSERT_EQ(generations.size(), 2U);
  EXPECT_EQ(generations[1]["number"], 1);
  EXPECT_EQ(generations[1]["members"], 2);
  EXPECT_EQ(generations[1]["recovery"], 1);
  EXPECT_EQ(generations[1]["reason"], "somebody is gone");
  EXPECT_EQ(generations[1]["plan"], plan_hash(print_plan(plan_number(1, 1, 5, {1, 2}))));
  ASSERT_EQ(recovered.size(), 1U);
  EXPECT_EQ(recovered[0]["recovery"], 1);
  EXPECT_EQ(recovered[0]["from"], 0);
  EXPECT_EQ(recovered[0]["to"], 1);
  EXPECT_EQ(recovered[0]["step"], 6);
  EXPECT_EQ(recovered[0]["step_redone"], true);
  EXPECT_NEAR(recovered[0]["unblock_ms"].get<double>(), 200, 1e-6);
  EXPECT_NEAR(recovered[0]["recover_ms"].get<double>(), 2500, 1e-6);
  const std::string text = shown();
  EXPECT_THAT(text, HasSubstr("lost worker-0: nothing was heard of it for 1000 ms\n"));
  EXPECT_THAT(text, HasSubstr("the run went on without worker-0 in generation 1: step 6"));
}

TEST_F(record_writer_test, a_coordinator_that_stays_tells_a_loss_once_and_how_long_it_was_silent) {
  process only(*this);
  only.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
  ASSERT_TRUE(only.commits(1, 2, 0, 3));
  only.writer->heard_of(member_id(2), {.step = 3, .doing = protocol::phase::computing});
  only.settle();
  clock.advance(milliseconds(900));
  only.writer->member_lost(member_id(2), "its link broke");
  only.writer->member_lost(member_id(2), "its link broke again");
  only.settle();
  ASSERT_EQ(events("member_lost").size(), 1U) << "it is told at once";
  only.writer->goes_on(plan_number(1, 0, 2, {0, 1}), at(2),
                       loss_of("worker-2", clock.now(), clock.now(), false));
  ASSERT_TRUE(only.commits(3, 4, 1, 2));
  const auto lost = events("member_lost");
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0]["cause"], "endpoint");
  EXPECT_EQ(lost[0]["recovery"], 1);
  EXPECT_NEAR(lost[0]["detect_ms"].get<double>(), 900, 1e-6);
  EXPECT_EQ(events("recovered").size(), 1U);
  only.writer->member_lost(member_id(1), "its link broke");
  only.settle();
  EXPECT_EQ(events("member_lost").size(), 2U);
  EXPECT_EQ(events("member_lost")[1]["recovery"], 2);
}

// It noticed the loss and could not make the plan that follows.
TEST_F(record_writer_test, a_loss_that_was_told_before_the_role_moved_is_not_told_again) {
  {
    process first(*this);
    first.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
    ASSERT_TRUE(first.commits(1, 2, 0, 3));
    first.writer->member_lost(member_id(2), "its link broke");
    first.settle();
  }
  process second(*this);
  world_change how = loss_of("worker-0", clock.now(), clock.now(), false);
  how.lost.push_back({"worker-2", "its link broke"});
  second.writer->goes_on(plan_number(1, 1, 2, {1}), at(2), how);
  ASSERT_TRUE(second.commits(3, 3, 1, 1));
  const auto lost = events("member_lost");
  ASSERT_EQ(lost.size(), 2U);
  EXPECT_EQ(lost[0]["member"], "worker-2");
  EXPECT_EQ(lost[1]["member"], "worker-0");
  EXPECT_THAT(events("recovered")[0]["lost"], ElementsAre("worker-0", "worker-2"));
}

TEST_F(record_writer_test, whoever_opened_the_records_before_the_first_plan_tells_of_visitors) {
  process first(*this);
  EXPECT_EQ(first.end(), nullptr);
  process convener(*this, true);
  convener.writer->visitor_refused("another config");
  convener.settle();
  EXPECT_THAT(shown(), HasSubstr("refused somebody who wanted to join: another config"));
  EXPECT_NE(convener.end(), nullptr) << "a start that comes to nothing has last words";
}

TEST_F(record_writer_test, members_that_come_and_leave_are_told_and_are_no_recovery) {
  process only(*this);
  only.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
  ASSERT_TRUE(only.commits(1, 2, 0, 3));
  world_change how;
  how.joined = {"worker-3", "worker-4"};
  how.left = {"worker-1"};
  only.writer->goes_on(plan_number(1, 0, 2, {0, 2, 3, 4}), at(2), how);
  ASSERT_TRUE(only.commits(3, 3, 1, 4));
  ASSERT_EQ(events("member_joined").size(), 2U);
  EXPECT_EQ(events("member_joined")[1]["member"], "worker-4");
  ASSERT_EQ(events("member_left").size(), 1U);
  EXPECT_EQ(events("member_left")[0]["member"], "worker-1");
  EXPECT_TRUE(events("recovered").empty());
  EXPECT_FALSE(events("generation")[1].contains("recovery"));
  const world_counters& c = only.end()->board().now().counters;
  EXPECT_EQ(c.generations[change_cause::joined], 1U);
  EXPECT_EQ(c.losses[loss_kind::endpoint], 0U);
}

TEST_F(record_writer_test, the_report_of_a_successor_counts_what_happened_before_it) {
  {
    process first(*this);
    first.writer->started(plan_number(0, 0, 0, {0, 1, 2, 3}), at(0));
    ASSERT_TRUE(first.commits(1, 5, 0, 4));
    first.writer->goes_on(plan_number(1, 0, 5, {0, 1, 2}), at(5),
                          loss_of("worker-3", clock.now(), clock.now(), true));
    ASSERT_TRUE(first.commits(6, 8, 1, 3));
    first.writer->validated(8, 2.25, 100);
    first.settle();
  }
  clock.advance(seconds(1));
  process second(*this);
  second.writer->goes_on(plan_number(2, 1, 8, {1, 2}), at(8),
                         loss_of("worker-0", clock.now(), clock.now(), false));
  ASSERT_TRUE(second.commits(9, 10, 2, 2));
  const std::optional<status> finished = second.finish(10);
  ASSERT_TRUE(finished && *finished);
  const nlohmann::json r = report();
  EXPECT_EQ(r["exit"], 0);
  EXPECT_EQ(r["steps"], 10);
  EXPECT_EQ(r["generations"], 3);
  EXPECT_EQ(r["world_min"], 2);
  EXPECT_EQ(r["world_max"], 4);
  EXPECT_EQ(r["steps_redone"], 1);
  EXPECT_EQ(r["committed_steps_lost"], 0);
  EXPECT_EQ(r["val_loss"], 2.25);
  ASSERT_EQ(r["recoveries"].size(), 2U);
  EXPECT_EQ(r["recoveries"][0]["lost"][0], "worker-3");
  EXPECT_EQ(r["recoveries"][1]["lost"][0], "worker-0");
  EXPECT_EQ(r["recoveries"][1]["recovery"], 2);
  EXPECT_NEAR(r["seconds"].get<double>(), 10 * 0.5 + 1, 1e-6);
  EXPECT_NEAR(r["tokens_per_second"].get<double>(), 640 / 5.0, 1e-6);
  EXPECT_NEAR(r["goodput"].get<double>(), 640 / 6.0, 1e-6);
  EXPECT_NEAR(r["effective_time_ratio"].get<double>(), 5.0 / 6, 1e-6);
}

// The first successor dies before it has committed anything.
TEST_F(record_writer_test, a_recovery_that_is_interrupted_is_told_by_whoever_ends_it) {
  five_steps();
  {
    process second(*this);
    second.writer->goes_on(plan_number(1, 1, 5, {1, 2}), at(5),
                           loss_of("worker-0", clock.now(), clock.now(), true));
    second.settle();
  }
  clock.advance(seconds(1));
  process third(*this);
  third.writer->goes_on(plan_number(2, 2, 5, {2}), at(5),
                        loss_of("worker-1", clock.now(), clock.now(), false));
  ASSERT_TRUE(third.commits(6, 6, 2, 1));
  const auto recovered = events("recovered");
  ASSERT_EQ(recovered.size(), 2U);
  EXPECT_EQ(recovered[0]["recovery"], 1);
  EXPECT_EQ(recovered[0]["to"], 2);
  EXPECT_NEAR(recovered[0]["recover_ms"].get<double>(), 1500, 1e-6);
  EXPECT_EQ(recovered[1]["recovery"], 2);
  EXPECT_NEAR(recovered[1]["recover_ms"].get<double>(), 500, 1e-6);
}

TEST_F(record_writer_test, a_plan_from_before_steps_with_lines_counts_them_as_lost_and_redone) {
  process only(*this);
  only.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
  ASSERT_TRUE(only.commits(1, 5, 0, 3));
  only.writer->goes_on(plan_number(1, 0, 3, {0}), at(3),
                       loss_of("worker-1", clock.now(), clock.now(), false));
  ASSERT_TRUE(only.commits(4, 5, 1, 1));
  EXPECT_TRUE(events("recovered").empty()) << "these steps were committed before";
  ASSERT_TRUE(only.commits(6, 6, 1, 1));
  EXPECT_EQ(events("recovered")[0]["step"], 6);
  ASSERT_TRUE(only.finish(6));
  const nlohmann::json r = report();
  EXPECT_EQ(r["committed_steps_lost"], 2);
  EXPECT_EQ(r["steps_redone"], 2);
  EXPECT_EQ(steps().size(), 6U);
  const world_counters& c = only.end()->board().now().counters;
  EXPECT_EQ(c.generations[change_cause::rollback], 1U);
  EXPECT_EQ(c.redone_steps, 2U);
}

TEST_F(record_writer_test, what_was_validated_before_is_not_written_twice) {
  five_steps();
  process second(*this);
  second.writer->goes_on(plan_number(1, 1, 5, {1, 2}), at(5),
                         loss_of("worker-0", clock.now(), clock.now(), false));
  second.writer->validated(4, 2.5, 100);
  second.writer->validated(8, 2.0, 100);
  second.settle();
  ASSERT_EQ(events("validation").size(), 2U);
  EXPECT_EQ(events("validation")[1]["step"], 8);
}

TEST_F(record_writer_test, one_that_rests_writes_nothing_and_knows_all_when_it_is_called_again) {
  process first(*this), second(*this);
  first.writer->member_lost(member_id(1), "told to one that never had the role");
  first.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
  ASSERT_TRUE(first.commits(1, 3, 0, 3));
  first.writer->rests();
  first.settle();
  EXPECT_EQ(first.rests, 1);
  world_change nothing;
  second.writer->goes_on(plan_number(1, 1, 3, {0, 1, 2}), at(3), nothing);
  ASSERT_TRUE(second.commits(4, 6, 1, 3));
  EXPECT_FALSE(first.commit(step_number(4, 0, 3))) << "nobody may be told that it is written";
  second.writer->rests();
  second.settle();
  first.writer->goes_on(plan_number(2, 0, 6, {0, 1, 2}), at(6), nothing);
  ASSERT_TRUE(first.commits(6, 7, 2, 3));
  EXPECT_EQ(steps().size(), 7U);
  EXPECT_TRUE(events("member_lost").empty());
  ASSERT_TRUE(first.finish(7));
  EXPECT_EQ(report()["generations"], 3);
}

// It was never told that it had lost the role, and gets it again.
TEST_F(record_writer_test, one_whose_files_somebody_else_has_written_into_reads_them_again) {
  process first(*this), second(*this);
  world_change nothing;
  first.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
  ASSERT_TRUE(first.commits(1, 3, 0, 3));
  second.writer->goes_on(plan_number(1, 1, 3, {0, 1, 2}), at(3), nothing);
  ASSERT_TRUE(second.commits(4, 6, 1, 3));
  first.writer->goes_on(plan_number(2, 0, 6, {0, 1, 2}), at(6), nothing);
  ASSERT_TRUE(first.commits(6, 7, 2, 3));
  EXPECT_EQ(steps().size(), 7U);
}

TEST_F(record_writer_test, one_that_stood_still_looks_for_its_role_before_it_writes) {
  process first(*this);
  first.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
  ASSERT_TRUE(first.commits(1, 3, 0, 3));
  clock.advance(seconds(5));
  ASSERT_TRUE(first.commits(4, 4, 0, 3)) << "nobody has taken the role";
  first.ours = false;
  ASSERT_TRUE(first.commits(5, 5, 0, 3)) << "there was no pause to look after";
  clock.advance(seconds(5));
  EXPECT_FALSE(first.commit(step_number(6, 0, 3)));
  EXPECT_EQ(steps().size(), 5U);
  EXPECT_EQ(first.rests, 1);
  EXPECT_FALSE(first.finish(6));
  EXPECT_TRUE(events("finished").empty());
  EXPECT_EQ(first.end(), nullptr) << "the last words are the successor's";
}

TEST_F(record_writer_test, records_that_cannot_be_opened_are_an_error_of_the_first_step) {
  write_into_steps("{\"step\":7}\n");
  process second(*this);
  second.writer->goes_on(plan_number(1, 1, 5, {1, 2}), at(5), {});
  const std::optional<status> answered = second.commit(step_number(6, 1, 2));
  ASSERT_TRUE(answered && !*answered);
  EXPECT_THAT(answered->failure().message, HasSubstr("steps.jsonl:1"));
}

TEST_F(record_writer_test, a_heartbeat_shows_what_a_member_does_and_at_which_step) {
  process only(*this);
  only.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
  only.settle();
  clock.advance(seconds(1));
  only.writer->heard_of(member_id(1), {.step = 7, .doing = protocol::phase::validating});
  only.settle();
  const world_status& seen = only.end()->board().now();
  EXPECT_EQ(seen.members[1].phase, protocol::phase::validating);
  EXPECT_EQ(seen.members[1].step, 7U);
  EXPECT_EQ(seen.members[1].heard, clock.wall());
  EXPECT_FALSE(seen.members[2].phase);
}

TEST_F(record_writer_test, a_successor_shows_the_world_as_it_is_now) {
  five_steps();
  process second(*this);
  second.writer->goes_on(plan_number(1, 1, 5, {1, 2}), at(5),
                         loss_of("worker-0", clock.now(), clock.now(), false));
  second.settle();
  const world_status& seen = second.end()->board().now();
  EXPECT_EQ(seen.state, run_state::recovering);
  EXPECT_EQ(seen.generation, 1U);
  EXPECT_EQ(seen.step, 5U);
  EXPECT_EQ(seen.loss, steps().back().loss);
  EXPECT_EQ(seen.val_loss, 2.5);
  ASSERT_EQ(seen.members.size(), 2U);
  EXPECT_EQ(seen.members[0].name, "worker-1");
  EXPECT_EQ(seen.counters.losses[loss_kind::heartbeat], 1U);
  EXPECT_EQ(seen.counters.generations[change_cause::lost], 1U);
}

TEST_F(record_writer_test, time_goes_on_from_process_to_process) {
  five_steps();
  clock.advance(seconds(1));
  process second(*this);
  second.writer->goes_on(plan_number(1, 1, 5, {1, 2}), at(5), {});
  second.settle();
  double before = 0;
  for (const nlohmann::json& e : events("generation")) {
    EXPECT_GE(e["mono"].get<double>(), before);
    before = e["mono"].get<double>();
  }
  EXPECT_NEAR(before, 5 * 0.5 + 1, 1e-6);
}

}  // namespace
}  // namespace troupe::actors
