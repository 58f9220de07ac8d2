#include "actors/chaos/target_lookup.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/base/mixing.hpp"

namespace troupe::actors::chaos {
namespace {

using kind = selector::kind;

std::vector<member_id> sorted(std::vector<member_id> all) {
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

const protocol::placed_blocks* block_number(const protocol::plan& p, std::uint32_t number) {
  for (const protocol::placed_blocks& placed : p.placement) {
    if (number < placed.blocks) return &placed;
    number -= placed.blocks;
  }
  return nullptr;
}

chosen nobody(std::string why) { return {{}, {}, std::move(why)}; }

// The sets of members of which one is struck.
struct candidates {
  std::vector<std::vector<member_id>> sets;
  std::string none;
};

candidates singles(const std::vector<member_id>& all, std::string none) {
  candidates c{{}, std::move(none)};
  for (const member_id m : all) c.sets.push_back({m});
  return c;
}

class looker {
 public:
  looker(const world_view& world) : world_(world) {}

  candidates look(const selector& s) const {
    const protocol::plan& p = world_.plan;
    switch (s.what) {
      case kind::member:
      case kind::link:
      case kind::pair:
      case kind::side:
        return set(s.members, to_text(s) + " is not alive");
      case kind::domain:
        if (s.number >= world_.domains.size()) {
          // Without a list of domains each member is one.
          return set({member_id(s.number)}, fmt::format("nobody of domain {} is alive", s.number));
        }
        return set(world_.domains[s.number], fmt::format("nobody of domain {} is alive", s.number));
      case kind::coordinator:
        return set({p.coordinator}, "the coordinator is not alive");
      case kind::primary:
      case kind::backup:
      case kind::holder:
        return holders(s);
      case kind::layer:
        return primaries_of_layer(s.number);
      case kind::joiner:
        if (!world_.joiner) return {{}, "nobody has joined yet"};
        return set({*world_.joiner}, "who joined is not alive");
      case kind::receiver: {
        const auto found = world_.receivers.find(s.fault);
        if (found == world_.receivers.end()) {
          return {{}, fmt::format("nobody is known to have got the message of {}", s.fault)};
        }
        return set({found->second}, "who got the message is not alive");
      }
      case kind::any:
        return singles(of_the_plan(), "nobody is alive");
      case kind::any_not:
        return any_but(s.excepted.front());
      case kind::all:
        return set(of_the_plan(), "nobody is alive");
    }
    return {{}, "nobody"};
  }

 private:
  // Who is alive among them, as one set.
  candidates set(const std::vector<member_id>& all, std::string none) const {
    std::vector<member_id> alive;
    for (const member_id m : sorted(all)) {
      if (world_.alive.contains(m)) alive.push_back(m);
    }
    if (alive.empty()) return {{}, std::move(none)};
    return {{alive}, ""};
  }

  std::vector<member_id> of_the_plan() const {
    std::vector<member_id> all;
    for (const protocol::plan_member& m : world_.plan.members) {
      if (world_.alive.contains(m.id)) all.push_back(m.id);
    }
    return all;
  }

  candidates holders(const selector& s) const {
    const protocol::placed_blocks* placed = block_number(world_.plan, s.number);
    if (placed == nullptr) return {{}, fmt::format("there is no block {}", s.number)};
    std::vector<member_id> all;
    if (s.what != kind::backup) all.push_back(placed->primary);
    if (s.what != kind::primary) {
      all.insert(all.end(), placed->backups.begin(), placed->backups.end());
    }
    std::erase_if(all, [&](member_id m) { return !world_.alive.contains(m); });
    return singles(sorted(all), fmt::format("no {} is alive", to_text(s)));
  }

  candidates primaries_of_layer(std::uint32_t layer) const {
    std::vector<member_id> all;
    for (const protocol::placed_blocks& placed : world_.plan.placement) {
      if (placed.layer == layer && world_.alive.contains(placed.primary)) {
        all.push_back(placed.primary);
      }
    }
    return singles(sorted(all), fmt::format("nobody who is alive has layer {}", layer));
  }

  candidates any_but(const selector& excepted) const {
    std::set<member_id> not_these;
    for (const auto& some : look(excepted).sets) not_these.insert(some.begin(), some.end());
    std::vector<member_id> others = of_the_plan();
    std::erase_if(others, [&](member_id m) { return not_these.contains(m); });
    return singles(others, fmt::format("only {} is alive", to_text(excepted)));
  }

  const world_view& world_;
};

}  // namespace

chosen resolve_members(const selector& s, const world_view& world, std::uint64_t draw,
                       const preference& prefer) {
  candidates from = looker(world).look(s);
  if (from.sets.empty()) return nobody(std::move(from.none));
  std::vector<std::vector<member_id>> wanted;
  if (prefer) {
    for (const auto& one : from.sets) {
      if (prefer(one)) wanted.push_back(one);
    }
  }
  if (wanted.empty()) wanted = std::move(from.sets);
  return {wanted[below(draw, wanted.size())], {}, ""};
}

chosen resolve_links(const selector& s, const world_view& world, std::uint64_t draw,
                     const preference& prefer) {
  chosen c = resolve_members(s, world, draw, prefer);
  if (!c.nobody.empty()) return c;
  std::set<link> links;
  if (s.what == kind::link || s.what == kind::pair) {
    if (c.members.size() != 2) return nobody(to_text(s) + ": one end is not alive");
    links.insert({s.members[0], s.members[1]});
    if (s.what == kind::pair) links.insert({s.members[1], s.members[0]});
    return {c.members, {links.begin(), links.end()}, ""};
  }
  for (const member_id one : c.members) {
    for (const protocol::plan_member& other : world.plan.members) {
      if (s.what != kind::all && std::ranges::binary_search(c.members, other.id)) continue;
      if (other.id == one) continue;
      links.insert({one, other.id});
      links.insert({other.id, one});
    }
  }
  if (links.empty()) return nobody(to_text(s) + " has no link to anybody");
  return {c.members, {links.begin(), links.end()}, ""};
}

}  // namespace troupe::actors::chaos
