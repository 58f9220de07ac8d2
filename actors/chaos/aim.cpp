#include "actors/chaos/aim.hpp"

namespace troupe::actors::chaos {
namespace {

// "" where the run promises to survive it.
std::string outside_of_promise(const fault& f, const aim_rules& rules, const world_view& world,
                               strike with, const std::vector<member_id>& members,
                               const std::vector<link>& links) {
  if (!rules.inside_promise || !row_of(f.kind).loses_member) return "";
  if (f.kind == fault_kind::cut && !links.empty()) {
    with.cut.insert(with.cut.end(), links.begin(), links.end());
  } else {
    with.lost.insert(with.lost.end(), members.begin(), members.end());
  }
  return breaks_promise(world, with, rules.may_lose);
}

}  // namespace

chosen aim(const fault& f, const aim_rules& rules, const world_view& world, const strike& open,
           std::uint64_t draw, std::optional<member_id> at) {
  const kind_row& row = row_of(f.kind);
  if (row.what == strikes::newcomer) return {};
  std::set<member_id> spared;
  for (const selector& s : rules.spared) {
    const chosen some = resolve_members(s, world, 0, {});
    spared.insert(some.members.begin(), some.members.end());
  }
  const preference fits = [&](const std::vector<member_id>& some) {
    for (const member_id m : some) {
      if (spared.contains(m) || (at && m != *at)) return false;
    }
    return at || outside_of_promise(f, rules, world, open, some, {}).empty();
  };
  chosen c = row.what == strikes::links ? resolve_links(f.target, world, draw, fits)
                                        : resolve_members(f.target, world, draw, fits);
  if (!c.nobody.empty()) return c;
  for (const member_id m : c.members) {
    if (spared.contains(m)) return {{}, {}, "all who could be struck are spared"};
  }
  std::string trouble = outside_of_promise(f, rules, world, open, c.members, c.links);
  if (!trouble.empty()) return {{}, {}, std::move(trouble)};
  return c;
}

}  // namespace troupe::actors::chaos
