#include "actors/world_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace troupe::actors {
namespace {

std::string count_of(std::uint64_t workers) {
  return fmt::format("{} worker{}", workers, workers == 1 ? "" : "s");
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& n : names) text += (text.empty() ? "" : ", ") + n;
  return text;
}

world_order refused(exit_code code, std::string words) {
  world_order o;
  o.code = code;
  o.words = std::move(words);
  return o;
}

std::uint64_t wanted_in(const std::vector<slot_now>& slots) {
  return static_cast<std::uint64_t>(std::ranges::count(slots, true, &slot_now::wanted));
}

// In the order in which they leave.
std::vector<std::size_t> surplus(const std::vector<slot_now>& slots, std::size_t count) {
  std::vector<std::size_t> leavers;
  for (std::size_t i = slots.size(); i-- > 0;) {
    if (slots[i].wanted && !slots[i].coordinates) leavers.push_back(i);
  }
  for (std::size_t i = slots.size(); i-- > 0;) {
    if (slots[i].wanted && slots[i].coordinates) leavers.push_back(i);
  }
  // Who has no process, or none that is sure to stay, costs nobody anything.
  std::ranges::stable_partition(leavers, [&](std::size_t i) { return !slots[i].running; });
  leavers.resize(std::min(leavers.size(), count));
  return leavers;
}

world_order scale(std::uint64_t wish, const std::vector<slot_now>& slots,
                  const size_limits& limits) {
  if (wish == 0) {
    return refused(exit_code::usage,
                   "a run without workers is no run; `troupe stop` saves and ends it");
  }
  if (wish < limits.min_members) {
    return refused(exit_code::usage,
                   fmt::format("{} would be fewer than elastic.min_members = {}, and the run "
                               "would only wait",
                               count_of(wish), limits.min_members));
  }
  if (wish > limits.max_members) {
    return refused(exit_code::usage, fmt::format("{} would be more than elastic.max_members = {}",
                                                 count_of(wish), limits.max_members));
  }
  world_order o;
  o.from = wanted_in(slots);
  o.to = wish;
  std::vector<std::string> starts, leaves, follow;
  // Slots that are wanted and have nobody are filled by any order that keeps them.
  const auto fill = [&](std::size_t i) {
    o.start.push_back(i);
    (slots[i].leaving ? follow : starts).push_back(slots[i].name);
  };
  if (wish < o.from) {
    o.leave = surplus(slots, o.from - wish);
    for (const std::size_t i : o.leave) leaves.push_back(slots[i].name);
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const bool kept = slots[i].wanted && std::ranges::find(o.leave, i) == o.leave.end();
    if (kept && !slots[i].running && !slots[i].waits) fill(i);
  }
  std::uint64_t have = std::min(o.from, wish);
  for (std::size_t i = 0; i < slots.size() && have < wish; ++i) {
    if (slots[i].wanted) continue;
    fill(i);
    ++have;
  }
  for (; have < wish; ++have) {
    starts.push_back(fmt::format("worker-{}", slots.size() + o.add));
    ++o.add;
  }
  o.words = o.from == o.to ? fmt::format("at {} already", count_of(o.to))
                           : fmt::format("from {} to {}", o.from, count_of(o.to));
  if (!starts.empty()) o.words += "; starting " + listed(starts);
  if (!follow.empty()) {
    o.words += fmt::format("; {} {} leaving, and started again after that", listed(follow),
                           follow.size() == 1 ? "is" : "are");
  }
  if (!leaves.empty()) {
    o.words += fmt::format("; {} leave{}", listed(leaves), leaves.size() == 1 ? "s" : "");
  }
  return o;
}

world_order drain(const std::string& name, const std::vector<slot_now>& slots,
                  const size_limits& limits) {
  const auto slot = std::ranges::find(slots, name, &slot_now::name);
  if (slot == slots.end()) {
    std::vector<std::string> names;
    for (const slot_now& s : slots) names.push_back(s.name);
    return refused(exit_code::usage,
                   fmt::format("{} is no worker of this launcher, which has {}; a worker that a "
                               "person has started leaves after TERM",
                               name, listed(names)));
  }
  world_order o;
  o.from = o.to = wanted_in(slots);
  if (!slot->wanted) {
    o.words = name + (slot->running ? " is leaving already" : " has left already");
    return o;
  }
  if (o.from == 1) {
    return refused(exit_code::usage,
                   name + " is the last worker; `troupe stop` saves and ends the run");
  }
  if (o.from <= limits.min_members) {
    return refused(exit_code::usage,
                   fmt::format("without {} there would be fewer workers than "
                               "elastic.min_members = {}, and the run would only wait",
                               name, limits.min_members));
  }
  o.to = o.from - 1;
  o.leave.push_back(static_cast<std::size_t>(slot - slots.begin()));
  o.words = slot->running
                ? fmt::format("{} leaves, {} stay{}", name, count_of(o.to), o.to == 1 ? "s" : "")
                : fmt::format("{} has no process, and gets none; {} stay{}", name, count_of(o.to),
                              o.to == 1 ? "s" : "");
  return o;
}

}  // namespace

std::optional<world_wish> parse_wish(const std::string& words) {
  const std::size_t space = words.find(' ');
  if (space == std::string::npos) return std::nullopt;
  const std::string what = words.substr(0, space), about = words.substr(space + 1);
  if (what == "drain" && !about.empty()) return drain_wish{about};
  std::uint64_t number = 0;
  const auto [end, trouble] = std::from_chars(about.data(), about.data() + about.size(), number);
  if (what != "scale" || trouble != std::errc{} || end != about.data() + about.size()) {
    return std::nullopt;
  }
  return scale_wish{number};
}

std::string to_text(const world_wish& wish) {
  if (const auto* s = std::get_if<scale_wish>(&wish)) return fmt::format("scale {}", s->workers);
  return "drain " + std::get<drain_wish>(wish).name;
}

world_order order_for(const world_wish& wish, const std::vector<slot_now>& slots,
                      const size_limits& limits, bool stopping) {
  if (stopping) {
    return refused(exit_code::cannot_use,
                   "the run is stopping; start it again with as many --workers as it should have");
  }
  if (const auto* s = std::get_if<scale_wish>(&wish)) return scale(s->workers, slots, limits);
  return drain(std::get<drain_wish>(wish).name, slots, limits);
}

}  // namespace troupe::actors
