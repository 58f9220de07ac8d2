#include "config/world_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/options.hpp"

namespace troupe::config {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

template <class Change>
std::vector<problem> problems_after(Change change) {
  settings s = default_settings();
  change(s);
  return world_problems(s);
}

auto is_about(const char* key, const char* words) {
  return AllOf(Field(&problem::key, key), Field(&problem::message, HasSubstr(words)));
}

TEST(world_check, the_defaults_are_in_order) {
  EXPECT_THAT(problems_after([](settings&) {}), IsEmpty());
}

TEST(world_check, no_limit_of_members_is_above_every_minimum) {
  EXPECT_THAT(problems_after([](settings& s) { s.elastic.min_members = 9; }), IsEmpty());
  EXPECT_THAT(problems_after([](settings& s) {
                s.elastic.min_members = 9;
                s.elastic.max_members = 8;
              }),
              ElementsAre(is_about("elastic.max_members", "8 is below elastic.min_members = 9")));
}

TEST(world_check, a_member_is_suspected_only_after_a_heartbeat_was_due) {
  EXPECT_THAT(problems_after([](settings& s) { s.fault_tolerance.heartbeat_ms = 1000; }),
              ElementsAre(is_about("fault_tolerance.suspect_ms", "1000 is not longer")));
  EXPECT_THAT(problems_after([](settings& s) { s.fault_tolerance.heartbeat_ms = 999; }), IsEmpty());
}

TEST(world_check, a_member_is_not_given_up_before_it_is_suspected) {
  EXPECT_THAT(problems_after([](settings& s) { s.fault_tolerance.evict_ms = 999; }),
              ElementsAre(is_about("fault_tolerance.evict_ms", "999 is below")));
  EXPECT_THAT(problems_after([](settings& s) { s.fault_tolerance.evict_ms = 1000; }), IsEmpty());
}

TEST(world_check, listeners_are_host_and_port) {
  for (const char* good : {"0.0.0.0:4711", "[::1]:0", "gpu03:29500"}) {
    EXPECT_THAT(problems_after([&](settings& s) { s.comm.listen = good; }), IsEmpty()) << good;
  }
  for (const char* bad : {"", "host", ":80", "host:", "host:65536", "host:8o", "::1:80", "[]:1",
                          "a b:1", "http://host:1"}) {
    EXPECT_THAT(problems_after([&](settings& s) { s.comm.listen = bad; }),
                ElementsAre(is_about("comm.listen", "is not HOST:PORT")))
        << bad;
  }
}

TEST(world_check, what_others_are_told_may_be_a_host_alone) {
  for (const char* good : {"", "gpu03", "gpu03:1", "[fe80::1]", "10.0.0.7"}) {
    EXPECT_THAT(problems_after([&](settings& s) { s.comm.advertise = good; }), IsEmpty()) << good;
  }
  EXPECT_THAT(problems_after([](settings& s) { s.comm.advertise = "fe80::1"; }),
              ElementsAre(is_about("comm.advertise", "HOST or HOST:PORT")));
}

TEST(world_check, an_empty_address_switches_the_metrics_off) {
  EXPECT_THAT(problems_after([](settings& s) { s.metrics.prometheus_listen = ""; }), IsEmpty());
  EXPECT_THAT(problems_after([](settings& s) { s.metrics.prometheus_listen = "9090"; }),
              ElementsAre(is_about("metrics.prometheus_listen", "\"9090\" is not HOST:PORT")));
}

}  // namespace
}  // namespace troupe::config
