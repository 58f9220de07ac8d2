// Which slot a worker takes, and whether it begins a world or enters one.
#include "actors/cli/worker_wish.hpp"

#include <unistd.h>

#include "actors/plan_chain.hpp"
#include "tests/actors/protocol/random_world.hpp"
#include "tests/model/data/data_files.hpp"

namespace troupe::actors::cli {
namespace {

using model::data::expect_error;
using model::data::folder;

class worker_wish_test : public testing::Test {
 protected:
  result<run_directory> enter(const worker_wish& wish) {
    return wish.enter(real_file_system(), path, clock);
  }
  result<place_in_world> place_of(const worker_wish& wish) {
    const auto run = enter(wish);
    EXPECT_TRUE(run) << (run ? "" : run.failure().message);
    if (!run) return run.failure();
    return wish.place_in(real_file_system(), *run);
  }
  run_directory claimed() { return *run_directory::claim(real_file_system(), path, clock); }
  // worker-0, worker-1, ... without those that are left out.
  void publish_plan(const run_directory& run, const std::vector<std::string>& names) {
    auto chain = plan_chain::open(real_file_system(), path, run.run_id());
    ASSERT_TRUE(chain) << chain.failure().message;
    auto in = protocol::equal_world(static_cast<std::uint32_t>(names.size()), 8, 2, 4, 1);
    in.run_id = run.run_id();
    in.number = chain->next_number();
    in.parent = chain->head_hash();
    in.reason = "for the test";
    in.verdict = "start";
    protocol::plan p = protocol::make_plan(in);
    for (std::size_t i = 0; i < names.size(); ++i) p.members[i].name = names[i];
    const auto published = chain->publish(p);
    ASSERT_TRUE(published) << published.failure().message;
  }

  folder place;
  std::string path = place / "run";
  manual_clock clock{wall_time(std::chrono::seconds(86400))};
};

TEST_F(worker_wish_test, without_anything_it_begins_a_run_of_its_own_as_worker_0) {
  const auto p = place_of({});
  ASSERT_TRUE(p);
  EXPECT_EQ(p->slot, 0u);
  EXPECT_EQ(p->name, "worker-0");
  EXPECT_EQ(p->expected, 1u);
  EXPECT_FALSE(p->joins);
}

TEST_F(worker_wish_test, worker_0_of_a_free_directory_begins_with_as_many_as_were_said) {
  const auto p = place_of({.name = "worker-0", .world = 4});
  ASSERT_TRUE(p);
  EXPECT_EQ(p->expected, 4u);
  EXPECT_FALSE(p->joins);
}

TEST_F(worker_wish_test, on_a_directory_that_is_held_everybody_joins_and_takes_no_lock) {
  const run_directory held = claimed();
  for (const std::string name : {"worker-0", "worker-1", "worker-40"}) {
    const worker_wish wish{.name = name};
    const auto run = enter(wish);
    ASSERT_TRUE(run) << run.failure().message;
    EXPECT_EQ(run->lock_fd(), -1);
    EXPECT_EQ(run->run_id(), held.run_id());
    const auto p = wish.place_in(real_file_system(), *run);
    ASSERT_TRUE(p);
    EXPECT_TRUE(p->joins);
    EXPECT_EQ(p->name, name);
  }
}

// Workers of several machines, without a launcher: worker-0 has the directory.
TEST_F(worker_wish_test, whoever_says_how_many_start_together_begins_with_them) {
  const run_directory held = claimed();
  const worker_wish wish{.name = "worker-1", .world = 4};
  const auto run = enter(wish);
  ASSERT_TRUE(run) << run.failure().message;
  const auto p = wish.place_in(real_file_system(), *run);
  ASSERT_TRUE(p);
  EXPECT_FALSE(p->joins);
  EXPECT_EQ(p->expected, 4u);
}

TEST_F(worker_wish_test, who_is_not_worker_0_leaves_a_free_directory_to_worker_0) {
  { const run_directory made = claimed(); }
  const worker_wish early{.name = "worker-4"};
  const auto waiting = enter(early);
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->lock_fd(), -1);
  const auto p = place_of({.name = "worker-0"});
  ASSERT_TRUE(p);
  EXPECT_FALSE(p->joins);
}

TEST_F(worker_wish_test, join_never_begins_a_run_not_even_as_worker_0) {
  expect_error(enter({.name = "worker-0", .joins = true}), exit_code::cannot_use, {"no run.json"});
  { const run_directory made = claimed(); }
  const auto p = place_of({.name = "worker-0", .joins = true});
  ASSERT_TRUE(p);
  EXPECT_TRUE(p->joins);
}

TEST_F(worker_wish_test, what_a_launcher_starts_has_its_lock_and_joins_only_if_told) {
  const run_directory launcher = claimed();
  for (const bool joins : {false, true}) {
    const worker_wish wish{
        .name = "worker-0", .world = 3, .lock_fd = dup(launcher.lock_fd()), .joins = joins};
    const auto run = enter(wish);
    ASSERT_TRUE(run);
    EXPECT_EQ(run->lock_fd(), wish.lock_fd);
    EXPECT_EQ(wish.place_in(real_file_system(), *run)->joins, joins);
  }
}

TEST_F(worker_wish_test, without_a_name_it_takes_the_lowest_slot_that_the_newest_plan_leaves_free) {
  const run_directory held = claimed();
  EXPECT_EQ(place_of({})->name, "worker-0") << "there is no plan yet";
  publish_plan(held, {"worker-0", "worker-1", "worker-2"});
  EXPECT_EQ(place_of({})->name, "worker-3");
  EXPECT_EQ(place_of({})->slot, 3u);
  publish_plan(held, {"worker-0", "worker-2", "worker-3"});
  EXPECT_EQ(place_of({})->name, "worker-1");
  publish_plan(held, {"worker-1", "worker-2", "worker-3"});
  EXPECT_EQ(place_of({})->name, "worker-0");
  EXPECT_TRUE(place_of({})->joins);
}

TEST_F(worker_wish_test, a_slot_that_there_is_not_is_refused) {
  for (const std::string name : {"worker", "worker-", "worker-x", "worker-03", "worker-3x",
                                 "worker--1", "worker-99999999999", "rank-3"}) {
    expect_error(worker_wish{.name = name}.check(), exit_code::usage, {name, "worker-0, worker-1"});
  }
  expect_error(worker_wish{.name = "worker-3", .world = 3}.check(), exit_code::usage,
               {"world of 3", "worker-0 to worker-2"});
  expect_error(worker_wish{.name = "worker-3", .world = 3, .lock_fd = -1, .joins = true}.check(),
               exit_code::usage, {"world of 3"});
  expect_error(worker_wish{.name = "worker-1", .lock_fd = 7}.check(), exit_code::usage,
               {"world of 1"});
  EXPECT_TRUE((worker_wish{.name = "worker-7", .lock_fd = 7, .joins = true}.check()));
  EXPECT_TRUE((worker_wish{.name = "worker-7"}.check()));
  EXPECT_TRUE((worker_wish{.name = "worker-2", .world = 3}.check()));
  EXPECT_TRUE(worker_wish{}.check());
}

}  // namespace
}  // namespace troupe::actors::cli
