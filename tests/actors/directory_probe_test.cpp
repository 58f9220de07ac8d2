// Directories that are fit for a run, and three kinds that are not.
#include "actors/directory_probe.hpp"

#include <gmock/gmock.h>

#include <thread>

#include "config/base/faulty_file.hpp"
#include "config/base/memory_file.hpp"
#include "tests/support/forwarding_file_system.hpp"

namespace troupe::actors {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<probed_member> members(std::uint32_t n) {
  std::vector<probed_member> all;
  for (std::uint32_t i = 0; i < n; ++i) {
    all.push_back({member_id(i), "life-" + std::to_string(i), "worker-" + std::to_string(i),
                   "host" + std::to_string(i)});
  }
  return all;
}

class directory_probe : public testing::Test {
 protected:
  directory_probe() {
    EXPECT_TRUE(make_directories(disk, "/run"));
    EXPECT_TRUE(ask_probe(disk, "/run", "p1", "xyzzy"));
  }
  probe_verdict judged(std::uint32_t n) {
    return judge(read_probe(disk, "/run", "p1", "xyzzy", members(n)));
  }
  void answer(file_system& files, std::uint32_t member) {
    ASSERT_TRUE(answer_probe(files, "/run", "p1", members(member + 1).back()));
  }
  memory_file_system disk;
};

TEST_F(directory_probe, a_shared_directory_passes_and_nothing_is_left) {
  for (std::uint32_t i = 0; i < 3; ++i) answer(disk, i);
  const probe_verdict v = judged(3);
  EXPECT_FALSE(v.refused);
  EXPECT_THAT(v.sees_it, ElementsAre(true, true, true));
  EXPECT_TRUE(v.warnings.empty());
  EXPECT_TRUE(end_probe(disk, "/run", "p1"));
  EXPECT_TRUE(disk.list("/run")->empty());
}

TEST_F(directory_probe, racing_threads_have_one_winner_each_time) {
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < 8; ++i) threads.emplace_back([this, i] { answer(disk, i); });
  for (std::thread& t : threads) t.join();
  const probe_verdict v = judged(8);
  EXPECT_FALSE(v.refused) << v.refused->message;
  EXPECT_TRUE(v.warnings.empty());
}

TEST_F(directory_probe, a_single_member_passes_alone) {
  answer(disk, 0);
  EXPECT_FALSE(judged(1).refused);
  EXPECT_THAT(judged(1).sees_it, ElementsAre(true));
}

TEST_F(directory_probe, a_member_with_a_private_disk_is_named_and_says_so_itself) {
  memory_file_system elsewhere;
  ASSERT_TRUE(make_directories(elsewhere, "/run"));
  answer(disk, 0);
  answer(disk, 2);
  const status blind = answer_probe(elsewhere, "/run", "p1", members(2).back());
  ASSERT_FALSE(blind);
  EXPECT_THAT(blind.failure().message, HasSubstr("worker-1 on host1 does not see in /run"));
  const probe_verdict v = judged(3);
  EXPECT_FALSE(v.refused);
  EXPECT_THAT(v.sees_it, ElementsAre(true, false, true));
  ASSERT_EQ(v.warnings.size(), 1u);
  EXPECT_THAT(v.warnings[0], HasSubstr("worker-1 on host1 does not share the run directory /run"));
  EXPECT_THAT(v.warnings[0], HasSubstr("no answer of it appeared"));
}

TEST_F(directory_probe, an_old_question_on_another_disk_does_not_count) {
  memory_file_system elsewhere;
  ASSERT_TRUE(make_directories(elsewhere, "/run"));
  ASSERT_TRUE(ask_probe(elsewhere, "/run", "p1", "older"));
  answer(disk, 0);
  answer(elsewhere, 1);
  const std::string copied = *read_file(elsewhere, "/run/probe-p1/answer-1", 1 << 16);
  ASSERT_TRUE(replace(disk, "/run/probe-p1/answer-1", copied));
  const probe_verdict v = judged(2);
  EXPECT_FALSE(v.refused);
  EXPECT_THAT(v.sees_it, ElementsAre(true, false));
  EXPECT_THAT(v.warnings.at(0), HasSubstr("another question"));
}

TEST_F(directory_probe, another_process_cannot_answer_for_a_member) {
  answer(disk, 0);
  probed_member ghost = members(2).back();
  ghost.identity = "an earlier life";
  ASSERT_TRUE(answer_probe(disk, "/run", "p1", ghost));
  const probe_verdict v = judged(2);
  EXPECT_THAT(v.sees_it, ElementsAre(true, false));
  EXPECT_THAT(v.warnings.at(0), HasSubstr("another process"));
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

TEST_F(directory_probe, a_directory_that_lets_two_win_is_refused_with_both_names) {
  lets_two_win files(disk);
  answer(files, 0);
  answer(files, 1);
  const probe_verdict v = judged(2);
  ASSERT_TRUE(v.refused);
  EXPECT_EQ(v.refused->code, exit_code::cannot_use);
  EXPECT_THAT(v.refused->message, HasSubstr("both worker-0 on host0 and worker-1 on host1"));
  EXPECT_THAT(v.refused->message, HasSubstr("--run-dir"));
}

TEST_F(directory_probe, one_broken_race_of_many_is_enough) {
  probe_facts facts;
  facts.directory = "/run";
  facts.secret = "s";
  facts.members = members(3);
  facts.why_none.resize(3);
  facts.holders = {"life-0", "life-1"};
  for (std::uint32_t i = 0; i < 3; ++i) {
    facts.answers.push_back(
        probe_answer{"s", "life-" + std::to_string(i), {{i == 0, "life-0"}, {i == 1, "life-1"}}});
  }
  EXPECT_FALSE(judge(facts).refused);
  probe_facts two = facts;
  two.answers[2]->races[1].told_won = true;
  EXPECT_THAT(judge(two).refused->message, HasSubstr("worker-1 on host1 and worker-2 on host2"));
  probe_facts other = facts;
  other.answers[2]->races[1].holder = "life-0";
  EXPECT_THAT(judge(other).refused->message, HasSubstr("worker-2 on host2 reads another content"));
  probe_facts blank = facts;
  blank.answers[2]->races[0].holder = "";
  EXPECT_THAT(judge(blank).refused->message, HasSubstr("worker-2 on host2 reads another content"));
  probe_facts overwritten = facts;
  overwritten.holders[0] = "life-2";
  for (std::uint32_t i = 1; i < 3; ++i) overwritten.answers[i].reset();
  EXPECT_THAT(judge(overwritten).refused->message, HasSubstr("worker-0 on host0 had made was"));
  probe_facts foreign = facts;
  foreign.holders[0] = "somebody";
  EXPECT_THAT(judge(foreign).refused->message, HasSubstr("which no member has written"));
  probe_facts none = facts;
  none.holders[1] = "";
  EXPECT_THAT(judge(none).refused->message, HasSubstr("is not there"));
}

TEST_F(directory_probe, a_winner_that_died_before_it_answered_is_no_reason_to_refuse) {
  faulty_file_system dying(disk);
  dying.inject({.operation = file_operation::rename, .kind = fault_kind::crash});
  EXPECT_FALSE(answer_probe(dying, "/run", "p1", members(1).front()));
  answer(disk, 1);
  const probe_verdict v = judged(2);
  EXPECT_FALSE(v.refused);
  EXPECT_THAT(v.sees_it, ElementsAre(false, true));
}

// The link is made, and the answer is an error.
class loses_replies : public forwarding_file_system {
 public:
  using forwarding_file_system::forwarding_file_system;
  result<bool> link(const std::string& from, const std::string& to) override {
    (void)below_.link(from, to);
    return error{exit_code::io, "reply lost"};
  }
};

TEST_F(directory_probe, lost_replies_are_no_reason_to_refuse) {
  loses_replies files(disk);
  answer(files, 0);
  answer(files, 1);
  const probe_verdict v = judged(2);
  EXPECT_FALSE(v.refused) << v.refused->message;
  EXPECT_THAT(v.sees_it, ElementsAre(true, true));
}

TEST_F(directory_probe, a_damaged_answer_is_told_with_its_file) {
  answer(disk, 0);
  answer(disk, 1);
  ASSERT_TRUE(replace(disk, "/run/probe-p1/answer-1", "{"));
  const probe_verdict v = judged(2);
  EXPECT_THAT(v.sees_it, ElementsAre(true, false));
  EXPECT_THAT(v.warnings.at(0), HasSubstr("/run/probe-p1/answer-1"));
}

TEST_F(directory_probe, where_nobody_answers_nobody_is_believed) {
  const probe_verdict v = judged(2);
  EXPECT_FALSE(v.refused);
  EXPECT_THAT(v.sees_it, ElementsAre(false, false));
  EXPECT_EQ(v.warnings.size(), 2u);
}

}  // namespace
}  // namespace troupe::actors
