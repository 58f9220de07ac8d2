// What the simulated lane cannot show: real processes that are killed or stopped in the middle of a
// transfer. What every transport must do stands in transport_conformance.hpp.
#include "comm/ucx_bulk_lane.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <map>
#include <sstream>

#include "tests/comm/peer_process.hpp"

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr std::size_t large = std::size_t{4} << 20;
constexpr member_id peer{7};

struct recorder final : bulk_handler {
  std::vector<std::byte> memory = std::vector<std::byte>(large);
  int placed = 0, received = 0;
  std::vector<std::uint64_t> tokens;
  std::optional<std::span<std::byte>> place(bytes_view, std::size_t size) override {
    ++placed;
    return std::span(memory).first(size);
  }
  void arrived(bytes_view, std::span<std::byte>) override { ++received; }
  void sent(std::uint64_t token) override { tokens.push_back(token); }
};

std::vector<std::shared_ptr<ucx_context>> contexts(const std::string& kind) {
  static std::map<std::string, std::shared_ptr<ucx_context>> all;
  const ucx_transports transports = *choose_transports(std::nullopt);
  std::vector<std::shared_ptr<ucx_context>> chosen;
  for (const std::string& one : {transports.this_host, transports.network}) {
    if ((kind == "memory" && one == transports.network) ||
        (kind == "network" && one == transports.this_host))
      continue;
    if (!all.contains(one)) {
      auto opened = ucx_context::open(one, "lo");
      EXPECT_TRUE(opened) << opened.failure().message;
      all[one] = *opened;
    }
    chosen.push_back(all[one]);
  }
  return chosen;
}

struct lane {
  std::shared_ptr<traffic> count = std::make_shared<traffic>();
  recorder handler;
  std::shared_ptr<ucx_bulk_traffic> bulk;
  lane(const std::string& kind, generation number) {
    auto opened = ucx_bulk_traffic::open(contexts(kind), number, handler, count);
    EXPECT_TRUE(opened) << opened.failure().message;
    bulk = *opened;
  }
  template <class Condition>
  bool progress_until(const Condition& condition, std::chrono::nanoseconds limit = 10s) {
    const auto end = steady_clock::now() + limit;
    while (!condition()) {
      bulk->progress();
      if (steady_clock::now() > end) return false;
    }
    return true;
  }
};

// How long the end of a lane takes.
std::chrono::nanoseconds end(lane& old) {
  const auto start = steady_clock::now();
  old.bulk->end();
  return steady_clock::now() - start;
}

// A peer that connects both ways, says "ready", and then does as its role says.
int play(const std::string& text, const pipe_end& pipe) {
  ::alarm(120);  // no peer outlives a test that was killed
  std::istringstream words(text);
  std::string role, kind;
  std::uint32_t number = 0;
  words >> role >> kind >> number;
  lane own(kind, generation{number});
  pipe.say(own.bulk->local_address());
  if (!own.bulk->connect(peer, pipe.hear())) return 1;
  const std::vector<std::byte> payload(large, std::byte{0x5a});
  if (role == "flood") {
    pipe.say("ready");
    for (std::uint64_t n = 0;; ++n) {
      while (n > own.handler.tokens.size() + 2) own.bulk->progress();
      own.bulk->send(peer, {}, payload, n);
      own.bulk->progress();
    }
  }
  if (role == "announce") {
    // Announces a large message and never moves again: it says so only when UCX has sent it.
    own.bulk->send(peer, {}, payload, 1);
    for (int i = 0; i < 10000; ++i) own.bulk->progress();
    pipe.say("ready");
    ::pause();
  }
  if (role == "silent") {
    // Makes the connection complete, then takes nothing more.
    own.bulk->send(peer, {}, bytes_view(payload).first(8), 1);
    own.progress_until([&] { return own.handler.received == 1; });
    pipe.say("ready");
    ::pause();
  }
  return 0;
}

struct scene {
  std::string kind;
  lane own;
  peer_process other;
  scene(const std::string& role, std::string of_kind, std::uint32_t n)
      : kind(std::move(of_kind)),
        own(kind, generation{n}),
        other(role + " " + kind + " " + std::to_string(n)) {
    const bytes address = other.hear();
    other.say(own.bulk->local_address());
    const status connected = own.bulk->connect(peer, address);
    EXPECT_TRUE(connected) << connected.failure().message;
  }
};

// After any accident: the lane ends at once, and a new one works with a new peer.
void expect_quick_end_and_new_start(lane& old, const std::string& kind) {
  EXPECT_LT(end(old), 100ms);
  scene next("flood", kind, 99);
  EXPECT_EQ(next.other.hear_text(), "ready");
  EXPECT_TRUE(next.own.progress_until([&] { return next.own.handler.received >= 2; }));
  EXPECT_EQ(next.own.handler.memory.front(), std::byte{0x5a});
  EXPECT_EQ(next.own.handler.memory.back(), std::byte{0x5a});
}

class ucx_bulk_lane_deaths : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(over, ucx_bulk_lane_deaths, testing::Values("memory", "network", "both"),
                         [](const auto& kind) { return kind.param; });

TEST_P(ucx_bulk_lane_deaths, outlives_a_sender_killed_before_its_message_is_taken) {
  scene s("announce", GetParam(), 1);
  ASSERT_EQ(s.other.hear_text(), "ready");
  s.other.kill();
  EXPECT_FALSE(s.own.progress_until([&] { return s.own.handler.received > 0; }, 300ms));
  expect_quick_end_and_new_start(s.own, GetParam());
}

TEST_P(ucx_bulk_lane_deaths, outlives_a_sender_killed_in_the_middle_of_a_message) {
  for (std::uint32_t round = 0; round < 5; ++round) {
    scene s("flood", GetParam(), 10 + round);
    ASSERT_EQ(s.other.hear_text(), "ready");
    ASSERT_TRUE(s.own.progress_until(
        [&] { return s.own.handler.placed > s.own.handler.received && s.own.handler.placed > 1; }));
    s.other.kill();
    s.own.progress_until([] { return false; }, 50ms);
    EXPECT_LT(end(s.own), 100ms);
    if (round == 4) expect_quick_end_and_new_start(s.own, GetParam());
  }
}

TEST_P(ucx_bulk_lane_deaths, ends_at_once_with_a_sender_that_is_stopped) {
  scene s("flood", GetParam(), 20);
  ASSERT_EQ(s.other.hear_text(), "ready");
  ASSERT_TRUE(s.own.progress_until([&] { return s.own.handler.placed > 1; }));
  s.other.stop();
  s.own.progress_until([] { return false; }, 50ms);
  expect_quick_end_and_new_start(s.own, GetParam());
}

TEST_P(ucx_bulk_lane_deaths, touches_no_memory_after_its_end_when_a_stopped_sender_goes_on) {
  scene s("flood", GetParam(), 25);
  ASSERT_EQ(s.other.hear_text(), "ready");
  ASSERT_TRUE(s.own.progress_until([&] { return s.own.handler.placed > 1; }));
  s.other.stop();
  EXPECT_LT(end(s.own), 100ms);
  std::ranges::fill(s.own.handler.memory, std::byte{0});
  s.other.go_on();
  lane next(GetParam(), generation{26});
  next.progress_until([] { return false; }, 100ms);
  EXPECT_TRUE(
      std::ranges::all_of(s.own.handler.memory, [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(next.handler.placed, 0);
}

TEST_P(ucx_bulk_lane_deaths, ends_at_once_with_a_receiver_that_is_killed_or_stopped) {
  for (const bool killed : {true, false}) {
    scene s("silent", GetParam(), killed ? 30 : 31);
    const std::vector<std::byte> payload(large, std::byte{1});
    s.own.bulk->send(peer, {}, bytes_view(payload).first(8), 1);
    ASSERT_TRUE(s.own.progress_until([&] { return s.own.handler.received == 1; }));
    ASSERT_EQ(s.other.hear_text(), "ready");
    if (killed) {
      s.other.kill();
    } else {
      s.other.stop();
    }
    for (std::uint64_t n = 2; n < 40; ++n) s.own.bulk->send(peer, {}, payload, n);
    s.own.progress_until([] { return false; }, 100ms);
    // Of a stopped peer UCX knows nothing; the sends to a killed one may end or not.
    if (!killed) {
      EXPECT_LT(s.own.handler.tokens.size(), 5u);
    }
    expect_quick_end_and_new_start(s.own, GetParam());
  }
}

TEST_P(ucx_bulk_lane_deaths, connects_to_a_peer_that_died_before) {
  lane own(GetParam(), generation{40});
  bytes address;
  {
    peer_process other("flood " + GetParam() + " 40");
    address = other.hear();
  }
  const status connected = own.bulk->connect(peer, address);
  const std::vector<std::byte> payload(large);
  if (connected) own.bulk->send(peer, {}, payload, 1);
  own.progress_until([] { return false; }, 100ms);
  expect_quick_end_and_new_start(own, GetParam());
}

}  // namespace
}  // namespace troupe::comm

int main(int argc, char** argv) {
  return troupe::comm::run_tests_or_peer(argc, argv, troupe::comm::play);
}
