#include "actors/loop.hpp"

#include <gmock/gmock.h>

#include <caf/all.hpp>
#include <string>
#include <thread>
#include <vector>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

struct note {
  std::string text;
};

}  // namespace
}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::note)

namespace troupe::actors {
namespace {

// Remembers what it is told, with the loop's time.
struct diary {
  std::vector<std::string>* lines;
  const clock_source* clock;
};

caf::behavior write_down(caf::stateful_actor<diary>* self, std::vector<std::string>* lines,
                         const clock_source* clock) {
  self->state = {lines, clock};
  return {[self](const note& n) {
    self->state.lines->push_back(n.text + " at " + std::to_string(self->state.clock->now() / 1ms));
  }};
}

TEST(loop, runs_actors_only_when_its_owner_says_so) {
  manual_clock clock;
  loop one(clock);
  std::vector<std::string> lines;
  const caf::actor writer = one.system().spawn(write_down, &lines, &clock);
  caf::anon_send(writer, note{"a"});
  caf::anon_send(writer, note{"b"});
  EXPECT_TRUE(lines.empty());
  EXPECT_TRUE(one.run_ready());
  EXPECT_THAT(lines, ElementsAre("a at 0", "b at 0"));
  EXPECT_FALSE(one.run_ready());
  caf::anon_send_exit(writer, caf::exit_reason::kill);
}

TEST(loop, keeps_timers_by_the_clock_it_was_given) {
  manual_clock clock;
  loop one(clock);
  std::vector<std::string> lines;
  const caf::actor writer = one.system().spawn(write_down, &lines, &clock);
  caf::scoped_actor self(one.system());
  self->delayed_send(writer, 2s, note{"late"});
  self->delayed_send(writer, 1s, note{"early"});
  EXPECT_EQ(one.next_timer(), time_since_start(1s));
  one.run_ready();
  EXPECT_TRUE(lines.empty());
  clock.advance(1s);
  one.run_ready();
  EXPECT_THAT(lines, ElementsAre("early at 1000"));
  EXPECT_EQ(one.next_timer(), time_since_start(2s));
  clock.advance(5s);
  one.run_ready();
  EXPECT_THAT(lines, ElementsAre("early at 1000", "late at 6000"));
  EXPECT_EQ(one.next_timer(), std::nullopt);
  caf::anon_send_exit(writer, caf::exit_reason::kill);
}

TEST(loop, keeps_timers_when_the_wall_clock_jumps) {
  manual_clock clock;
  loop one(clock);
  std::vector<std::string> lines;
  const caf::actor writer = one.system().spawn(write_down, &lines, &clock);
  caf::scoped_actor self(one.system());
  self->delayed_send(writer, 2s, note{"in time"});
  for (const std::chrono::nanoseconds jump : {1h, -2h}) {
    clock.jump_wall(jump);
    one.run_ready();
    EXPECT_THAT(lines, testing::IsEmpty());
    EXPECT_EQ(one.next_timer(), time_since_start(2s));
  }
  clock.advance(2s);
  one.run_ready();
  EXPECT_THAT(lines, ElementsAre("in time at 2000"));
  caf::anon_send_exit(writer, caf::exit_reason::kill);
}

TEST(loop, takes_work_from_other_threads_in_their_order) {
  manual_clock clock;
  loop one(clock);
  int woken = 0;
  one.on_post([&] { ++woken; });
  std::vector<int> seen;
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) one.post([&seen, i] { seen.push_back(i); });
  });
  other.join();
  EXPECT_EQ(woken, 100);
  EXPECT_TRUE(seen.empty());
  one.run_ready();
  ASSERT_EQ(seen.size(), 100u);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
}

TEST(loop, leaves_after_the_job_that_says_so_and_goes_on_with_the_others_in_their_order) {
  manual_clock clock;
  loop one(clock);
  std::vector<std::string> lines;
  const caf::actor writer = one.system().spawn(write_down, &lines, &clock);
  caf::anon_send(writer, note{"of an actor"});
  one.post([&] { lines.emplace_back("first"); });
  one.post([&] {
    one.leave();
    lines.emplace_back("leaves");
  });
  one.post([&] { lines.emplace_back("waits"); });
  EXPECT_TRUE(one.run_ready());
  EXPECT_THAT(lines, ElementsAre("first", "leaves"));
  one.post([&] { lines.emplace_back("later"); });
  EXPECT_TRUE(one.run_ready());
  EXPECT_THAT(lines, ElementsAre("first", "leaves", "waits", "later", "of an actor at 0"));
  caf::anon_send_exit(writer, caf::exit_reason::kill);
}

TEST(loop, counts_handlers_that_take_too_long) {
  manual_clock clock;
  loop one(clock);
  one.post([&] { clock.advance(4ms); });
  one.run_ready();
  EXPECT_EQ(one.slow_jobs(), 0u);
  one.post([&] { clock.advance(7ms); });
  one.run_ready();
  EXPECT_EQ(one.slow_jobs(), 1u);
  EXPECT_NEAR(one.longest_job(), 0.007, 1e-9);
}

TEST(loop, ends_with_actors_that_still_have_messages_and_timers) {
  manual_clock clock;
  std::vector<std::string> lines;
  {
    loop one(clock);
    const caf::actor writer = one.system().spawn(write_down, &lines, &clock);
    caf::scoped_actor self(one.system());
    self->delayed_send(writer, 1h, note{"never"});
    caf::anon_send(writer, note{"a"});
    caf::anon_send_exit(writer, caf::exit_reason::kill);
  }
  EXPECT_THAT(lines, testing::AnyOf(ElementsAre(), ElementsAre("a at 0")));
}

}  // namespace
}  // namespace troupe::actors
