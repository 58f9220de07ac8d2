#include "comm/contacts.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <random>

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;
using kind = contact_news::kind;
using std::chrono::steady_clock;
using testing::AllOf;
using testing::HasSubstr;

bytes text(std::string_view words) {
  const auto view = std::as_bytes(std::span(words));
  return {view.begin(), view.end()};
}

struct party {
  manual_clock clock;
  std::unique_ptr<contacts> own;
  std::vector<contact_news> news;
  explicit party(const listening& where = {.bind = {"127.0.0.1", 0},
                                           .advertise = {"127.0.0.1", 0},
                                           .accept_on = {},
                                           .devices = {}}) {
    auto opened = contacts::open(where, clock);
    EXPECT_TRUE(opened) << opened.failure().message;
    own = std::move(*opened);
  }
  void progress() {
    for (contact_news& one : own->progress()) news.push_back(std::move(one));
  }
  std::uint16_t port() const { return own->local_address().port; }
};

bool run(std::initializer_list<party*> all, const std::function<bool()>& condition) {
  const auto end = steady_clock::now() + 10s;
  while (!condition()) {
    if (steady_clock::now() > end) return false;
    for (party* one : all) one->progress();
  }
  return true;
}

// Somebody who knows nothing of our protocol.
class stranger {
 public:
  explicit stranger(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~stranger() { ::close(fd_); }
  stranger(const stranger&) = delete;
  stranger& operator=(const stranger&) = delete;
  void say(bytes_view what) const {
    const ssize_t sent = ::send(fd_, what.data(), what.size(), MSG_NOSIGNAL);
    static_cast<void>(sent);  // the other side may have hung up already
  }
  // True once the other side has hung up.
  bool is_dropped() const {
    char byte = 0;
    const ssize_t n = ::recv(fd_, &byte, 1, MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN);
  }

 private:
  int fd_;
};

TEST(contacts, exchange_one_record_each_way_and_notice_the_end) {
  party a, b;
  const contact_id call = a.own->call(b.own->local_address(), text("I am a"));
  ASSERT_TRUE(run({&a, &b}, [&] { return b.news.size() == 1; }));
  EXPECT_EQ(b.news[0].what, kind::called);
  EXPECT_EQ(b.news[0].record, text("I am a"));
  b.own->answer(b.news[0].id, text("I am b"));
  ASSERT_TRUE(run({&a, &b}, [&] { return a.news.size() == 1; }));
  EXPECT_EQ(a.news[0].what, kind::answered);
  EXPECT_EQ(a.news[0].id, call);
  EXPECT_EQ(a.news[0].record, text("I am b"));
  EXPECT_EQ(b.own->strangers(), 0u);
  // An established contact has no limit.
  a.clock.advance(1h);
  b.clock.advance(1h);
  a.progress();
  b.progress();
  EXPECT_EQ(a.news.size() + b.news.size(), 2u);
  b.own.reset();
  ASSERT_TRUE(run({&a}, [&] { return a.news.size() == 2; }));
  EXPECT_EQ(a.news[1].what, kind::ended);
  EXPECT_THAT(a.news[1].why, HasSubstr("ended"));
}

TEST(contacts, resolve_names) {
  party a, b;
  a.own->call({"localhost", b.port()}, text("hello"));
  ASSERT_TRUE(run({&a, &b}, [&] { return b.news.size() == 1; }));
  a.own->call({"no-such-host.invalid", b.port()}, text("hello"));
  ASSERT_TRUE(run({&a, &b}, [&] { return a.news.size() == 1; }));
  EXPECT_EQ(a.news[0].what, kind::failed);
  EXPECT_THAT(a.news[0].why, HasSubstr("no-such-host.invalid"));
}

TEST(contacts, name_a_port_that_is_taken) {
  party a;
  manual_clock clock;
  const auto second = contacts::open({.bind = {"127.0.0.1", a.port()},
                                      .advertise = {"127.0.0.1", 0},
                                      .accept_on = {},
                                      .devices = {}},
                                     clock);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.failure().code, exit_code::io);
  EXPECT_THAT(second.failure().message, AllOf(HasSubstr("127.0.0.1:" + std::to_string(a.port())),
                                              HasSubstr("in use"), HasSubstr("port 0")));
}

TEST(contacts, give_a_silent_listener_up_after_five_seconds) {
  const int silent = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof any;
  ASSERT_EQ(::bind(silent, reinterpret_cast<sockaddr*>(&any), size), 0);
  ASSERT_EQ(::listen(silent, 5), 0);
  ASSERT_EQ(::getsockname(silent, reinterpret_cast<sockaddr*>(&any), &size), 0);
  party a;
  const address to{"127.0.0.1", ntohs(any.sin_port)};
  a.own->call(to, text("hello"));
  for (int i = 0; i < 10; ++i) a.progress();
  a.clock.advance(4999ms);
  a.progress();
  EXPECT_TRUE(a.news.empty());
  ASSERT_TRUE(a.own->next_limit());
  a.clock.advance(1ms);
  EXPECT_EQ(*a.own->next_limit(), a.clock.now());
  a.progress();
  ASSERT_EQ(a.news.size(), 1u);
  EXPECT_EQ(a.news[0].what, kind::failed);
  EXPECT_THAT(a.news[0].why, AllOf(HasSubstr(to_text(to)), HasSubstr("within 5 s")));
  EXPECT_FALSE(a.own->next_limit());
  ::close(silent);
}

TEST(contacts, know_another_server_by_its_answer) {
  // Another kind of server: it answers, but not as we do.
  const int other = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof any;
  ASSERT_EQ(::bind(other, reinterpret_cast<sockaddr*>(&any), size), 0);
  ASSERT_EQ(::listen(other, 5), 0);
  ASSERT_EQ(::getsockname(other, reinterpret_cast<sockaddr*>(&any), &size), 0);
  party a;
  a.own->call({"127.0.0.1", ntohs(any.sin_port)}, text("hello"));
  const int taken = ::accept(other, nullptr, nullptr);
  const std::string banner = "SSH-2.0-something that is long enough to be a seal\r\n";
  ASSERT_EQ(::send(taken, banner.data(), banner.size(), 0), static_cast<ssize_t>(banner.size()));
  ASSERT_TRUE(run({&a}, [&] { return a.news.size() == 1; }));
  EXPECT_THAT(a.news[0].why, HasSubstr("no Troupe process of this version"));
  ::close(taken);
  ::close(other);
}

TEST(contacts, drop_strangers_who_say_nothing_after_five_seconds) {
  party a;
  std::vector<std::unique_ptr<stranger>> crowd;
  for (int i = 0; i < 100; ++i) crowd.push_back(std::make_unique<stranger>(a.port()));
  ASSERT_TRUE(run({&a}, [&] { return a.own->strangers() == 100; }));
  a.clock.advance(5s);
  a.progress();
  EXPECT_EQ(a.own->strangers(), 0u);
  for (const auto& one : crowd) EXPECT_TRUE(one->is_dropped());
  EXPECT_TRUE(a.news.empty());
}

TEST(contacts, hold_a_bounded_number_of_strangers_and_still_hear_a_friend) {
  party a, friendly;
  std::vector<std::unique_ptr<stranger>> crowd;
  for (std::size_t i = 0; i < max_strangers + 50; ++i) {
    crowd.push_back(std::make_unique<stranger>(a.port()));
    a.progress();
  }
  EXPECT_LE(a.own->strangers(), max_strangers);
  friendly.own->call(a.own->local_address(), text("hello"));
  // The strangers had their second; the first of them make room.
  a.clock.advance(1100ms);
  ASSERT_TRUE(run({&a, &friendly}, [&] { return a.news.size() == 1; }));
  EXPECT_EQ(a.news[0].record, text("hello"));
  EXPECT_LE(a.own->strangers(), max_strangers);
}

TEST(contacts, survive_garbage) {
  constexpr std::uint32_t seed = 4711;
  std::mt19937 random(seed);
  party a, b;
  // A good greeting, to be damaged: taken from a real call to a listener of ours.
  bytes good;
  {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof any;
    ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&any), size), 0);
    ASSERT_EQ(::listen(listener, 5), 0);
    ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&any), &size), 0);
    b.own->call({"127.0.0.1", ntohs(any.sin_port)}, text("a greeting of some length"));
    const int taken = ::accept(listener, nullptr, nullptr);
    for (int i = 0; i < 10; ++i) b.progress();
    good.resize(1000);
    const ssize_t n = ::recv(taken, good.data(), good.size(), 0);
    ASSERT_GT(n, 32);
    good.resize(static_cast<std::size_t>(n));
    ::close(taken);
    ::close(listener);
  }
  int called = 0;
  for (int round = 0; round < 400; ++round) {
    bytes garbage;
    switch (random() % 4) {
      case 0:  // anything
        garbage.resize(random() % 3000);
        for (std::byte& one : garbage) one = static_cast<std::byte>(random());
        break;
      case 1:  // cut short, perhaps to nothing
        garbage.assign(good.begin(), good.begin() + static_cast<long>(random() % good.size()));
        break;
      case 2:  // one bit wrong
        garbage = good;
        garbage[random() % garbage.size()] ^= static_cast<std::byte>(1u << (random() % 8));
        break;
      default:  // the mark, and a length of anything behind it
        garbage.assign(good.begin(), good.begin() + 8);
        for (int i = 0; i < 200; ++i) garbage.push_back(static_cast<std::byte>(random()));
    }
    stranger one(a.port());
    one.say(garbage);
    for (int i = 0; i < 3; ++i) a.progress();
  }
  ASSERT_TRUE(run({&a}, [&] { return a.own->strangers() == 0; })) << "seed " << seed;
  for (const contact_news& one : a.news) called += one.what == kind::called ? 1 : 0;
  EXPECT_EQ(called, 0) << "seed " << seed;
  // The undamaged greeting is heard, and one that goes on talking is dropped.
  stranger one(a.port());
  one.say(good);
  ASSERT_TRUE(run({&a}, [&] { return !a.news.empty(); }));
  ASSERT_EQ(a.news.back().what, kind::called);
  a.own->answer(a.news.back().id, text("answer"));
  one.say(good);
  ASSERT_TRUE(run({&a}, [&] { return a.news.back().what == kind::ended; }));
  EXPECT_THAT(a.news.back().why, HasSubstr("not foreseen"));
}

TEST(contacts, refuse_connections_to_other_cards) {
  party a({.bind = {"0.0.0.0", 0},
           .advertise = {"192.0.2.1", 0},
           .accept_on = {"192.0.2.1"},
           .devices = {}});
  stranger one(a.port());
  ASSERT_TRUE(run({&a}, [&] { return one.is_dropped(); }));
  party b({.bind = {"0.0.0.0", 0},
           .advertise = {"127.0.0.1", 0},
           .accept_on = {"127.0.0.1"},
           .devices = {}});
  party caller;
  caller.own->call(b.own->local_address(), text("hello"));
  EXPECT_TRUE(run({&b, &caller}, [&] { return b.news.size() == 1; }));
}

}  // namespace
}  // namespace troupe::comm
