// The probe of the run directory as two members of a start see it, through stores of their own, and
// what of it is left.
#include "actors/file_run_store.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <condition_variable>
#include <deque>
#include <mutex>

#include "actors/run_address.hpp"
#include "config/base/memory_file.hpp"
#include "tests/model/data/data_files.hpp"
#include "tests/support/forwarding_file_system.hpp"

namespace troupe::actors {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t probe = 7;

// The loop's thread: calls of all threads, carried out by the test.
class calls {
 public:
  post_function post() {
    return [this](std::function<void()> call) {
      std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(call));
      there_.notify_one();
    };
  }
  template <class T>
  result<T> wait_for(const std::function<void(run_store::answer<T>)>& question) {
    std::optional<result<T>> got;
    question([&got](const result<T>& r) { got.emplace(r); });
    while (!got) {
      std::unique_lock lock(mutex_);
      there_.wait(lock, [this] { return !waiting_.empty(); });
      const std::function<void()> call = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      call();
    }
    return *got;
  }

 private:
  std::mutex mutex_;
  std::condition_variable there_;
  std::deque<std::function<void()>> waiting_;
};

probed_member member_number(std::uint32_t i) {
  return {member_id(i), fmt::format("life-{}", i), fmt::format("worker-{}", i),
          fmt::format("host{}", i)};
}

// One member: its process's thread and store.
class store_of {
 public:
  store_of(file_system& files, const run_directory& directory, std::uint32_t number,
           std::chrono::milliseconds patience = {})
      : me(member_number(number)),
        store_(files, directory, layout_, thread_, loop_.post(),
               {.start = {},
                .checkpoints = "",
                .http_port =
                    [this] {
                      ++ports_opened;
                      return static_cast<std::uint16_t>(4000 + me.id.value);
                    },
                .ask_again = std::chrono::milliseconds(1),
                .probe_patience = patience,
                .about = {}}) {}

  result<done> ask() {
    return loop_.wait_for<done>([&](auto then) { store_.ask_probe(probe, then); });
  }
  result<done> answer() {
    return loop_.wait_for<done>([&](auto then) { store_.answer_probe(probe, me, then); });
  }
  result<done> judge(std::uint32_t members) {
    std::vector<probed_member> all;
    for (std::uint32_t i = 0; i < members; ++i) all.push_back(member_number(i));
    return loop_.wait_for<done>([&](auto then) { store_.judge_probe(probe, all, then); });
  }
  result<done> announce(const comm::address& here, generation plan = {}) {
    return loop_.wait_for<done>([&](auto then) { store_.announce(here, plan, then); });
  }
  result<comm::address> find_convener() {
    return loop_.wait_for<comm::address>([&](auto then) { store_.find_convener(then); });
  }

  const probed_member me;
  int ports_opened = 0;

 private:
  model::model_layout layout_;
  calls loop_;
  helper_thread thread_;
  file_run_store store_;
};

class file_run_store_test : public testing::Test {
 protected:
  file_run_store_test() {
    result<run_directory> claimed = run_directory::claim(disk, place / "run", clock);
    EXPECT_TRUE(claimed) << claimed.failure().message;
    run.emplace(*claimed);
  }
  std::vector<std::string> probes() {
    std::vector<std::string> names;
    const auto entries = disk.list(run->path());
    for (const directory_entry& e : *entries) {
      if (e.name.starts_with("probe-")) names.push_back(e.name);
    }
    return names;
  }

  model::data::folder place;
  manual_clock clock;
  file_system& disk = real_file_system();
  std::optional<run_directory> run;
};

TEST_F(file_run_store_test,
       a_directory_that_two_members_share_is_fit_and_keeps_nothing_of_the_probe) {
  store_of first(disk, *run, 0), second(disk, *run, 1);
  ASSERT_TRUE(first.ask());
  ASSERT_TRUE(second.answer());
  const result<done> fit = first.judge(2);
  EXPECT_TRUE(fit) << fit.failure().message;
  EXPECT_THAT(probes(), IsEmpty());
}

TEST_F(file_run_store_test, a_new_question_removes_what_a_start_that_died_has_left) {
  ASSERT_TRUE(make_directories(disk, run->file("probe-3")));
  ASSERT_TRUE(replace(disk, run->file("probe-3/question"), "old"));
  store_of first(disk, *run, 0);
  ASSERT_TRUE(first.ask());
  EXPECT_THAT(probes(), testing::ElementsAre("probe-7"));
}

// link() replaces what is there, as rename() does.
class lets_two_win : public forwarding_file_system {
 public:
  using forwarding_file_system::forwarding_file_system;
  result<bool> link(const std::string& from, const std::string& to) override {
    (void)below_.remove(to);
    return below_.link(from, to);
  }
};

TEST_F(file_run_store_test,
       a_directory_that_lets_two_win_is_refused_with_its_name_and_both_members) {
  lets_two_win twice(disk);
  store_of first(twice, *run, 0), second(twice, *run, 1);
  ASSERT_TRUE(first.ask());
  ASSERT_TRUE(second.answer());
  const result<done> fit = first.judge(2);
  ASSERT_FALSE(fit);
  EXPECT_EQ(fit.failure().code, exit_code::cannot_use);
  EXPECT_THAT(fit.failure().message, AllOf(HasSubstr(run->path()), HasSubstr("worker-0 on host0"),
                                           HasSubstr("worker-1 on host1"), HasSubstr("--run-dir")));
  EXPECT_THAT(probes(), IsEmpty());
}

TEST_F(file_run_store_test,
       a_member_that_has_another_disk_at_the_same_path_is_named_by_both_sides) {
  memory_file_system elsewhere;
  ASSERT_TRUE(make_directories(elsewhere, run->path()));
  store_of first(disk, *run, 0), second(elsewhere, *run, 1);
  ASSERT_TRUE(first.ask());
  for (const result<done>& said : {second.answer(), first.judge(2)}) {
    ASSERT_FALSE(said);
    EXPECT_EQ(said.failure().code, exit_code::cannot_use);
    EXPECT_THAT(said.failure().message,
                AllOf(HasSubstr(run->path()), HasSubstr("worker-1 on host1")));
  }
}

// Something happens at the third look at a file.
class meanwhile : public forwarding_file_system {
 public:
  meanwhile(file_system& below, std::string name, std::function<void()> what)
      : forwarding_file_system(below), name_(std::move(name)), what_(std::move(what)) {}
  result<bool> exists(const std::string& path) override {
    if (path.ends_with(name_) && ++looks_ == 3) what_();
    return below_.exists(path);
  }

 private:
  std::string name_;
  std::function<void()> what_;
  int looks_ = 0;
};

TEST_F(file_run_store_test, a_member_that_answers_late_is_waited_for) {
  meanwhile slow(disk, "answer-1",
                 [this] { EXPECT_TRUE(answer_probe(disk, run->path(), "7", member_number(1))); });
  store_of first(slow, *run, 0, std::chrono::minutes(1));
  ASSERT_TRUE(first.ask());
  const result<done> fit = first.judge(2);
  EXPECT_TRUE(fit) << fit.failure().message;
}

TEST_F(file_run_store_test,
       a_member_that_takes_the_role_replaces_the_address_and_an_older_one_does_not) {
  store_of first(disk, *run, 0), second(disk, *run, 1);
  EXPECT_EQ(second.ports_opened, 0);
  ASSERT_TRUE(first.announce({"10.0.0.7", 4711}));
  ASSERT_TRUE(second.announce({"10.0.0.8", 4712}, generation(3)));
  const run_address now{.run_id = run->run_id(),
                        .plan = generation(3),
                        .host = "10.0.0.8",
                        .port = 4712,
                        .http_port = 4001};
  EXPECT_EQ(**read_address(disk, run->path()), now);
  EXPECT_EQ(second.ports_opened, 1);
  EXPECT_TRUE(first.announce({"10.0.0.7", 4711}, generation(2)));  // it stood still meanwhile
  EXPECT_EQ(**read_address(disk, run->path()), now);
}

TEST_F(file_run_store_test, the_address_of_another_run_is_not_followed) {
  const run_address copied{.run_id = "another", .plan = {}, .host = "10.0.0.1", .port = 1};
  ASSERT_TRUE(publish_address(disk, run->path(), copied));
  store_of first(disk, *run, 0);
  meanwhile found(disk, "address", [&] { EXPECT_TRUE(first.announce({"10.0.0.7", 4711})); });
  store_of second(found, *run, 1);
  const result<comm::address> convener = second.find_convener();
  ASSERT_TRUE(convener) << convener.failure().message;
  EXPECT_EQ(comm::to_text(*convener), "10.0.0.7:4711");
}

}  // namespace
}  // namespace troupe::actors
