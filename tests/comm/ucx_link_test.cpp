#include "comm/ucx_link.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <list>
#include <map>

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing::HasSubstr;
using kind = ucx_link::kind;

constexpr std::uint64_t token = 0xfeed;

bytes text(std::string_view words) {
  const auto view = std::as_bytes(std::span(words));
  return {view.begin(), view.end()};
}

std::shared_ptr<ucx_context> context() {
  static const auto one = [] {
    auto opened = ucx_context::open_for_control("lo");
    EXPECT_TRUE(opened) << opened.failure().message;
    return *opened;
  }();
  return one;
}

// One side connected to the other.
class ucx_link_pair : public testing::Test {
 protected:
  std::unique_ptr<ucx_link> caller = *ucx_link::open(context(), token + 1);
  std::unique_ptr<ucx_link> called = *ucx_link::open(context(), token);

  bool run(const std::function<bool()>& condition) {
    const auto end = steady_clock::now() + 10s;
    while (!condition()) {
      if (steady_clock::now() > end) return false;
      if (caller) caller->progress();
      called->progress();
    }
    return true;
  }
};
TEST_F(ucx_link_pair, carries_messages_in_pieces_and_in_order_both_ways) {
  ASSERT_TRUE(caller->connect(called->address(), token));
  bytes large(max_frame_bytes);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::byte>(i % 251);
  caller->send(kind::hello, caller->address());
  caller->send(kind::frame, large);
  caller->send(kind::frame, {});
  caller->send(kind::goodbye, {});
  ASSERT_TRUE(run([&] { return called->received().size() == 4; }));
  EXPECT_EQ(called->received()[0].what, kind::hello);
  EXPECT_EQ(called->received()[0].content, caller->address());
  EXPECT_TRUE(called->received()[1].content == large);
  EXPECT_TRUE(called->received()[2].content.empty());
  EXPECT_EQ(called->received()[3].what, kind::goodbye);
  ASSERT_TRUE(run([&] { return caller->unsent_bytes() == 0; }));
  ASSERT_TRUE(called->connect(called->received()[0].content, token + 1));
  called->send(kind::frame, large);
  ASSERT_TRUE(run([&] { return caller->received().size() == 1; }));
  EXPECT_TRUE(caller->received()[0].content == large);
  EXPECT_FALSE(caller->trouble() || called->trouble());
}

TEST_F(ucx_link_pair, counts_what_is_not_taken) {
  ASSERT_TRUE(caller->connect(called->address(), token));
  for (int i = 0; i < 20; ++i) caller->send(kind::frame, bytes(max_frame_bytes));
  EXPECT_GT(caller->unsent_bytes(), max_frame_bytes);
  ASSERT_TRUE(run([&] { return called->received().size() == 20; }));
  ASSERT_TRUE(run([&] { return caller->unsent_bytes() == 0; }));
}

TEST_F(ucx_link_pair, ends_in_the_middle_of_everything) {
  ASSERT_TRUE(caller->connect(called->address(), token));
  for (int i = 0; i < 20; ++i) caller->send(kind::frame, bytes(max_frame_bytes));
  ASSERT_TRUE(run([&] { return called->received().size() == 1; }));
  const auto start = steady_clock::now();
  caller.reset();
  EXPECT_LT(steady_clock::now() - start, 100ms);
  for (int i = 0; i < 1000; ++i) called->progress();
}

// A peer that knows the token and breaks the rules.
class rogue {
 public:
  explicit rogue(const ucx_link& victim) : worker_(*ucx_worker::open(context())) {
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(victim.address().data());
    EXPECT_EQ(ucp_ep_create(worker_->handle(), &params, &endpoint_), UCS_OK);
  }
  // As ucx_link.hpp has it: token, number, kind, bytes left.
  static bytes header(std::uint64_t own_token, std::uint32_t number, kind what,
                      std::uint64_t left) {
    bytes made(24);
    std::memcpy(made.data(), &own_token, 8);
    std::memcpy(made.data() + 8, &number, 4);
    std::memcpy(made.data() + 12, &what, 4);
    std::memcpy(made.data() + 16, &left, 8);
    return made;
  }
  void send(bytes header, std::size_t size) {
    bytes& piece = sent_.emplace_back(std::move(header));
    piece.resize(piece.size() + size);
    ucp_request_param_t how{};
    ucp_tag_send_nbx(endpoint_, piece.data(), piece.size(), 0, &how);
  }
  void progress() { worker_->progress(); }

 private:
  std::list<bytes> sent_;
  std::unique_ptr<ucx_worker> worker_;
  ucp_ep_h endpoint_ = nullptr;
};

TEST_F(ucx_link_pair, ends_with_a_peer_that_breaks_the_rules) {
  struct crime {
    const char* why;
    std::function<void(rogue&)> commit;
  };
  constexpr std::uint64_t limit = max_frame_bytes;
  const std::vector<crime> crimes = {
      {"8388609 bytes; 8388608 are allowed",
       [](rogue& r) { r.send(rogue::header(token, 0, kind::frame, limit - 9), 10); }},
      {"are allowed",
       [](rogue& r) { r.send(rogue::header(token, 0, kind::frame, ~std::uint64_t{0}), 10); }},
      {"piece 7 came where 0 was expected",
       [](rogue& r) { r.send(rogue::header(token, 7, kind::frame, 0), 10); }},
      {"it sent 1048600 bytes in one piece",
       [](rogue& r) { r.send(rogue::header(token, 0, kind::frame, 0), std::size_t{1} << 20); }},
      {"do not fit together",
       [](rogue& r) {
         r.send(rogue::header(token, 0, kind::frame, 100), 10);
         r.send(rogue::header(token, 1, kind::frame, 100), 10);
       }},
      {"do not fit together",
       [](rogue& r) {
         r.send(rogue::header(token, 0, kind::frame, 100), 10);
         r.send(rogue::header(token, 1, kind::goodbye, 90), 10);
       }},
      {"do not fit together",
       [](rogue& r) {
         r.send(rogue::header(token, 0, kind::frame, 100), 10);
         r.send(rogue::header(token, 1, kind::frame, 100), 0);
       }},
  };
  for (std::size_t i = 0; i < crimes.size(); ++i) {
    const auto victim = *ucx_link::open(context(), token);
    rogue r(*victim);
    crimes[i].commit(r);
    ASSERT_TRUE(run([&] {
      r.progress();
      victim->progress();
      return victim->trouble().has_value();
    })) << i;
    EXPECT_THAT(*victim->trouble(), HasSubstr(crimes[i].why));
    EXPECT_TRUE(victim->received().empty());
  }
}

TEST_F(ucx_link_pair, drops_what_does_not_carry_its_token) {
  const auto victim = *ucx_link::open(context(), token);
  rogue r(*victim);
  r.send(text("short"), 10);
  r.send({}, 10);
  r.send(rogue::header(token + 1, 0, kind::frame, 0), 10);
  r.send(rogue::header(token, 0, kind::frame, 0), 3);
  ASSERT_TRUE(run([&] {
    r.progress();
    victim->progress();
    return victim->received().size() == 1;
  }));
  EXPECT_EQ(victim->received()[0].content.size(), 3u);
  EXPECT_FALSE(victim->trouble());
}

}  // namespace
}  // namespace troupe::comm
