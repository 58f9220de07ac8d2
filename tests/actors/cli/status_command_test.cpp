#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "actors/records.hpp"
#include "actors/run_address.hpp"
#include "actors/run_directory.hpp"
#include "actors/status_server.hpp"
#include "tests/actors/cli/run_command.hpp"
#include "tests/actors/worlds_to_see.hpp"
#include "tests/model/data/data_files.hpp"

namespace troupe::actors::cli {
namespace {

using model::data::folder;
using testing::HasSubstr;

outcome status_of(const std::vector<std::string>& words) {
  return run_command(status_command, words);
}

// A run directory whose owner is this process, and the port that serves it.
struct running {
  folder place;
  std::string path = place / "run";
  run_directory run = *run_directory::claim(real_file_system(), path, real_clock());
  std::unique_ptr<status_server> server = *status_server::start("127.0.0.1:0", {});
  world_status seen = world_to_see();

  explicit running(const std::string& host = "127.0.0.1") {
    seen.run_id = run.run_id();
    server->publish(std::make_shared<const world_status>(seen));
    const std::uint16_t port = server->address().port;
    EXPECT_TRUE(
        publish_address(real_file_system(), path, {seen.run_id, generation(0), host, port, port}));
  }
};

TEST(status_command, shows_the_table_of_a_run_by_its_directory_and_by_its_port) {
  const running r;
  for (const std::string& where : {r.path, to_text(r.server->address())}) {
    const outcome o = status_of({where});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(o.out, HasSubstr("step 120/1000"));
    EXPECT_THAT(o.out, HasSubstr("worker-1"));
  }
}

TEST(status_command, finds_a_port_on_the_loopback_of_the_host_that_the_run_names) {
  const running r("127.0.0.2");  // nobody listens there
  EXPECT_THAT(status_of({r.path}).out, HasSubstr("step 120/1000"));
}

TEST(status_command, prints_one_json_document_of_a_running_and_of_an_ended_run) {
  const running r;
  EXPECT_EQ(nlohmann::json::parse(status_of({r.path, "--json"}).out)["step"], 120);
  folder place;
  const std::string path = place / "run";
  { ASSERT_TRUE(run_directory::claim(real_file_system(), path, real_clock())); }
  const auto ended = nlohmann::json::parse(status_of({path, "--json"}).out);
  EXPECT_EQ(ended["state"], "ended");
  EXPECT_EQ(ended["step"], 0);
  EXPECT_TRUE(ended["report"].is_null());
}

TEST(status_command, where_nothing_runs_tells_what_the_records_say) {
  folder place;
  const std::string path = place / "run";
  {
    const auto run = run_directory::claim(real_file_system(), path, real_clock());
    ASSERT_TRUE(run);
    auto steps = step_log::open(real_file_system(), run->file("steps.jsonl"));
    ASSERT_TRUE(steps);
    step_record one;
    one.step = 1;
    one.loss = 2.5;
    ASSERT_TRUE(steps->add(one));
    place.write("run/report.json", R"({"exit": 75})");
  }
  const outcome o = status_of({path});
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.out, HasSubstr("nothing runs in " + path));
  EXPECT_THAT(o.out, HasSubstr("last committed step 1  loss 2.5000"));
  EXPECT_THAT(o.out, HasSubstr("exit code 75); the same command resumes"));
  EXPECT_EQ(nlohmann::json::parse(status_of({path, "--json"}).out)["report"]["exit"], 75);
}

TEST(status_command, an_address_left_by_an_ended_run_is_not_taken_for_another_run) {
  running r;
  r.seen.run_id = "somebody else";
  r.server->publish(std::make_shared<const world_status>(r.seen));
  const outcome o = status_of({r.path});
  EXPECT_EQ(o.code, 69);
  EXPECT_THAT(o.err, HasSubstr("nobody answers for it"));
}

TEST(status_command, refuses_what_is_no_run) {
  folder place;
  EXPECT_EQ(status_of({place / "nowhere"}).code, 73);
  EXPECT_EQ(status_of({"127.0.0.1:1"}).code, 69);
  EXPECT_EQ(status_of({"--wat"}).code, 64);
}

}  // namespace
}  // namespace troupe::actors::cli
