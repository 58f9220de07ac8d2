#include "actors/protocol/holdings.hpp"

#include <algorithm>

#include "config/base/error.hpp"

namespace troupe::actors::protocol {

void holdings::have(block_id block, std::uint64_t version) {
  const auto [at, fresh] = blocks_.try_emplace(block);
  ensure(fresh || !at->second.applying, "a block was replaced while it was updated");
  at->second = {version, 0, false, false};
}

void holdings::keep_only(const std::vector<block_id>& blocks) {
  ensure(still(), "blocks were given up while one is updated");
  std::erase_if(
      blocks_, [&](const auto& entry) { return !std::ranges::binary_search(blocks, entry.first); });
}

void holdings::drop_sums_after(std::uint64_t step) {
  for (auto& [block, of] : blocks_) of.newest_sum = std::min(of.newest_sum, step);
}

void holdings::sum_held(block_id block, std::uint64_t step) {
  const auto at = blocks_.find(block);
  if (at != blocks_.end()) at->second.newest_sum = std::max(at->second.newest_sum, step);
}

void holdings::applying(block_id block) {
  state& of = blocks_.at(block);
  ensure(!of.applying && !of.lost, "a block is updated twice at a time, or after it was lost");
  of.applying = true;
  ++applying_;
}

void holdings::applied(block_id block, std::uint64_t version) {
  state& of = blocks_.at(block);
  ensure(of.applying && version == of.version + 1, "an update ended that was not begun");
  of.applying = false;
  of.version = version;
  --applying_;
}

void holdings::torn(block_id block) {
  state& of = blocks_.at(block);
  ensure(of.applying, "an update failed that was not begun");
  of.applying = false;
  of.lost = true;
  --applying_;
}

std::optional<std::uint64_t> holdings::version_of(block_id block) const {
  const auto at = blocks_.find(block);
  if (at == blocks_.end() || at->second.lost) return std::nullopt;
  return at->second.version;
}

bool holdings::has_next_sum(block_id block) const {
  const auto at = blocks_.find(block);
  return at != blocks_.end() && !at->second.lost && at->second.newest_sum >= at->second.version + 1;
}

std::vector<held_fact> holdings::facts() const {
  std::vector<held_fact> all;
  for (const auto& [block, of] : blocks_) {
    all.push_back({block, of.version, !of.lost && of.newest_sum >= of.version + 1, of.lost});
  }
  return all;
}

}  // namespace troupe::actors::protocol
