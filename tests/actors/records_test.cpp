// The two record files: appended to for the whole life of a run, by every start of it.
#include "actors/records.hpp"

#include <gmock/gmock.h>

#include <limits>

#include "config/base/faulty_file.hpp"
#include "config/base/memory_file.hpp"

namespace troupe::actors {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* steps_path = "/run/steps.jsonl";
constexpr const char* events_path = "/run/events.jsonl";

step_record record_of(std::uint64_t step) {
  step_record r;
  r.step = step;
  r.loss = 5.0 / static_cast<double>(step + 2);
  r.grad_norm = 0.1 * static_cast<double>(step);
  r.lr = 1e-3;
  r.tokens = 64;
  r.seconds = 0.25;
  return r;
}

class records_test : public testing::Test {
 protected:
  records_test() { EXPECT_TRUE(files.make_directory("/run")); }

  std::string content(const char* path) { return *read_file(files, path, 1 << 20); }
  void write(const char* path, const std::string& text) {
    auto opened = files.open(path, open_mode::append);
    ASSERT_TRUE(opened);
    ASSERT_TRUE((*opened)->append(std::as_bytes(std::span(text))));
  }
  void write_steps(std::uint64_t last) {
    auto log = step_log::open(files, steps_path);
    ASSERT_TRUE(log);
    for (std::uint64_t s = 1; s <= last; ++s) ASSERT_TRUE(log->add(record_of(s)));
  }

  memory_file_system files;
};

TEST_F(records_test, a_step_reads_back_with_its_bits) {
  step_record odd = record_of(1);
  odd.loss = std::numeric_limits<double>::quiet_NaN();
  odd.grad_norm = std::numeric_limits<double>::infinity();
  odd.lr = 0.1 + 0.2;
  odd.skipped = true;
  {
    auto log = step_log::open(files, steps_path);
    ASSERT_TRUE(log);
    ASSERT_TRUE(log->add(odd));
  }
  const auto back = read_steps(files, steps_path);
  ASSERT_TRUE(back) << back.failure().message;
  ASSERT_EQ(back->size(), 1u);
  EXPECT_TRUE((*back)[0].same_bits(odd));
  EXPECT_EQ((*back)[0].seconds, 0.25);
  EXPECT_THAT(content(steps_path), AllOf(HasSubstr("\"loss\":null"), HasSubstr("\"loss_text\"")));
}

// There are two readers: one for lines as they are written, and one for whatever is JSON.
TEST_F(records_test, a_line_reads_the_same_however_it_is_laid_out) {
  step_record odd = record_of(1);
  odd.loss = 0.1 + 0.2;
  odd.grad_norm = std::numeric_limits<double>::denorm_min();
  odd.lr = 1e-300;
  odd.seconds = std::numeric_limits<double>::max();
  odd.tokens = std::numeric_limits<std::uint64_t>::max();
  odd.skipped = true;
  {
    auto log = step_log::open(files, steps_path);
    ASSERT_TRUE(log && log->add(odd));
  }
  const std::string written = content(steps_path);
  std::string spaced;
  for (const char c : written) spaced += c == ',' ? std::string(" ,\t") : std::string(1, c);
  const auto own = read_steps(files, steps_path);
  ASSERT_TRUE(files.remove(steps_path));
  write(steps_path, spaced);
  const auto general = read_steps(files, steps_path);
  ASSERT_TRUE(own && general);
  for (const auto& steps : {*own, *general}) {
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_TRUE(steps[0].same_bits(odd));
    EXPECT_EQ(steps[0].seconds, odd.seconds);
    EXPECT_EQ(steps[0].world, odd.world);
  }
}

TEST_F(records_test, what_only_looks_like_a_line_is_refused) {
  write_steps(1);
  const std::string line = content(steps_path);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = line;
    text.replace(text.find(from), from.size(), to);
    EXPECT_TRUE(files.remove(steps_path));
    write(steps_path, text);
    return static_cast<bool>(read_steps(files, steps_path));
  };
  EXPECT_TRUE(with("\"skipped\":false", "\"skipped\": false"));
  EXPECT_FALSE(with("\"tokens\":64", "\"tokens\":64.5"));
  EXPECT_FALSE(with("\"tokens\":64", "\"tokens\":-64"));
  EXPECT_FALSE(with("\"seconds\":0.25", "\"seconds\":inf"));
  EXPECT_FALSE(with("\"seconds\":0.25", "\"seconds\":nan"));
  EXPECT_FALSE(with("\"seconds\":0.25", "\"seconds\":0.25,\"more\":1"));
  EXPECT_FALSE(with("\"skipped\":false", "\"skipped\":maybe"));
  EXPECT_FALSE(with("0.25}", "0.25}}"));
}

TEST_F(records_test, a_missing_file_has_no_steps) {
  const auto steps = read_steps(files, steps_path);
  ASSERT_TRUE(steps);
  EXPECT_TRUE(steps->empty());
}

TEST_F(records_test, a_torn_last_line_is_cut_off_wherever_it_was_torn) {
  write_steps(3);
  const std::string whole = content(steps_path);
  const std::size_t third = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t left = third; left < whole.size(); ++left) {
    SCOPED_TRACE(left);
    ASSERT_TRUE(files.remove(steps_path));
    write(steps_path, whole.substr(0, left));
    ASSERT_EQ(read_steps(files, steps_path)->size(), 2u);
    auto log = step_log::open(files, steps_path);
    ASSERT_TRUE(log) << log.failure().message;
    EXPECT_EQ(log->last_step(), 2u);
    ASSERT_TRUE(log->add(record_of(3)));
    ASSERT_EQ(content(steps_path), whole);
  }
}

TEST_F(records_test, a_gap_a_repeated_step_and_a_damaged_line_are_refused_with_their_line) {
  write_steps(3);
  const std::string whole = content(steps_path);
  const std::size_t second = whole.find('\n') + 1, third = whole.find('\n', second) + 1;
  const auto refusal = [&](const std::string& text) {
    EXPECT_TRUE(files.remove(steps_path));
    write(steps_path, text);
    const auto log = step_log::open(files, steps_path);
    EXPECT_EQ(content(steps_path), text) << "a refused file was changed";
    return log ? std::string("it was accepted") : log.failure().message;
  };
  EXPECT_THAT(refusal(whole.substr(0, second) + whole.substr(third)),
              AllOf(HasSubstr("steps.jsonl:2 holds step 3"), HasSubstr("step 2 comes next")));
  EXPECT_THAT(refusal(whole.substr(0, second) + whole), HasSubstr("steps.jsonl:2 holds step 1"));
  EXPECT_THAT(refusal(whole.substr(second)), HasSubstr("steps.jsonl:1 holds step 2"));
  EXPECT_THAT(refusal(whole.substr(0, second) + "{\"step\":2}\n"), HasSubstr("steps.jsonl:2"));
  EXPECT_THAT(refusal(whole.substr(0, second) + "step 2\n"), HasSubstr("steps.jsonl:2"));
}

TEST_F(records_test, a_step_that_is_computed_again_is_compared_and_not_written) {
  write_steps(3);
  const std::string before = content(steps_path);
  auto log = step_log::open(files, steps_path);
  ASSERT_TRUE(log);
  step_record again = record_of(2);
  again.seconds = 9;  // what the bits do not decide may differ
  again.world = 4;
  again.generation = 7;
  EXPECT_TRUE(log->add(again));
  EXPECT_EQ(content(steps_path), before);
  EXPECT_EQ(log->last_step(), 3u);
}

TEST_F(records_test, the_least_difference_in_a_step_computed_again_is_a_defect) {
  write_steps(3);
  const std::string before = content(steps_path);
  auto log = step_log::open(files, steps_path);
  ASSERT_TRUE(log);
  const auto complain = [&](const auto& change) {
    step_record other = record_of(2);
    change(other);
    const status added = log->add(other);
    EXPECT_FALSE(added) << "the difference was not seen";
    if (added) return std::string();
    EXPECT_EQ(added.failure().code, exit_code::defect);
    return added.failure().message;
  };
  EXPECT_THAT(complain([](step_record& r) { r.loss = std::nextafter(r.loss, 9); }),
              AllOf(HasSubstr("step 2"), HasSubstr(steps_path), HasSubstr("1.25")));
  EXPECT_THAT(complain([](step_record& r) { r.grad_norm = -r.grad_norm; }),
              HasSubstr("other bits (grad_norm)"));
  EXPECT_THAT(complain([](step_record& r) { r.lr = std::nextafter(r.lr, 0); }),
              HasSubstr("other bits (lr)"));
  EXPECT_THAT(complain([](step_record& r) { ++r.tokens; }), HasSubstr("other bits (tokens)"));
  EXPECT_THAT(complain([](step_record& r) { r.skipped = true; }),
              HasSubstr("other bits (skipped)"));
  EXPECT_EQ(content(steps_path), before);
}

TEST_F(records_test, a_step_that_leaves_a_gap_is_refused) {
  write_steps(3);
  const std::string before = content(steps_path);
  auto log = step_log::open(files, steps_path);
  ASSERT_TRUE(log);
  const status added = log->add(record_of(5));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.failure().code, exit_code::defect);
  EXPECT_THAT(added.failure().message,
              AllOf(HasSubstr("step 5"), HasSubstr(steps_path), HasSubstr("ends with step 3")));
  EXPECT_EQ(content(steps_path), before);
  EXPECT_TRUE(log->add(record_of(4)));
}

TEST_F(records_test, whoever_wrote_into_a_file_since_it_was_opened_is_noticed) {
  manual_clock clock;
  write_steps(3);
  auto steps = step_log::open(files, steps_path);
  auto events = event_log::open(files, events_path, clock, "abc");
  ASSERT_TRUE(steps && events);
  json_line line = events->begin("mine");
  ASSERT_TRUE(events->write(line) && steps->add(record_of(4)));
  EXPECT_TRUE(*steps->is_mine());
  EXPECT_TRUE(*events->is_mine());
  write(events_path, "{}\n");
  write_steps(4);  // compares, and so changes nothing
  EXPECT_TRUE(*steps->is_mine());
  EXPECT_FALSE(*events->is_mine());
  auto other = step_log::open(files, steps_path);
  ASSERT_TRUE(other && other->add(record_of(5)));
  EXPECT_FALSE(*steps->is_mine());
}

// Two coordinators for a moment: the one before writes what it had in hand when the next one is at
// work already.
TEST_F(records_test, a_line_that_another_process_wrote_meanwhile_is_not_written_twice) {
  auto before = step_log::open(files, steps_path);
  ASSERT_TRUE(before && before->add(record_of(1)));
  auto after = step_log::open(files, steps_path);
  ASSERT_TRUE(after && before->add(record_of(2)));
  ASSERT_TRUE(after->add(record_of(2)));
  ASSERT_TRUE(after->add(record_of(3)));
  ASSERT_TRUE(before->add(record_of(3)));
  EXPECT_EQ(before->last_step(), 3u);
  step_record wrong = record_of(4);
  ASSERT_TRUE(after->add(wrong));
  wrong.loss += 1;
  EXPECT_FALSE(before->add(wrong)) << "another line of a step that has one";
  const auto all = read_steps(files, steps_path);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 4u);
}

TEST_F(records_test, the_time_of_a_start_goes_on_with_who_writes_next) {
  manual_clock first_clock(wall_time(std::chrono::seconds(1000)));
  {
    auto first = event_log::open(files, events_path, first_clock, "abc");
    first_clock.advance(std::chrono::seconds(7));
    json_line line = first->begin("mine");
    ASSERT_TRUE(first->write(line));
  }
  manual_clock second_clock(wall_time(std::chrono::seconds(1009)));
  auto second = event_log::open(files, events_path, second_clock, "abc");
  EXPECT_EQ(second->mono(), 0);
  second->go_on();
  second_clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(second->mono(), 10);
  manual_clock set_back(wall_time(std::chrono::seconds(10)));
  auto third = event_log::open(files, events_path, set_back, "abc");
  third->go_on();
  EXPECT_EQ(third->mono(), 7) << "time went back with the wall clock";
}

TEST_F(records_test, synced_steps_outlast_the_machine) {
  {
    auto log = step_log::open(files, steps_path);
    ASSERT_TRUE(log);
    ASSERT_TRUE(log->add(record_of(1)));
    ASSERT_TRUE(log->add(record_of(2)));
    ASSERT_TRUE(log->sync());
  }
  ASSERT_TRUE(files.sync_directory("/"));
  files.power_loss(0);
  EXPECT_EQ(read_steps(files, steps_path)->size(), 2u);
}

TEST_F(records_test, events_are_numbered_on_after_a_reopen_and_a_torn_one_is_cut_off) {
  manual_clock clock(wall_time(std::chrono::seconds(86400)));
  const auto tell = [&](const std::string& what, std::chrono::seconds after) {
    auto log = event_log::open(files, events_path, clock, "abc");
    ASSERT_TRUE(log);
    clock.advance(after);
    json_line line = log->begin(what);
    line.u64("step", 3);
    ASSERT_TRUE(log->write(line));
  };
  tell("started", std::chrono::seconds(2));
  write(events_path, "{\"time\":\"1970-01-");
  tell("resumed", std::chrono::seconds(5));
  EXPECT_EQ(content(events_path),
            "{\"time\":\"1970-01-02T00:00:02.000Z\",\"mono\":2,\"event\":\"started\","
            "\"run\":\"abc\",\"seq\":1,\"step\":3}\n"
            "{\"time\":\"1970-01-02T00:00:07.000Z\",\"mono\":5,\"event\":\"resumed\","
            "\"run\":\"abc\",\"seq\":2,\"step\":3}\n");
}

TEST_F(records_test, an_event_that_did_not_fit_on_the_disk_leaves_no_half_line) {
  manual_clock clock;
  faulty_file_system full(files);
  full.inject({.operation = file_operation::append,
               .at = 2,
               .kind = fault_kind::fail_half_way,
               .error_number = ENOSPC});
  auto log = event_log::open(full, events_path, clock, "abc");
  ASSERT_TRUE(log);
  json_line first = log->begin("first"), lost = log->begin("lost"), third = log->begin("third");
  ASSERT_TRUE(log->write(first));
  EXPECT_FALSE(log->write(lost));
  ASSERT_TRUE(log->write(third));
  const std::string text = content(events_path);
  const std::size_t end = text.find('\n') + 1;
  const auto last = parse_json(std::string_view(text).substr(end), events_path);
  ASSERT_TRUE(last) << last.failure().message;
  EXPECT_EQ((*last)["event"], "third");
}

}  // namespace
}  // namespace troupe::actors
