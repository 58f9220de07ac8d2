// What the simulated lane cannot show: real processes that die or stop at any moment, and peers
// that break the rules. What every transport must do stands in transport_conformance.hpp.
#include "comm/ucx_control_lane.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <sstream>

#include "comm/ucx_transport.hpp"
#include "tests/comm/peer_process.hpp"

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing::HasSubstr;

bytes text(std::string_view words) {
  const auto view = std::as_bytes(std::span(words));
  return {view.begin(), view.end()};
}
std::string words(const bytes& text) {
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

struct party final : control_handler {
  std::unique_ptr<ucx_transport> own;
  std::set<link_id> links;
  std::vector<bytes> frames;
  std::vector<std::string> closed;
  bool echo = false;
  std::deque<link_id> calls;

  party() {
    auto opened = ucx_transport::open({});
    EXPECT_TRUE(opened) << opened.failure().message;
    own = std::move(*opened);
    own->start(*this);
  }
  void link_opened(link_id link, bool) override { links.insert(link); }
  void frame_received(link_id link, bytes_view frame) override {
    frames.emplace_back(frame.begin(), frame.end());
    if (echo) own->control().send(link, frames.back());
  }
  void link_closed(link_id link, const std::string& why) override {
    links.erase(link);
    closed.push_back(why);
  }
  bool run_until(const std::function<bool()>& condition, std::chrono::nanoseconds limit = 10s) {
    const auto end = steady_clock::now() + limit;
    while (!condition()) {
      if (steady_clock::now() > end) return false;
      own->progress();
      own->wait(1ms, waiting::eager);
    }
    return true;
  }
};

// The peer's life: says its address, calls whom it is told to call (if any), and echoes.
int play(const std::string& role, const pipe_end& pipe) {
  ::alarm(120);  // no peer outlives a test that was killed
  party own;
  own.echo = true;
  pipe.say(to_text(own.own->control().local_address()));
  const std::string to = pipe.hear_text();
  if (role == "caller") {
    // A few links at a time, all with something to say.
    for (int called = 0;;) {
      if (own.links.size() < 4 && called < 20) {
        ++called;
        const link_id link = own.own->control().connect(*parse_address(to));
        own.own->control().send(link, bytes(20000));
        own.calls.push_back(link);
      }
      if (own.calls.size() > 3) {
        own.own->control().close(own.calls.front());
        own.links.erase(own.calls.front());
        own.calls.pop_front();
      }
      for (int i = 0; i < 50; ++i) own.own->progress();
    }
  }
  own.run_until([] { return false; }, 100s);
  return 0;
}

struct scene {
  party own;
  peer_process other{"echo"};
  link_id link{};
  scene() {
    const address to = *parse_address(other.hear_text());
    other.say("nobody");
    link = own.own->control().connect(to);
    own.own->control().send(link, text("hello"));
    EXPECT_TRUE(own.run_until([&] { return own.frames.size() == 1; }));
  }
};

TEST(ucx_control_lane, notices_a_killed_peer_at_once) {
  for (int round = 0; round < 5; ++round) {
    scene s;
    const auto start = steady_clock::now();
    s.other.kill();
    ASSERT_TRUE(s.own.run_until([&] { return !s.own.closed.empty(); }));
    const std::chrono::duration<double, std::milli> took = steady_clock::now() - start;
    RecordProperty("ms_" + std::to_string(round), std::to_string(took.count()));
    EXPECT_LT(took.count(), 200) << "it takes a few milliseconds on an idle machine";
    EXPECT_THAT(s.own.closed.front(), HasSubstr("127.0.0.1:"));
    EXPECT_EQ(s.own.closed.size(), 1u);
  }
}

TEST(ucx_control_lane, outlives_a_peer_killed_while_frames_wait_for_it) {
  scene s;
  s.other.stop();
  for (int i = 0; i < 40; ++i) s.own.own->control().send(s.link, bytes(std::size_t{1} << 20));
  EXPECT_FALSE(s.own.run_until([&] { return !s.own.closed.empty(); }, 50ms));
  s.other.kill();
  EXPECT_TRUE(s.own.run_until([&] { return !s.own.closed.empty(); }));
}

TEST(ucx_control_lane, ends_quickly_although_a_stopped_peer_takes_nothing) {
  scene s;
  s.other.stop();
  for (int i = 0; i < 40; ++i) s.own.own->control().send(s.link, bytes(std::size_t{1} << 20));
  s.own.own->control().close(s.link);
  s.own.run_until([] { return false; }, 20ms);
  const auto start = steady_clock::now();
  s.own.own.reset();
  EXPECT_LT(steady_clock::now() - start, 1s);
}

TEST(ucx_control_lane, ends_a_link_whose_peer_lets_too_much_wait) {
  scene s;
  s.other.stop();
  for (std::size_t sent = 0; sent < max_unsent_bytes + 4 * max_frame_bytes; sent += max_frame_bytes)
    s.own.own->control().send(s.link, bytes(max_frame_bytes));
  ASSERT_TRUE(s.own.run_until([&] { return !s.own.closed.empty(); }));
  EXPECT_THAT(s.own.closed.front(), HasSubstr("MiB are waiting"));
}

TEST(ucx_control_lane, outlives_peers_killed_at_any_moment_of_their_calls) {
  const char* wish = std::getenv("TROUPE_KILLS");
  const int rounds = wish != nullptr ? std::stoi(wish) : 15;
  std::mt19937 random(2024);
  party own;
  for (int round = 0; round < rounds; ++round) {
    peer_process other("caller");
    const address to = *parse_address(other.hear_text());
    other.say(to_text(own.own->control().local_address()));
    const bool call_too = random() % 2 == 0;
    const auto act_for = [&](std::chrono::microseconds time) {
      const auto until = steady_clock::now() + time;
      for (int called = 0; steady_clock::now() < until;) {
        if (call_too && called < 5 && ++called > 0)
          own.own->control().send(own.own->control().connect(to), bytes(20000));
        for (int i = 0; i < 20; ++i) own.own->progress();
      }
    };
    act_for(std::chrono::microseconds(random() % 20000));
    if (random() % 3 == 0) {
      other.stop();
      act_for(std::chrono::microseconds(random() % 5000));
    }
    other.kill();
    ASSERT_TRUE(own.run_until([&] { return own.links.empty(); })) << round;
  }
  // And it still works with an honest one.
  party honest;
  honest.echo = true;
  const std::size_t before = own.frames.size();
  own.own->control().send(own.own->control().connect(honest.own->control().local_address()),
                          text("hello"));
  EXPECT_TRUE(own.run_until([&] {
    honest.own->progress();
    return own.frames.size() > before && own.frames.back() == text("hello");
  }));
}

// All ports on which this process listens on TCP: ours and UCX's.
std::set<std::uint16_t> listening_ports() {
  std::set<std::string> own;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string to = std::filesystem::read_symlink(entry.path(), gone).string();
    if (to.starts_with("socket:[")) own.insert(to.substr(8, to.size() - 9));
  }
  std::set<std::uint16_t> ports;
  std::ifstream table("/proc/self/net/tcp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream columns(line);
    std::string slot, local, remote, state, a, b, c, d, e, inode;
    columns >> slot >> local >> remote >> state >> a >> b >> c >> d >> e >> inode;
    if (state == "0A" && own.contains(inode))
      ports.insert(
          static_cast<std::uint16_t>(std::stoul(local.substr(local.find(':') + 1), nullptr, 16)));
  }
  return ports;
}

TEST(ucx_control_lane, is_not_disturbed_by_garbage_on_any_of_its_ports) {
  constexpr std::uint32_t seed = 99;
  std::mt19937 random(seed);
  scene s;
  s.own.echo = false;
  const std::set<std::uint16_t> ports = listening_ports();
  EXPECT_TRUE(ports.contains(s.own.own->control().local_address().port));
  std::size_t sent = 1;
  std::vector<int> silent;
  for (int round = 0; round < 300; ++round) {
    for (std::uint16_t port : ports) {
      const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(port);
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to);
      bytes garbage(random() % 3 == 0 ? random() % 8 : random() % 5000);
      for (std::byte& one : garbage) one = static_cast<std::byte>(random());
      const ssize_t n = ::send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL);
      static_cast<void>(n);
      if (round % 3 == 0) {
        silent.push_back(fd);
      } else {
        ::close(fd);
      }
    }
    if (round % 10 == 0) {
      s.own.own->control().send(s.link, text(std::to_string(round)));
      ++sent;
    }
    s.own.own->progress();
  }
  EXPECT_TRUE(s.own.run_until([&] { return s.own.frames.size() == sent; })) << "seed " << seed;
  EXPECT_EQ(words(s.own.frames.back()), "290");
  EXPECT_TRUE(s.own.closed.empty());
  for (int fd : silent) ::close(fd);
}

}  // namespace
}  // namespace troupe::comm

int main(int argc, char** argv) {
  return troupe::comm::run_tests_or_peer(argc, argv, troupe::comm::play);
}
