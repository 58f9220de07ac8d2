// A few processes on a simulated network that write down what happens to them.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "comm/simulated_transport.hpp"

namespace troupe::comm {

inline bytes text(std::string_view words) {
  const auto view = std::as_bytes(std::span(words));
  return {view.begin(), view.end()};
}

inline std::string words(bytes_view from) {
  return {reinterpret_cast<const char*>(from.data()), from.size()};
}

// A process that writes down what happens to it.
struct process final : control_handler, bulk_handler {
  process_id id;
  std::unique_ptr<transport> way;
  std::vector<std::string> diary;
  std::vector<link_id> links;
  std::map<std::string, bytes> arriving;
  std::vector<std::uint64_t> tokens;
  bool wants_bulk = true;
  bool answers = false;

  void link_opened(link_id link, bool we_connected) override {
    links.push_back(link);
    diary.push_back(we_connected ? "connected" : "accepted");
  }
  void frame_received(link_id link, bytes_view frame) override {
    diary.push_back(words(frame));
    if (answers) way->control().send(link, text("re: " + words(frame)));
  }
  void link_closed(link_id, const std::string& why) override { diary.push_back("closed: " + why); }
  std::optional<std::span<std::byte>> place(bytes_view header, std::size_t size) override {
    if (!wants_bulk) return std::nullopt;
    return arriving[words(header)] = bytes(size), arriving[words(header)];
  }
  void arrived(bytes_view header, std::span<std::byte> payload) override {
    diary.push_back(fmt::format("bulk {} {}", words(header), payload.size()));
  }
  void sent(std::uint64_t token) override { tokens.push_back(token); }
};

struct world {
  simulated_network network;
  std::deque<process> processes;

  explicit world(std::size_t count, std::uint64_t seed = 1, const network_conditions& c = {})
      : network(seed, c), processes(count) {
    for (process& p : processes) {
      auto added = network.add_process();
      p.id = added.id;
      p.way = std::move(added.transport);
      p.way->start(p);
    }
  }
  process& operator[](std::size_t i) { return processes[i]; }
  const address& where(std::size_t i) { return processes[i].way->control().local_address(); }

  void run(std::chrono::nanoseconds until = std::chrono::nanoseconds::max()) {
    for (auto next = network.next_event(); next && *next <= until; next = network.next_event()) {
      network.advance_to(*next);
      for (const process_id p : network.take_ready()) processes[p.value].way->progress();
    }
    if (until != std::chrono::nanoseconds::max()) network.advance_to(until);
  }
  link_id connect(std::size_t from, std::size_t to) {
    return processes[from].way->control().connect(where(to));
  }
  void say(std::size_t from, link_id link, std::string_view what) {
    processes[from].way->control().send(link, text(what));
  }
  std::string all() const {
    std::string joined;
    for (const process& p : processes) {
      for (const std::string& line : p.diary) joined += fmt::format("{} {}\n", p.id.value, line);
    }
    return joined;
  }
};

}  // namespace troupe::comm
