#include "comm/network.hpp"

#include <gmock/gmock.h>

namespace troupe::comm {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

network_card card(std::string name, std::vector<std::string> addresses) {
  network_card made;
  made.loopback = name == "lo";
  made.bridge = name.starts_with("br") || name.starts_with("docker");
  made.default_route = name == "eth0";
  made.name = std::move(name);
  made.addresses = std::move(addresses);
  return made;
}

const std::vector<network_card>& machine() {
  static const std::vector<network_card> cards = {
      card("lo", {"127.0.0.1", "::1"}), card("docker0", {"172.17.0.1"}), card("eth1", {"10.1.0.7"}),
      card("eth0", {"192.0.2.7", "2001:db8::7"}), card("mlx5_0:1", {})};
  return cards;
}

std::vector<std::string> names(const std::string& host) {
  if (host == "node7") return {"192.0.2.7"};
  if (host == "confused") return {"127.0.1.1"};
  if (host == "localhost") return {"127.0.0.1"};
  return {};
}

listening decided(const network_settings& settings) {
  const result<listening> plan = decide_listening(settings, machine(), names);
  EXPECT_TRUE(plan) << plan.failure().message;
  return plan ? *plan : listening{};
}
std::string refused(const network_settings& settings) {
  const result<listening> plan = decide_listening(settings, machine(), names);
  if (plan) return "accepted";
  EXPECT_EQ(plan.failure().code, exit_code::bad_config);
  return plan.failure().message;
}

TEST(network, listens_on_loopback_unless_told_otherwise) {
  const listening plan = decided({});
  EXPECT_EQ(plan.bind, (address{"127.0.0.1", 0}));
  EXPECT_EQ(plan.advertise, (address{"127.0.0.1", 0}));
  EXPECT_EQ(plan.devices, "lo");
}

TEST(network, advertises_the_card_that_leads_out_when_it_listens_everywhere) {
  EXPECT_EQ(decided({"0.0.0.0:0", "", ""}).advertise.host, "192.0.2.7");
  EXPECT_EQ(decided({"[::]:0", "", ""}).advertise.host, "2001:db8::7");
  EXPECT_EQ(decided({"0.0.0.0:0", "", "eth1"}).advertise.host, "10.1.0.7");
  EXPECT_EQ(decided({"0.0.0.0:0", "", "docker0,lo"}).advertise.host, "172.17.0.1");
  EXPECT_EQ(decided({"0.0.0.0:0", "", "lo"}).advertise.host, "127.0.0.1");
}

TEST(network, keeps_to_the_cards_that_are_named) {
  const listening plan = decided({"0.0.0.0:4711", "", "eth1,lo"});
  EXPECT_EQ(plan.bind, (address{"0.0.0.0", 4711}));
  EXPECT_THAT(plan.accept_on, ElementsAre("10.1.0.7", "127.0.0.1", "::1"));
  EXPECT_EQ(plan.devices, "eth1,lo");
  EXPECT_TRUE(decided({"0.0.0.0:0", "", ""}).accept_on.empty());
}

TEST(network, lists_the_cards_when_one_is_unknown) {
  EXPECT_THAT(refused({"0.0.0.0:0", "", "ib0"}),
              AllOf(HasSubstr("\"ib0\""), HasSubstr("eth0 (192.0.2.7, 2001:db8::7)"),
                    HasSubstr("docker0"), HasSubstr("mlx5_0:1")));
}

TEST(network, refuses_a_name_that_means_loopback) {
  EXPECT_THAT(refused({"confused:0", "", ""}), AllOf(HasSubstr("127.0.1.1"), HasSubstr("eth0")));
  EXPECT_EQ(decided({"localhost:0", "", ""}).bind.host, "127.0.0.1");
  EXPECT_EQ(decided({"node7:0", "", ""}).bind.host, "192.0.2.7");
  EXPECT_THAT(refused({"nowhere:0", "", ""}), HasSubstr("\"nowhere\" has no address"));
}

TEST(network, refuses_an_address_that_no_card_has) {
  EXPECT_THAT(refused({"198.51.100.1:0", "", ""}), HasSubstr("no card has this address"));
  EXPECT_THAT(refused({"127.0.0.1:0", "", "eth0"}), HasSubstr("none of the cards eth0"));
  EXPECT_THAT(refused({"here", "", ""}), HasSubstr("no port"));
}

TEST(network, advertises_what_it_is_told) {
  EXPECT_EQ(decided({"0.0.0.0:0", "gate.example", ""}).advertise, (address{"gate.example", 0}));
  EXPECT_EQ(decided({"0.0.0.0:0", "gate.example:99", ""}).advertise, (address{"gate.example", 99}));
  EXPECT_EQ(decided({"0.0.0.0:0", "[2001:db8::1]:99", ""}).advertise, (address{"2001:db8::1", 99}));
  EXPECT_EQ(decided({"0.0.0.0:0", "2001:db8::1", ""}).advertise, (address{"2001:db8::1", 0}));
}

TEST(network, finds_loopback_on_this_machine) {
  const auto cards = find_network_cards();
  const auto lo = std::ranges::find_if(cards, [](const auto& c) { return c.loopback; });
  ASSERT_NE(lo, cards.end());
  EXPECT_THAT(lo->addresses, testing::Contains("127.0.0.1"));
}

}  // namespace
}  // namespace troupe::comm
