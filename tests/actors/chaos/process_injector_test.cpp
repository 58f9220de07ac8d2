// Real processes: a shell that runs a script named "worker" looks to the injector like a worker.
#include "actors/chaos/process_injector.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "config/base/clock.hpp"

namespace troupe::actors::chaos {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class process_injector_test : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/troupe-injector-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    std::filesystem::current_path(folder_);
    // `kill -0 $PPID`: it must not outlive the test.
    std::ofstream("worker") << "trap 'exit 75' TERM\necho ready >>ready-$2\n"
                               "while kill -0 $PPID 2>/dev/null; do sleep 0.02; done\n";
    auto output = output_file::make();
    ASSERT_TRUE(output);
    output_.emplace(std::move(*output));
    injector_ = std::make_unique<process_injector>(
        injector_settings{"/bin/sh", folder_.string(), 2, 1}, output_->fd());
  }
  void TearDown() override {
    injector_.reset();
    for (held_process& p : workers_) {
      p.send(SIGKILL);
      (void)p.reap();
    }
    std::filesystem::current_path("/tmp");
    std::filesystem::remove_all(folder_);
  }

  int start(const std::string& name) {
    auto started = start_program("/bin/sh", {"troupe", "worker", "--name", name}, output_->fd());
    EXPECT_TRUE(started);
    workers_.push_back(std::move(*started));
    const int id = workers_.back().id();
    until([&] { return std::filesystem::exists(folder_ / ("ready-" + name)); });
    injector_->find_workers({id});
    return id;
  }

  static void until(const std::function<bool()>& there) {
    const auto begin = real_clock().now();
    while (!there()) {
      ASSERT_LT(real_clock().now() - begin, 20s) << "it never came";
      usleep(1000);
    }
  }

  static injection of(fault_kind kind, parameters params = {}) {
    injection what;
    what.which = {"f", 1};
    what.kind = kind;
    what.params = std::move(params);
    return what;
  }

  // Looks until something is told.
  happening next(const std::set<std::string>& planned = {}) {
    std::vector<happening> news;
    until([&] {
      news = injector_->look(real_clock().now(), planned);
      return !news.empty();
    });
    return news.empty() ? happening(time_passed{}) : news.front();
  }

  std::filesystem::path folder_;
  std::optional<output_file> output_;
  std::vector<held_process> workers_;
  std::unique_ptr<process_injector> injector_;
};

TEST_F(process_injector_test, finds_workers_by_their_names_and_nobody_else) {
  start("worker-0");
  injector_->find_workers({getpid(), 1});
  EXPECT_THAT(injector_->running(), ElementsAre("worker-0"));
  EXPECT_EQ(injector_->process_of("worker-1"), nullptr);
}

TEST_F(process_injector_test, kills_and_proves_it_by_the_end_of_the_process) {
  start("worker-0");
  start("worker-1");
  injector_->begin(of(fault_kind::kill), {"worker-1"}, real_clock().now());
  EXPECT_TRUE(std::holds_alternative<fault_began>(next()));
  EXPECT_THAT(injector_->running(), ElementsAre("worker-0"));
  EXPECT_EQ(workers_[1].reap(), 128 + SIGKILL);
  workers_.pop_back();
  EXPECT_EQ(injector_->faults().at(0).proof, "worker-1 is gone");
}

TEST_F(process_injector_test, drains_and_proves_it_by_the_launchers_words_and_the_plan) {
  // "sh drain NAME DIR": the command of a launcher that does not exist here.
  std::ofstream("drain") << "echo asked >asked-$1\n";
  const int id = start("worker-1");
  injector_->begin(of(fault_kind::drain), {"worker-1"}, real_clock().now());
  until([&] { return std::filesystem::exists(folder_ / "asked-worker-1"); });
  const auto look = [&](const std::set<std::string>& planned) {
    return injector_->look(real_clock().now(), planned);
  };
  workers_[0].send(SIGTERM);
  until([&] { return workers_[0].ended(); });
  EXPECT_THAT(look({}), IsEmpty()) << "nobody has said how it ended";
  const std::string words = "troupe: worker-1 (process " + std::to_string(id) + ") has left\n";
  ASSERT_EQ(write(output_->fd(), words.data(), words.size()), std::ssize(words));
  EXPECT_THAT(look({"worker-1"}), IsEmpty()) << "the plan still names it";
  EXPECT_TRUE(std::holds_alternative<fault_began>(next()));
  EXPECT_EQ(injector_->faults().at(0).proof, "worker-1 ended with 0 and stands in no plan");
}

TEST_F(process_injector_test, stops_proves_the_state_and_lets_go_on) {
  const int id = start("worker-0");
  injector_->begin(of(fault_kind::stop), {"worker-0"}, real_clock().now());
  EXPECT_TRUE(std::holds_alternative<fault_began>(next()));
  EXPECT_EQ(look_at(id)->state, 'T');
  EXPECT_THAT(injector_->running(), IsEmpty()) << "who stands still does not run";
  injector_->end({"f", 1}, real_clock().now());
  until([&] { return look_at(id)->state != 'T'; });
  EXPECT_THAT(injector_->running(), ElementsAre("worker-0"));
  EXPECT_TRUE(injector_->faults().at(0).over);
}

TEST_F(process_injector_test, says_that_a_stop_is_over_when_its_process_is_killed) {
  start("worker-0");
  injector_->begin(of(fault_kind::stop), {"worker-0"}, real_clock().now());
  EXPECT_TRUE(std::holds_alternative<fault_began>(next()));
  workers_[0].send(SIGKILL);
  EXPECT_TRUE(std::holds_alternative<fault_over>(next()));
}

TEST_F(process_injector_test, gives_notice_and_kills_after_the_grace) {
  start("worker-0");
  injector_->begin(of(fault_kind::notice, {{"signal", std::string("TERM")}}), {"worker-0"},
                   real_clock().now());
  EXPECT_TRUE(std::holds_alternative<fault_began>(next()));
  EXPECT_EQ(workers_[0].reap(), 75) << "it left politely";
  workers_.clear();
  // Nobody listens to USR1 here, except that the shell dies of it; a stopped one does not.
  const int id = start("worker-1");
  ASSERT_TRUE(workers_[0].send(SIGSTOP));
  until([&] { return look_at(id)->state == 'T'; });
  injector_->begin(of(fault_kind::notice, {{"grace", duration(20ms)}}), {"worker-1"},
                   real_clock().now());
  until([&] {
    (void)injector_->look(real_clock().now(), {});
    return workers_[0].ended();
  });
  EXPECT_EQ(workers_[0].reap(), 128 + SIGKILL);
  workers_.clear();
  EXPECT_THAT(injector_->faults().at(1).proof, HasSubstr("killed after its grace"));
}

TEST_F(process_injector_test, steals_time_with_children_that_end_with_the_fault) {
  injector_->begin(of(fault_kind::cpu_steal, {{"threads", std::int64_t{2}}}), {"worker-0"},
                   real_clock().now());
  EXPECT_EQ(children_of(getpid()).size(), 2u);
  EXPECT_TRUE(std::holds_alternative<fault_began>(next()));
  injector_->heal(real_clock().now());
  EXPECT_THAT(children_of(getpid()), IsEmpty());
}

TEST_F(process_injector_test, a_join_is_proven_by_the_plan) {
  injector_->begin(of(fault_kind::join), {}, real_clock().now());
  EXPECT_THAT(injector_->running(), ElementsAre("worker-2")) << "the first number that is free";
  EXPECT_THAT(injector_->look(real_clock().now(), {"worker-0", "worker-1"}), IsEmpty());
  EXPECT_TRUE(std::holds_alternative<fault_began>(next({"worker-0", "worker-1", "worker-2"})));
  EXPECT_EQ(injector_->faults().at(0).proof, "worker-2 stands in the plan");
}

TEST_F(process_injector_test, a_joiner_that_ends_early_has_not_joined) {
  std::ofstream("worker") << "exit 64\n";
  injector_->begin(of(fault_kind::join), {}, real_clock().now());
  EXPECT_TRUE(std::holds_alternative<fault_failed>(next({"worker-0"})));
  EXPECT_THAT(injector_->faults().at(0).proof, HasSubstr("ended before it stood in the plan"));
  EXPECT_FALSE(injector_->faults().at(0).proven);
}

TEST_F(process_injector_test, has_no_proof_of_what_struck_nobody) {
  const auto now = real_clock().now();
  injector_->begin(of(fault_kind::kill), {"worker-7"}, now);
  EXPECT_THAT(injector_->look(now + 1s, {}), IsEmpty());
  const auto news = injector_->look(now + 11s, {});
  ASSERT_EQ(news.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<fault_failed>(news.front()));
  EXPECT_THAT(injector_->faults().at(0).proof, HasSubstr("no sign of it within 10s"));
}

}  // namespace
}  // namespace troupe::actors::chaos
