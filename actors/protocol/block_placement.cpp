#include "actors/protocol/block_placement.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "actors/protocol/levelling.hpp"
#include "config/base/error.hpp"

namespace troupe::actors::protocol {
namespace {

constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();

class placer {
 public:
  explicit placer(const placement_request& request) : holders_(request.holders), request_(request) {
    for (std::uint32_t layer = 0; layer < request.layers.size(); ++layer) {
      for (std::uint32_t elements : request.layers[layer]) {
        blocks_.push_back({layer, elements});
        largest_ = std::max<std::uint64_t>(largest_, elements);
        total_ += elements;
      }
    }
    placed_.assign(blocks_.size(), {nobody, {}});
    present_ = request.present;
    present_.resize(blocks_.size());
    primary_load_.resize(holders_.size());
    load_.resize(holders_.size());
    std::set<std::uint32_t> domains, hosts;
    for (const block_holder& h : holders_) {
      if (!h.may_be_primary && !h.may_back_up) continue;
      domains.insert(h.domain);
      hosts.insert(h.host);
      ++usable_;
    }
    copies_ = std::min<std::uint64_t>(std::uint64_t{request.backups} + 1, usable_);
    want_domains_ = std::min(copies_, domains.size());
    want_hosts_ = std::min(copies_, hosts.size());
  }

  std::vector<held_by> place() {
    keep_primaries();
    fill_primaries();
    level_primaries();
    keep_backups();
    fill_backups();
    level_backups();
    for (held_by& entry : placed_) std::ranges::sort(entry.backups);
    return std::move(placed_);
  }

 private:
  struct sized_block {
    std::uint32_t layer = 0, elements = 0;
  };
  struct spread {
    std::size_t domains = 0, hosts = 0;
  };

  bool overfull(std::uint32_t member, std::uint64_t more) const {
    return load_[member] + more > holders_[member].capacity;
  }
  bool held_before(std::size_t block, std::uint32_t member) const {
    return std::ranges::find(present_[block], member) != present_[block].end();
  }
  bool holds(std::size_t block, std::uint32_t member) const {
    return placed_[block].primary == member ||
           std::ranges::find(placed_[block].backups, member) != placed_[block].backups.end();
  }

  // --- primaries ---

  void set_primary(std::size_t block, std::uint32_t member) {
    placed_[block].primary = member;
    primary_load_[member] += blocks_[block].elements;
    load_[member] += blocks_[block].elements;
  }
  std::uint32_t unset_primary(std::size_t block) {
    const std::uint32_t member = placed_[block].primary;
    primary_load_[member] -= blocks_[block].elements;
    load_[member] -= blocks_[block].elements;
    return member;
  }

  // First the primaries that stay, then the blocks that lost theirs, to the least loaded holder.
  void keep_primaries() {
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (present_[b].empty() || !request_.present_primary[b]) continue;
      const std::uint32_t member = present_[b].front();
      if (holders_[member].may_be_primary) set_primary(b, member);
    }
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (placed_[b].primary != nobody) continue;
      std::uint32_t best = nobody;
      for (std::uint32_t member : present_[b]) {
        if (!holders_[member].may_be_primary) continue;
        if (best == nobody || primary_rank(member, 0) < primary_rank(best, 0)) best = member;
      }
      if (best != nobody) set_primary(b, best);
    }
  }

  std::tuple<bool, std::uint64_t, std::uint32_t> primary_rank(std::uint32_t member,
                                                              std::uint64_t more) const {
    return {overfull(member, more), primary_load_[member], member};
  }

  void fill_primaries() {
    std::vector<std::size_t> waiting;  // of one layer
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (placed_[b].primary == nobody) waiting.push_back(b);
      const bool layer_ends = b + 1 == blocks_.size() || blocks_[b + 1].layer != blocks_[b].layer;
      if (layer_ends && !waiting.empty()) {
        fill_layer(waiting);
        waiting.clear();
      }
    }
  }

  // Who gets how many is found block by block; then the blocks are dealt out in runs. The last
  // block of a layer is shorter, so its owner's run comes last.
  void fill_layer(const std::vector<std::size_t>& waiting) {
    std::vector<std::uint32_t> owners;
    for (std::size_t b : waiting) {
      std::uint32_t best = nobody;
      for (std::uint32_t m = 0; m < holders_.size(); ++m) {
        if (!holders_[m].may_be_primary) continue;
        const std::uint64_t size = blocks_[b].elements;
        if (best == nobody || primary_rank(m, size) < primary_rank(best, size)) best = m;
      }
      ensure(best != nobody, "blocks were to be placed where nobody may be primary");
      owners.push_back(best);
      set_primary(b, best);
    }
    const std::uint32_t last = owners.back();
    std::ranges::sort(owners, {}, [&](std::uint32_t m) { return std::pair(m == last, m); });
    for (std::size_t b : waiting) unset_primary(b);
    for (std::size_t i = 0; i < waiting.size(); ++i) set_primary(waiting[i], owners[i]);
  }

  void level_primaries() {
    std::vector<std::vector<std::size_t>> owned(holders_.size());
    for (std::size_t b = 0; b < blocks_.size(); ++b) owned[placed_[b].primary].push_back(b);
    const auto may = [&](std::uint32_t m) { return holders_[m].may_be_primary; };
    level_loads(primary_load_, largest_, may, [&](std::uint32_t from, std::uint32_t to) {
      // Best is a block that `to` holds already, then one that lacks a copy anyway.
      std::optional<std::pair<int, std::size_t>> best;
      for (std::size_t i = 0; i < owned[from].size(); ++i) {
        const std::size_t b = owned[from][i];
        const std::uint64_t size = blocks_[b].elements;
        if (size == 0 || primary_load_[from] < primary_load_[to] + size + 1) continue;
        if (overfull(to, size) && !overfull(from, 0)) continue;
        const int price = held_before(b, to) ? 0 : present_[b].size() < copies_ ? 1 : 2;
        if (!best || price <= best->first) best = {price, i};  // the last of them: runs stay whole
      }
      if (!best) return false;
      const std::size_t b = owned[from][best->second];
      owned[from].erase(owned[from].begin() + static_cast<std::ptrdiff_t>(best->second));
      unset_primary(b);
      set_primary(b, to);
      owned[to].push_back(b);
      return true;
    });
  }

  // --- backups ---

  // Does a member add a domain, a host, to a block's holders (but for `without`)?
  spread adds(std::size_t block, std::uint32_t member, std::uint32_t without = nobody) const {
    const block_holder& h = holders_[member];
    const held_by& entry = placed_[block];
    spread found{1, 1};
    const auto meet = [&](std::uint32_t other) {
      if (other == without) return;
      if (holders_[other].domain == h.domain) found.domains = 0;
      if (holders_[other].host == h.host) found.hosts = 0;
    };
    meet(entry.primary);
    for (std::uint32_t m : entry.backups) meet(m);
    return found;
  }

  void add_backup(std::size_t block, std::uint32_t member) {
    placed_[block].backups.push_back(member);
    load_[member] += blocks_[block].elements;
  }
  std::size_t missing(std::size_t block) const {
    return copies_ - 1 - placed_[block].backups.size();
  }

  // A present holder stays a backup unless its place is needed for another domain or host.
  void keep_backups() {
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      std::vector<std::uint32_t> stay;
      for (std::uint32_t m : present_[b]) {
        if (m != placed_[b].primary && holders_[m].may_back_up) stay.push_back(m);
      }
      std::ranges::sort(stay, {}, [&](std::uint32_t m) { return std::pair(load_[m], m); });
      spread so_far{1, 1};  // the primary
      for (std::uint32_t m : stay) {
        if (missing(b) == 0) break;
        const spread more = adds(b, m);
        const spread with{so_far.domains + more.domains, so_far.hosts + more.hosts};
        const std::size_t places = missing(b) - 1;
        if (with.domains + places < want_domains_ || with.hosts + places < want_hosts_) continue;
        add_backup(b, m);
        so_far = with;
      }
    }
  }

  // Consecutive blocks with the same holders so far get the same new one, so that a plan stays
  // short; not too many at a time, so that loads stay even.
  void fill_backups() {
    const std::uint64_t at_once =
        total_ * (copies_ - 1) / (8 * std::max<std::uint64_t>(1, usable_));
    for (std::size_t first = 0; first < blocks_.size();) {
      if (missing(first) == 0) {
        ++first;
        continue;
      }
      std::uint64_t size = blocks_[first].elements;
      std::size_t end = first + 1;
      while (end < blocks_.size() && size + blocks_[end].elements <= at_once &&
             blocks_[end].layer == blocks_[first].layer &&
             placed_[end].primary == placed_[first].primary &&
             placed_[end].backups == placed_[first].backups) {
        size += blocks_[end++].elements;
      }
      std::uint32_t member = next_backup(first, size);
      if (member == nobody) return;  // only where present holders may no longer back up
      if (overfull(member, size)) {
        end = first + 1;
        member = next_backup(first, blocks_[first].elements);
      }
      for (std::size_t b = first; b < end; ++b) add_backup(b, member);
      if (missing(first) == 0) first = end;
    }
  }

  std::uint32_t next_backup(std::size_t block, std::uint64_t size) const {
    const held_by& entry = placed_[block];
    const auto n = static_cast<std::uint32_t>(holders_.size());
    // Equally loaded members take turns, by another distance in each layer.
    const std::uint32_t turn = (entry.primary + 1 + blocks_[block].layer % std::max(1u, n - 1)) % n;
    std::uint32_t best = nobody;
    std::tuple<bool, bool, bool, std::uint64_t, std::uint32_t> best_rank;
    for (std::uint32_t m = 0; m < n; ++m) {
      if (!holders_[m].may_back_up || holds(block, m)) continue;
      const spread more = adds(block, m);
      const std::tuple rank{overfull(m, size), more.domains == 0, more.hosts == 0, load_[m],
                            (m + n - turn) % n};
      if (best != nobody && best_rank <= rank) continue;
      best = m;
      best_rank = rank;
    }
    return best;
  }

  void level_backups() {
    std::vector<std::vector<std::size_t>> kept(holders_.size());
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      for (std::uint32_t m : placed_[b].backups) kept[m].push_back(b);
    }
    const auto may = [&](std::uint32_t m) { return holders_[m].may_back_up; };
    level_loads(load_, largest_, may, [&](std::uint32_t from, std::uint32_t to) {
      // Best is a block that `to` holds already, then one that is copied anyway.
      std::optional<std::pair<int, std::size_t>> best;
      for (std::size_t i = kept[from].size(); i-- > 0;) {
        const std::size_t b = kept[from][i];
        const std::uint64_t size = blocks_[b].elements;
        const int price = held_before(b, to) ? 0 : !held_before(b, from) ? 1 : 2;
        if (best && best->first <= price) continue;
        if (size == 0 || load_[from] < load_[to] + size + 1 || holds(b, to)) continue;
        if (overfull(to, size) && !overfull(from, 0)) continue;
        const spread gain = adds(b, to, from), loss = adds(b, from, from);
        if (gain.domains < loss.domains || gain.hosts < loss.hosts) continue;
        best = {price, i};
        if (price == 0) break;
      }
      if (!best) return false;
      const std::size_t b = kept[from][best->second];
      kept[from].erase(kept[from].begin() + static_cast<std::ptrdiff_t>(best->second));
      std::erase(placed_[b].backups, from);
      load_[from] -= blocks_[b].elements;
      add_backup(b, to);
      kept[to].push_back(b);
      return true;
    });
  }

  const std::vector<block_holder>& holders_;
  const placement_request& request_;
  std::vector<sized_block> blocks_;  // layers end to end
  std::vector<std::vector<std::uint32_t>> present_;
  std::vector<held_by> placed_;
  std::vector<std::uint64_t> primary_load_, load_;  // elements, by member
  std::uint64_t largest_ = 0, total_ = 0, copies_ = 1;
  std::size_t usable_ = 0, want_domains_ = 1, want_hosts_ = 1;
};

}  // namespace

std::vector<held_by> place_blocks(const placement_request& request) {
  return placer(request).place();
}

}  // namespace troupe::actors::protocol
