#include "comm/message_faults.hpp"

#include <algorithm>

#include "config/base/mixing.hpp"

namespace troupe::comm {

bool is_possible(message_fault what, message_plane plane) {
  if (plane == message_plane::control) return true;
  return what == message_fault::cut || what == message_fault::delay ||
         what == message_fault::reorder || what == message_fault::corrupt;
}

void message_faults::begin(message_rule rule) {
  struck_.emplace_back(rule.id, 0);
  rules_.push_back({std::move(rule), 0});
}

bool message_faults::end(std::uint64_t id) {
  return std::erase_if(rules_, [id](const kept_rule& k) { return k.rule.id == id; }) > 0;
}

bool message_faults::asks_for_names() const {
  return std::ranges::any_of(rules_, [](const kept_rule& k) { return !k.rule.message.empty(); });
}

bool message_faults::concerns(const message_rule& r, message_plane plane,
                              std::optional<member_id> to) {
  if (r.plane ? *r.plane != plane : !is_possible(r.what, plane)) return false;
  return r.to.empty() || (to && std::ranges::find(r.to, *to) != r.to.end());
}

bool message_faults::cuts(message_plane plane, std::optional<member_id> to) const {
  return std::ranges::any_of(rules_, [&](const kept_rule& k) {
    return k.rule.what == message_fault::cut && concerns(k.rule, plane, to);
  });
}

message_fate message_faults::decide(message_plane plane, std::optional<member_id> to,
                                    std::string_view name, std::size_t bytes) {
  message_fate fate;
  for (kept_rule& k : rules_) {
    const message_rule& r = k.rule;
    if (!concerns(r, plane, to)) continue;
    if (!r.message.empty() && r.message != name) continue;
    auto& count =
        std::ranges::find(struck_, r.id, &std::pair<std::uint64_t, std::uint64_t>::first)->second;
    if (r.messages && count >= *r.messages) continue;
    const auto draw = [&] { return mixed(mixed(r.seed, "message"), k.drawn++); };
    if (r.share < 1 && unit_interval(draw()) >= r.share) continue;
    if (r.what == message_fault::corrupt && bytes == 0) continue;
    ++count;
    const auto wait = [&] {
      const auto more = below(draw(), static_cast<std::uint64_t>(r.jitter.count()) + 1);
      fate.late = std::max(fate.late, r.by + std::chrono::nanoseconds(more));
    };
    switch (r.what) {
      case message_fault::cut:
        fate.cut = true;
        break;
      case message_fault::drop:
        fate.lost = true;
        break;
      case message_fault::delay:
        wait();
        break;
      case message_fault::reorder:
        wait();
        fate.overtaken = true;
        break;
      case message_fault::dup:
        fate.again = true;
        break;
      case message_fault::replay:
        fate.replay = true;
        break;
      case message_fault::corrupt:
        for (std::uint32_t i = 0; i < r.bits; ++i) {
          fate.flipped.push_back(below(draw(), bytes * std::uint64_t{8}));
        }
        // Two flips of one bit are none.
        std::ranges::sort(fate.flipped);
        fate.flipped.erase(std::ranges::unique(fate.flipped).begin(), fate.flipped.end());
        break;
    }
  }
  return fate;
}

void message_faults::nothing_to_replay(std::optional<member_id> to) {
  for (const kept_rule& k : rules_) {
    if (k.rule.what != message_fault::replay || !concerns(k.rule, message_plane::control, to)) {
      continue;
    }
    for (auto& [id, count] : struck_) count -= id == k.rule.id && count > 0 ? 1 : 0;
  }
}

std::uint64_t message_faults::struck(std::uint64_t id) const {
  const auto found =
      std::ranges::find(struck_, id, &std::pair<std::uint64_t, std::uint64_t>::first);
  return found == struck_.end() ? 0 : found->second;
}

void flip(std::vector<std::byte>& of, const std::vector<std::uint64_t>& bits) {
  for (const std::uint64_t bit : bits) of[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
}

}  // namespace troupe::comm
