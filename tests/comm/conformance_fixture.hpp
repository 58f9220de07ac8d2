// What a transport's conformance tests are made of: some transports that reach each other, and
// handlers that write down what they are told.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "comm/transport.hpp"

namespace troupe::comm {

// Some transports that reach each other, none of them started.
class transport_group {
 public:
  virtual ~transport_group() = default;
  virtual transport& at(std::size_t index) = 0;
  // progress() of all in turn until the condition holds; false: it did not within the subject's
  // limit, which is long.
  virtual bool run_until(const std::function<bool()>& condition) = 0;
  // Runs until whatever is under way has had time to arrive.
  virtual void settle() = 0;
  // The process of this transport dies; at(index) is not called again.
  virtual void lose(std::size_t index) = 0;
  // An address that is well formed and where nobody listens.
  virtual address nobody() = 0;
};

struct conformance_subject {
  std::string name;
  std::function<std::unique_ptr<transport_group>(std::size_t count)> make;
};

// How many calls into lanes are under way: handlers must not be called from within one.
inline int& calls_under_way() {
  static int count = 0;
  return count;
}
struct [[nodiscard]] calling {
  calling() { ++calls_under_way(); }
  ~calling() { --calls_under_way(); }
  calling(const calling&) = delete;
  calling& operator=(const calling&) = delete;
};

inline bytes to_bytes(std::string_view text) {
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}
inline bytes pattern(std::size_t size, std::uint32_t seed) {
  bytes all(size);
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::byte& one : all) {
    state = state * 1664525u + 1013904223u;
    one = static_cast<std::byte>(state >> 24);
  }
  return all;
}

// Writes down what it is told, and speaks through its transport with the calls marked.
class witness final : public control_handler {
 public:
  struct link_story {
    bool we_connected = false;
    std::vector<bytes> frames;
    std::optional<std::string> closed;
  };
  explicit witness(transport& own) : own_(own) { own.start(*this); }

  std::map<link_id, link_story> links;
  std::vector<std::string> never_opened;  // the reasons of connects that failed
  std::function<void(link_id, bytes_view)> on_frame;
  std::function<void(link_id, bool)> on_open;

  void link_opened(link_id link, bool we_connected) override {
    expect_outside();
    EXPECT_FALSE(links.contains(link)) << "a link opened twice";
    links[link].we_connected = we_connected;
    if (on_open) on_open(link, we_connected);
  }
  void frame_received(link_id link, bytes_view frame) override {
    expect_outside();
    ASSERT_TRUE(links.contains(link)) << "a frame came before its link";
    EXPECT_FALSE(links[link].closed) << "a frame came after the end of its link";
    links[link].frames.emplace_back(frame.begin(), frame.end());
    if (on_frame) on_frame(link, frame);
  }
  void link_closed(link_id link, const std::string& why) override {
    expect_outside();
    EXPECT_FALSE(why.empty());
    if (!links.contains(link)) {
      never_opened.push_back(why);
      return;
    }
    EXPECT_FALSE(links[link].closed) << "a link was closed twice";
    links[link].closed = why;
  }

  link_id connect(const address& to) {
    calling c;
    return own_.control().connect(to);
  }
  void send(link_id link, bytes frame) {
    calling c;
    own_.control().send(link, std::move(frame));
  }
  void close(link_id link) {
    calling c;
    own_.control().close(link);
  }
  const address& where() const { return own_.control().local_address(); }
  std::optional<link_id> accepted() const {
    for (const auto& [link, story] : links) {
      if (!story.we_connected) return link;
    }
    return std::nullopt;
  }
  bool opened(link_id link) const { return links.contains(link); }
  std::size_t frames(link_id link) const {
    const auto story = links.find(link);
    return story == links.end() ? 0 : story->second.frames.size();
  }
  bool closed(link_id link) const {
    const auto story = links.find(link);
    return story != links.end() && story->second.closed.has_value();
  }

 private:
  static void expect_outside() {
    EXPECT_EQ(calls_under_way(), 0) << "a handler was called from within a call into the transport";
  }
  transport& own_;
};

// Memory for each message that is announced, kept in the order of arrival.
class keeper final : public bulk_handler {
 public:
  struct message {
    bytes header, payload;
  };
  bool wants = true;
  std::vector<message> arrivals;
  std::vector<std::uint64_t> tokens;
  std::size_t announced = 0;
  std::function<void()> on_place, on_arrival, on_sent;

  std::optional<std::span<std::byte>> place(bytes_view, std::size_t size) override {
    expect_outside();
    ++announced;
    if (on_place) on_place();
    if (!wants) return std::nullopt;
    // Guard bytes behind, so that a longer write is seen.
    memory_.push_back(std::make_unique<bytes>(size + 16, std::byte{0xa5}));
    return std::span(*memory_.back()).first(size);
  }
  void arrived(bytes_view header, std::span<std::byte> payload) override {
    expect_outside();
    const auto own = std::ranges::find_if(
        memory_, [&](const auto& one) { return one->data() == payload.data(); });
    ASSERT_NE(own, memory_.end()) << "a payload arrived in memory that place() did not give";
    ASSERT_EQ((*own)->size(), payload.size() + 16);
    for (std::byte guard : std::span(**own).last(16)) EXPECT_EQ(guard, std::byte{0xa5});
    arrivals.push_back({{header.begin(), header.end()}, {payload.begin(), payload.end()}});
    memory_.erase(own);
    if (on_arrival) on_arrival();
  }
  void sent(std::uint64_t token) override {
    expect_outside();
    tokens.push_back(token);
    if (on_sent) on_sent();
  }
  // All memory that still belongs to the lane.
  std::vector<std::unique_ptr<bytes>>& memory() { return memory_; }

 private:
  static void expect_outside() {
    EXPECT_EQ(calls_under_way(), 0) << "a handler was called from within a call into the lane";
  }
  std::vector<std::unique_ptr<bytes>> memory_;
};

class transport_conformance : public testing::TestWithParam<conformance_subject> {
 protected:
  void make(std::size_t count) {
    group = GetParam().make(count);
    for (std::size_t i = 0; i < count; ++i) at.push_back(std::make_unique<witness>(group->at(i)));
  }
  bool run(const std::function<bool()>& condition) { return group->run_until(condition); }

  // A link from one to another, as both call it.
  std::pair<link_id, link_id> join(std::size_t from, std::size_t to) {
    std::optional<link_id> other;
    at[to]->on_open = [&](link_id link, bool we_connected) {
      if (!we_connected) other = link;
    };
    const link_id own = at[from]->connect(at[to]->where());
    EXPECT_TRUE(run([&] { return at[from]->opened(own) && other.has_value(); }))
        << "no link from " << from << " to " << to;
    at[to]->on_open = nullptr;
    return {own, other.value_or(link_id{})};
  }

  // Lanes of one generation, each connected to all others and to itself; member i is index i.
  std::vector<std::unique_ptr<bulk_lane>> open_bulk(std::uint32_t number,
                                                    std::vector<keeper>& keepers) {
    std::vector<std::unique_ptr<bulk_lane>> lanes;
    for (std::size_t i = 0; i < keepers.size(); ++i) {
      calling c;
      auto lane = group->at(i).open_bulk(generation{number}, keepers[i]);
      EXPECT_TRUE(lane) << lane.failure().message;
      lanes.push_back(std::move(*lane));
    }
    for (auto& lane : lanes) {
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        calling c;
        const status connected = lane->connect(member(i), lanes[i]->local_address());
        EXPECT_TRUE(connected) << connected.failure().message;
      }
    }
    return lanes;
  }
  static member_id member(std::size_t index) {
    return member_id(static_cast<std::uint32_t>(index));
  }
  static void send(bulk_lane& lane, std::size_t to, bytes_view header, bytes_view payload,
                   std::uint64_t token) {
    calling c;
    lane.send(member(to), header, payload, token);
  }

  std::unique_ptr<transport_group> group;
  std::vector<std::unique_ptr<witness>> at;
};

}  // namespace troupe::comm
