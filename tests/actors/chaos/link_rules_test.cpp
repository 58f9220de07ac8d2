#include "actors/chaos/link_rules.hpp"

#include <gmock/gmock.h>

#include "actors/wire/codec.hpp"
#include "comm/checked_lane.hpp"

namespace troupe::actors::chaos {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;

TEST(link_rules_test, every_kind_of_links_is_a_rule_and_no_other_kind_is) {
  for (const kind_row& row : kind_table()) {
    EXPECT_EQ(message_fault_of(row.kind).has_value(), row.what == strikes::links) << row.name;
  }
}

TEST(link_rules_test, params_of_an_order_are_those_of_its_rule) {
  worker_order o;
  o.id = 4;
  o.kind = fault_kind::delay;
  o.towards = {member_id(2)};
  o.seed = 9;
  o.params = {
      {"plane", std::string("bulk")}, {"message", std::string("sum")}, {"share", 0.5},
      {"messages", std::int64_t{3}},  {"by", duration(7ms)},           {"jitter", duration(1ms)}};
  const comm::message_rule r = rule_of(o);
  EXPECT_EQ(r.what, comm::message_fault::delay);
  EXPECT_THAT(r.to, ElementsAre(member_id(2)));
  EXPECT_EQ(r.plane, comm::message_plane::bulk);
  EXPECT_EQ(r.message, "sum");
  EXPECT_EQ(r.share, 0.5);
  EXPECT_EQ(r.messages, 3U);
  EXPECT_EQ(r.by, 7ms);
  EXPECT_EQ(r.jitter, 1ms);
  EXPECT_EQ(r.seed, 9U);
}

TEST(link_rules_test, messages_are_called_as_they_are) {
  using comm::message_plane;
  EXPECT_EQ(name_of_message(message_plane::control, wire::encode(protocol::vote())), "vote");
  EXPECT_EQ(name_of_message(message_plane::control, wire::encode(protocol::copies_held())),
            "copies_held");
  auto header = wire::encode_header(protocol::sum_header());
  header.resize(header.size() + comm::bulk_check_bytes);
  EXPECT_EQ(name_of_message(message_plane::bulk, header), "sum");
  EXPECT_EQ(name_of_message(message_plane::bulk, {}), "");
  EXPECT_EQ(name_of_message(message_plane::control, header), "");
  EXPECT_THAT(message_names(), Contains("vote"));
  EXPECT_THAT(message_names(), Contains("state"));
}

}  // namespace
}  // namespace troupe::actors::chaos
