#include "actors/roll_call.hpp"

#include <fmt/format.h>

namespace troupe::actors {

protocol::candidate candidate_from(const comm::facts& f) {
  protocol::candidate c;
  c.id = *f.wish;
  c.life = f.life;
  c.name = f.slot;
  c.host = f.host;
  c.domain = f.domain;
  c.address = f.address;
  c.computes = f.computes;
  c.speed = static_cast<double>(f.speed);
  c.memory = f.memory_bytes;
  return c;
}

roll_call::entry roll_call::note(const comm::facts& who) {
  const auto earlier = others_.find(*who.wish);
  if (earlier == others_.end()) {
    others_.emplace(*who.wish, who);
    return entry::taken;
  }
  if (earlier->second.life > who.life) return entry::outlived;
  const bool same = earlier->second.life == who.life;
  earlier->second = who;
  return same ? entry::taken : entry::replaces;
}

std::string roll_call::missing() const {
  const auto is_missing = [this](std::uint32_t slot) {
    return slot < expected_ && member_id(slot) != *me_.wish && !others_.contains(member_id(slot));
  };
  std::string text;
  for (std::uint32_t slot = 0; slot < expected_;) {
    const std::uint32_t first = slot++;
    if (!is_missing(first)) continue;
    while (is_missing(slot)) ++slot;
    text += (text.empty() ? "" : ", ") + std::to_string(first);
    if (slot - first > 1) text += "-" + std::to_string(slot - 1);
  }
  return text;
}

error roll_call::too_few(std::chrono::nanoseconds waited) const {
  return {exit_code::too_few,
          fmt::format("only {} of {} members came within {} s (elastic.wait_timeout_seconds); "
                      "missing are the slots {}: look at the output of their processes",
                      here(), expected_,
                      std::chrono::duration_cast<std::chrono::seconds>(waited).count(), missing())};
}

const comm::facts* roll_call::find(member_id who) const {
  const auto it = others_.find(who);
  return it == others_.end() ? nullptr : &it->second;
}

std::vector<comm::facts> roll_call::others() const {
  std::vector<comm::facts> all;
  for (const auto& [id, who] : others_) all.push_back(who);
  return all;
}

std::vector<protocol::candidate> roll_call::candidates() const {
  std::vector<protocol::candidate> all{candidate_from(me_)};
  for (const auto& [id, who] : others_) all.push_back(candidate_from(who));
  return all;
}

}  // namespace troupe::actors
