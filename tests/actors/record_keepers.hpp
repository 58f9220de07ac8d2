// Several processes that keep the records of one run, one after the other or by mistake at once, in
// one directory in memory and by one clock. What the screens show is taken up; shown() gives it.
#pragma once

#include <gmock/gmock.h>

#include <deque>
#include <future>
#include <nlohmann/json.hpp>

#include "actors/record_writer.hpp"
#include "config/base/memory_file.hpp"
#include "tests/model/data/data_files.hpp"

namespace troupe::actors {

// Members 0 to `members` - 1 but for those that are gone.
inline protocol::plan plan_number(std::uint32_t number, std::uint32_t coordinator,
                                  std::uint64_t base, const std::vector<std::uint32_t>& members) {
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

inline committed_step step_number(std::uint64_t step, std::uint32_t plan, std::uint32_t world) {
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

inline starting_point at(std::uint64_t step) {
  starting_point from;
  from.step = step;
  return from;
}

inline world_change loss_of(const std::string& name, time_since_start noticed,
                            time_since_start unblocked, bool redone) {
  world_change how;
  how.lost.push_back({name, "nothing was heard of it for 1000 ms"});
  how.step_redone = redone;
  how.noticed = noticed;
  how.unblocked = unblocked;
  return how;
}

class record_keepers_test : public testing::Test {
 protected:
  // One process that may keep the records.
  class process {
   public:
    explicit process(record_keepers_test& world, bool convenes = false)
        : world_(world), screen_({.terminal = false, .color = false, .quiet = false}) {
      record_writer_settings s;
      s.open = [this] {
        return monitor::open(world_.files, *world_.run, world_.clock, screen_,
                             {.steps = 100, .log_freq = 1, .report_file = ""});
      };
      s.rest = [this] { ++rests; };
      s.still_ours = [this](const protocol::plan&) -> result<bool> { return ours; };
      s.longest_pause = std::chrono::seconds(1);
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
        world_.clock.advance(std::chrono::milliseconds(500));
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
    record_keepers_test& world_;
    console screen_;
    std::deque<std::function<void()>> calls_;  // by the helper thread, and read between its tasks
    helper_thread thread_;                     // ends before what it works for
  };

  record_keepers_test() {
    std::filesystem::create_directories(place / "run");  // for the lock, which the kernel keeps
    result<run_directory> claimed = run_directory::claim(files, place / "run", clock);
    EXPECT_TRUE(claimed) << claimed.failure().message;
    run.emplace(*claimed);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
  }
  ~record_keepers_test() override {
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
  manual_clock clock{wall_time(std::chrono::seconds(86400))};
  std::optional<run_directory> run;
  bool shown_ = false;
};

}  // namespace troupe::actors
