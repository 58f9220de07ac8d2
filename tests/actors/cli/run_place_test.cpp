#include "actors/cli/run_place.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "tests/model/data/data_files.hpp"

namespace troupe::actors::cli {
namespace {

namespace fs = std::filesystem;
using model::data::folder;
using testing::HasSubstr;

TEST(run_place, the_newest_run_is_the_one_whose_records_changed_last) {
  folder place;
  const auto now = fs::file_time_type::clock::now();
  for (const char* name : {"a", "b", "c", "no-run"}) {
    fs::create_directory(place / name);
    if (std::string(name) == "no-run") continue;
    place.write(std::string(name) + "/run.json", "{}");
    fs::last_write_time(place / (std::string(name) + "/run.json"), now - std::chrono::hours(2));
  }
  place.write("b/steps.jsonl", "");
  fs::last_write_time(place / "b/steps.jsonl", now - std::chrono::hours(1));
  const auto newest = newest_run(place / "");
  ASSERT_TRUE(newest) << newest.failure().message;
  EXPECT_EQ(fs::path(*newest).filename(), "b");
}

TEST(run_place, where_there_is_no_run_none_is_the_newest) {
  folder place;
  for (const std::string& where : {place / "", place / "nowhere"}) {
    const auto none = newest_run(where);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.failure().code, exit_code::usage);
    EXPECT_THAT(none.failure().message, HasSubstr(where));
  }
}

TEST(run_place, only_a_process_that_has_the_lock_open_holds_it) {
  folder place;
  const std::string path = place / "run";
  EXPECT_FALSE(holds_lock(getpid(), path));
  {
    const auto held = run_directory::claim(real_file_system(), path, real_clock());
    ASSERT_TRUE(held);
    EXPECT_TRUE(holds_lock(getpid(), path));
    EXPECT_FALSE(holds_lock(1 << 30, path));
  }
  EXPECT_FALSE(holds_lock(getpid(), path));
}

TEST(run_place, host_and_port_are_no_directory_and_are_not_asked) {
  const auto place = find_run("gpu03:4711");
  ASSERT_TRUE(place);
  EXPECT_FALSE(place->directory);
  EXPECT_EQ(place->answers, (comm::address{"gpu03", 4711}));
}

}  // namespace
}  // namespace troupe::actors::cli
