// What is refused before anything starts; whole runs are in tests/examples.
#include <gmock/gmock.h>

#include <sstream>

#include "tests/actors/cli/run_command.hpp"
#include "tests/model/data/data_files.hpp"

namespace troupe::actors::cli {
namespace {

using model::data::folder;
using testing::HasSubstr;

struct described_run {
  folder place;
  std::string data = place.write("a.txt", std::string(4096, 'a'));
  std::string config = place.write("run.toml",
                                   "[training]\nseq_len = 16\nglobal_batch_size = 2\n"
                                   "[[data.sources]]\npath = \"" +
                                       data + "\"\n");
};

TEST(train_command, a_dry_run_prints_the_effective_config_and_starts_nothing) {
  const described_run r;
  const outcome o =
      run_command(train_command, {r.config, "--run-dir", r.place / "run", "--dry-run"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("suspect_ms = 1000"));
  EXPECT_FALSE(std::filesystem::exists(r.place / "run"));
}

TEST(train_command, a_world_that_cannot_be_is_refused_with_its_key) {
  const described_run r;
  const outcome o = run_command(
      train_command, {r.config, "--run-dir", r.place / "run", "--fault_tolerance.suspect_ms=50"});
  EXPECT_EQ(o.code, 78);
  EXPECT_THAT(o.err, HasSubstr("fault_tolerance.suspect_ms: 50 is not longer"));
}

TEST(worker_command, takes_no_key_that_belongs_to_the_whole_run) {
  const described_run r;
  for (const char* set : {"training.steps=3", "fault_tolerance.backups=2"}) {
    const outcome o =
        run_command(worker_command, {r.config, "--run-dir", r.place / "run", "--set", set});
    EXPECT_EQ(o.code, 78);
    EXPECT_THAT(o.err, HasSubstr("belongs to the whole run"));
  }
}

TEST(worker_command, a_port_that_is_none_is_refused_with_its_key) {
  const described_run r;
  const outcome o = run_command(worker_command, {r.config, "--run-dir", r.place / "run", "--set",
                                                 "metrics.prometheus_listen=nowhere"});
  EXPECT_EQ(o.code, 78);
  EXPECT_THAT(o.err, HasSubstr("metrics.prometheus_listen"));
}

}  // namespace
}  // namespace troupe::actors::cli
