#include "actors/protocol/planner.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "actors/protocol/block_placement.hpp"

namespace troupe::actors::protocol {
namespace {

// A measured speed is never exact: who computes already is only replaced by who is clearly faster.
constexpr double staying_counts = 1.1;

double usable_speed(double speed) {
  if (!(speed > 0)) return 1;
  return std::clamp(speed, 1e-9, 1e9);
}

std::vector<candidate> in_order(std::vector<candidate> all) {
  std::ranges::stable_sort(all, [](const candidate& a, const candidate& b) {
    return std::tie(a.id, b.life, a.name, a.host, a.domain, a.address, a.store, a.computes, a.speed,
                    a.memory) < std::tie(b.id, a.life, b.name, b.host, b.domain, b.address, b.store,
                                         b.computes, b.speed, b.memory);
  });
  const auto doubles = std::ranges::unique(all, {}, &candidate::id);
  all.erase(doubles.begin(), doubles.end());
  for (candidate& c : all) {
    c.speed = usable_speed(c.speed);
    if (c.domain.empty()) c.domain = c.host;
  }
  return all;
}

// The previous entry of a member, if this is still the same life of it.
const plan_member* same_life(const planner_input& in, const candidate& c) {
  const plan_member* before = in.previous ? in.previous->find(c.id) : nullptr;
  return before != nullptr && before->life == c.life ? before : nullptr;
}

std::vector<plan_member> members_of(const planner_input& in, const std::vector<candidate>& all) {
  std::vector<plan_member> members;
  std::vector<std::size_t> able;
  std::vector<double> wanted;  // speeds, with some weight on staying
  for (std::size_t i = 0; i < all.size(); ++i) {
    const candidate& c = all[i];
    members.push_back({.id = c.id,
                       .life = c.life,
                       .name = c.name,
                       .host = c.host,
                       .domain = c.domain,
                       .address = c.address,
                       .computes = c.computes,
                       .store = c.store,
                       .first_leaf = 0,
                       .leaves = 0,
                       .threads = static_cast<std::uint64_t>(std::max(1.0, std::round(c.speed)))});
    if (!c.computes) continue;
    const plan_member* before = same_life(in, c);
    able.push_back(i);
    wanted.push_back(c.speed * (before != nullptr && before->leaves > 0 ? staying_counts : 1));
  }
  if (able.empty() || in.virtual_ranks == 0) return members;
  const std::vector<std::size_t> chosen = who_computes(in.virtual_ranks, wanted);
  std::vector<double> speeds;
  for (std::size_t i : chosen) speeds.push_back(all[able[i]].speed);
  const double node_cost = in.node_cost >= 0 && std::isfinite(in.node_cost) ? in.node_cost : 0;
  const std::vector<leaf_range> ranges = share_leaves(in.virtual_ranks, speeds, node_cost);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    members[able[chosen[i]]].first_leaf = ranges[i].first;
    members[able[chosen[i]]].leaves = ranges[i].leaves;
  }
  return members;
}

member_id coordinator_of(const planner_input& in, const std::vector<plan_member>& members) {
  const auto able = [&](std::optional<member_id> id) {
    return id && std::ranges::any_of(members,
                                     [&](const plan_member& m) { return m.id == *id && m.store; });
  };
  if (able(in.coordinator)) return *in.coordinator;
  if (in.previous && able(in.previous->coordinator)) return in.previous->coordinator;
  for (const plan_member& m : members) {
    if (m.store) return m.id;
  }
  return members.front().id;  // nobody sees the directory: nobody will publish this either
}

// The same number for the same value, in order of appearance.
template <class Key>
std::uint32_t number_of(std::map<Key, std::uint32_t>& known, const Key& key) {
  return known.try_emplace(key, static_cast<std::uint32_t>(known.size())).first->second;
}

std::vector<block_holder> holders_from(const planner_input& in, const std::vector<candidate>& all,
                                       const std::vector<plan_member>& members) {
  const bool anybody_computes =
      std::ranges::any_of(members, [](const plan_member& m) { return m.leaves > 0; });
  std::map<std::string, std::uint32_t> domains;
  std::map<std::pair<std::string, std::string>, std::uint32_t> hosts;
  std::vector<block_holder> holders;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const bool rank = members[i].leaves > 0 || !anybody_computes;
    block_holder& h = holders.emplace_back();
    h.domain = number_of(domains, members[i].domain);
    h.host = number_of(hosts, std::pair(members[i].domain, members[i].host));
    if (all[i].memory > 0) h.capacity = all[i].memory / holder_bytes_per_element;
    h.may_be_primary = rank;
    h.may_back_up = rank || in.spares == spare_policy::backups;
  }
  return holders;
}

// Who of the members holds each block by the previous plan.
void note_present(const planner_input& in, const std::vector<candidate>& all,
                  placement_request& request) {
  if (!in.previous) return;
  std::map<member_id, std::uint32_t> places;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    if (same_life(in, all[i]) != nullptr) places[all[i].id] = i;
  }
  std::vector<std::size_t> layer_starts{0};
  for (const auto& layer : in.layers) layer_starts.push_back(layer_starts.back() + layer.size());
  request.present.resize(layer_starts.back());
  request.present_primary.resize(layer_starts.back());
  for (const placed_blocks& part : in.previous->placement) {
    if (part.layer >= in.layers.size()) continue;
    for (std::uint32_t i = 0; i < part.blocks; ++i) {
      if (part.first_block + i >= in.layers[part.layer].size()) break;
      const std::size_t block = layer_starts[part.layer] + part.first_block + i;
      if (const auto it = places.find(part.primary); it != places.end()) {
        request.present[block].push_back(it->second);
        request.present_primary[block] = true;
      }
      for (member_id id : part.backups) {
        if (const auto it = places.find(id); it != places.end()) {
          request.present[block].push_back(it->second);
        }
      }
    }
  }
}

std::vector<placed_blocks> placement_of(const planner_input& in, const std::vector<candidate>& all,
                                        const std::vector<plan_member>& members) {
  placement_request request;
  request.holders = holders_from(in, all, members);
  request.layers = in.layers;
  request.backups = in.backups;
  note_present(in, all, request);
  const std::vector<held_by> held = place_blocks(request);
  std::vector<placed_blocks> blocks;
  std::size_t at = 0;
  for (std::uint32_t layer = 0; layer < in.layers.size(); ++layer) {
    for (std::uint32_t block = 0; block < in.layers[layer].size(); ++block, ++at) {
      placed_blocks& entry = blocks.emplace_back();
      entry.layer = layer;
      entry.first_block = block;
      entry.blocks = 1;
      entry.primary = members[held[at].primary].id;
      for (std::uint32_t m : held[at].backups) entry.backups.push_back(members[m].id);
    }
  }
  return joined(blocks);
}

}  // namespace

std::vector<placed_blocks> joined(const std::vector<placed_blocks>& blocks) {
  std::vector<placed_blocks> runs;
  for (const placed_blocks& next : blocks) {
    if (!runs.empty()) {
      placed_blocks& last = runs.back();
      if (last.layer == next.layer && last.first_block + last.blocks == next.first_block &&
          last.primary == next.primary && last.backups == next.backups) {
        last.blocks += next.blocks;
        continue;
      }
    }
    runs.push_back(next);
  }
  return runs;
}

std::string why_exposed(const plan& p) {
  if (p.members.empty()) return "there is no member";
  if (p.members.size() == 1) return "there is only one member";
  std::set<std::string> domains;
  for (const plan_member& m : p.members) domains.insert(m.domain);
  if (domains.size() == 1) return "all members are in the domain " + *domains.begin();
  for (const placed_blocks& part : p.placement) {
    const std::string where =
        "block " + std::to_string(part.first_block) + " of layer " + std::to_string(part.layer);
    if (part.backups.empty()) return where + " has a single holder";
    std::set<std::string> holding;
    std::vector<member_id> holders = part.backups;
    holders.push_back(part.primary);
    for (member_id id : holders) {
      if (const plan_member* m = p.find(id)) holding.insert(m->domain);
    }
    if (holding.size() == 1) return where + " is held in the domain " + *holding.begin() + " alone";
  }
  return "";
}

void give_reason(plan& p, const std::string& reason) {
  const std::string exposed = why_exposed(p);
  p.exposed = !exposed.empty();
  p.reason = reason;
  if (p.exposed) p.reason += (reason.empty() ? "exposed: " : "; exposed: ") + exposed;
}

plan make_plan(const planner_input& in) {
  const std::vector<candidate> all = in_order(in.candidates);
  plan p;
  p.run_id = in.run_id;
  p.number = in.number;
  p.parent = in.parent;
  p.base = in.base;
  p.virtual_ranks = in.virtual_ranks;
  p.verdict = in.verdict;
  if (all.empty()) {
    give_reason(p, in.reason);
    return p;
  }
  p.members = members_of(in, all);
  p.coordinator = coordinator_of(in, p.members);
  p.placement = placement_of(in, all, p.members);
  give_reason(p, in.reason);
  return p;
}

}  // namespace troupe::actors::protocol
