#include "actors/run_address.hpp"

#include <gmock/gmock.h>

#include "config/base/faulty_file.hpp"
#include "config/base/memory_file.hpp"

namespace troupe::actors {
namespace {

using testing::HasSubstr;

class run_address_test : public testing::Test {
 protected:
  run_address_test() { EXPECT_TRUE(make_directories(disk, "/run")); }
  run_address of_plan(std::uint32_t plan) {
    return {"r1", generation(plan), "10.0.0.7", static_cast<std::uint16_t>(4000 + plan), 9090};
  }
  memory_file_system disk;
};

TEST_F(run_address_test, is_found_as_it_was_published) {
  EXPECT_FALSE(*read_address(disk, "/run"));
  EXPECT_TRUE(*publish_address(disk, "/run", of_plan(3)));
  EXPECT_EQ(**read_address(disk, "/run"), of_plan(3));
  EXPECT_TRUE(*publish_address(disk, "/run", of_plan(4)));
  EXPECT_EQ(**read_address(disk, "/run"), of_plan(4));
  disk.power_loss(0);
  EXPECT_EQ(**read_address(disk, "/run"), of_plan(4));
}

TEST_F(run_address_test, tells_current_from_stale_and_foreign) {
  EXPECT_EQ(kind_of(of_plan(3), "r1", generation(3)), address_kind::current);
  EXPECT_EQ(kind_of(of_plan(4), "r1", generation(3)), address_kind::current);  // I am behind
  EXPECT_EQ(kind_of(of_plan(2), "r1", generation(3)), address_kind::stale);
  EXPECT_EQ(kind_of(of_plan(3), "r2", generation(3)), address_kind::of_another_run);
}

TEST_F(run_address_test, a_late_coordinator_does_not_hide_the_newer_one) {
  ASSERT_TRUE(*publish_address(disk, "/run", of_plan(5)));
  EXPECT_FALSE(*publish_address(disk, "/run", of_plan(4)));
  EXPECT_EQ((**read_address(disk, "/run")).plan, generation(5));
}

TEST_F(run_address_test, a_copied_or_damaged_file_is_replaced) {
  run_address foreign = of_plan(9);
  foreign.run_id = "r2";
  ASSERT_TRUE(*publish_address(disk, "/run", foreign));
  EXPECT_TRUE(*publish_address(disk, "/run", of_plan(1)));
  ASSERT_TRUE(replace(disk, "/run/address", "{\"format\": 1"));
  EXPECT_TRUE(*publish_address(disk, "/run", of_plan(1)));
  EXPECT_EQ(**read_address(disk, "/run"), of_plan(1));
}

TEST_F(run_address_test, is_read_strictly) {
  ASSERT_TRUE(*publish_address(disk, "/run", of_plan(1)));
  const std::string good = *read_file(disk, "/run/address", 1 << 16);
  const auto wrong = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    EXPECT_TRUE(replace(disk, "/run/address", text));
    const auto read = read_address(disk, "/run");
    EXPECT_FALSE(read) << text;
    if (read) return std::string();
    EXPECT_EQ(read.failure().code, exit_code::cannot_use);
    return read.failure().message;
  };
  EXPECT_THAT(wrong("4001", "0"), HasSubstr("port"));
  EXPECT_THAT(wrong("4001", "70000"), HasSubstr("port"));
  EXPECT_THAT(wrong("10.0.0.7", ""), HasSubstr("host"));
  EXPECT_THAT(wrong("\"format\": 1", "\"format\": 2"), HasSubstr("format"));
  EXPECT_THAT(wrong("\"plan\"", "\"plam\""), HasSubstr("/run/address"));
  EXPECT_THAT(wrong("\"plan\": 1", "\"plan\": 4294967296"), HasSubstr("plan"));
}

TEST_F(run_address_test, a_crash_leaves_the_old_address_or_the_new_one) {
  for (std::size_t at = 1; at <= 10; ++at) {
    memory_file_system files;
    ASSERT_TRUE(make_directories(files, "/run"));
    ASSERT_TRUE(*publish_address(files, "/run", of_plan(1)));
    faulty_file_system dying(files);
    dying.inject({.at = at, .kind = fault_kind::crash_half_way});
    (void)publish_address(dying, "/run", of_plan(2));
    files.power_loss(at);
    const auto read = read_address(files, "/run");
    ASSERT_TRUE(read && *read) << at;
    EXPECT_TRUE(**read == of_plan(1) || **read == of_plan(2)) << at;
  }
}

}  // namespace
}  // namespace troupe::actors
