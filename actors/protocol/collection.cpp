#include "actors/protocol/collection.hpp"

#include <algorithm>

#include "actors/protocol/plan_change.hpp"
#include "config/base/error.hpp"

namespace troupe::actors::protocol {
namespace {

const held_fact* fact_of(const promise& p, block_id block) {
  const auto at = std::ranges::lower_bound(p.blocks, block, {}, &held_fact::block);
  return at != p.blocks.end() && at->block == block ? &*at : nullptr;
}

bool reaches(const held_fact& fact, std::uint64_t base) {
  if (fact.lost) return false;
  return fact.version == base || (fact.version + 1 == base && fact.next_sum);
}

candidate candidate_of(const plan_member& m) {
  return {.id = m.id,
          .life = m.life,
          .name = m.name,
          .host = m.host,
          .domain = m.domain,
          .address = m.address,
          .store = m.store,
          .computes = m.computes,
          .speed = static_cast<double>(m.threads)};
}

planner_input input_of(const plan& present, const next_plan_settings& settings) {
  planner_input input;
  input.run_id = present.run_id;
  input.layers = settings.layers;
  input.virtual_ranks = present.virtual_ranks;
  input.backups = settings.backups;
  input.spares = settings.spares;
  input.coordinator = settings.coordinator;
  input.number = generation(present.number.value + 1);
  input.parent = settings.parent;
  input.verdict = "change";
  input.reason = settings.reason;
  input.previous = present;
  return input;
}

// As many holders of every block as were asked for, or as there are members.
bool fully_held(const plan& p, std::uint32_t backups) {
  const std::size_t wanted = std::min<std::size_t>(p.members.size(), std::size_t{backups} + 1);
  return std::ranges::all_of(
      p.placement, [&](const placed_blocks& part) { return part.backups.size() + 1 >= wanted; });
}

}  // namespace

collection::collection(const plan& present) : present_(&present) {}

void collection::newcomer(const candidate& who) {
  const plan_member* before = present_->find(who.id);
  if (before != nullptr && before->life < who.life) replaced_.insert(who.id);
  gone_.erase(who.id);
  newcomers_[who.id] = who;
  promises_.erase(who.id);
}

void collection::answered(member_id from, const promise& what) {
  if (what.next != next()) return;
  if (present_->find(from) == nullptr && !newcomers_.contains(from)) return;
  // Of a process that another one has replaced, or of that one after its line was lost.
  if (replaced_.contains(from) && (what.of_plan || !newcomers_.contains(from))) return;
  // It was only out of reach.
  if (const auto away = gone_.find(from); away != gone_.end()) {
    if (away->second) return;
    gone_.erase(away);
  }
  promise& kept = promises_[from];
  kept = what;
  std::ranges::sort(kept.blocks, {}, &held_fact::block);
}

void collection::gone(member_id who, bool proven) {
  bool& known = gone_[who];
  known = known || proven;
  promises_.erase(who);
  newcomers_.erase(who);
}

void collection::too_slow() { too_slow_ = true; }

std::vector<member_id> collection::waiting_for() const {
  std::vector<member_id> missing;
  if (too_slow_) return missing;
  const auto look_at = [&](member_id id) {
    if (!promises_.contains(id) && !gone_.contains(id)) missing.push_back(id);
  };
  for (const plan_member& m : present_->members) {
    if (!newcomers_.contains(m.id)) look_at(m.id);
  }
  for (const auto& [id, who] : newcomers_) look_at(id);
  std::ranges::sort(missing);
  return missing;
}

std::uint64_t collection::base() const {
  std::uint64_t highest = present_->base;
  for (const auto& [id, p] : promises_) highest = std::max(highest, p.seen);
  return highest;
}

bool collection::can_hold(member_id who, block_id block) const {
  const auto at = promises_.find(who);
  if (at == promises_.end()) return false;
  const held_fact* fact = fact_of(at->second, block);
  return fact != nullptr && reaches(*fact, base());
}

std::vector<block_id> collection::uncovered() const {
  std::vector<block_id> missing;
  for (const placed_blocks& entry : block_by_block(*present_)) {
    const block_id block{entry.layer, entry.first_block};
    const auto covers = [&](member_id id) {
      const auto at = promises_.find(id);
      return at != promises_.end() && at->second.of_plan && can_hold(id, block);
    };
    if (!covers(entry.primary) && std::ranges::none_of(entry.backups, covers)) {
      missing.push_back(block);
    }
  }
  return missing;
}

std::vector<block_id> collection::lost() const {
  std::vector<block_id> all;
  const auto has_it_no_more = [&](member_id id, block_id block) {
    if (replaced_.contains(id)) return true;
    const auto away = gone_.find(id);
    if (away != gone_.end()) return away->second;
    const auto at = promises_.find(id);
    if (at == promises_.end()) return false;
    if (!at->second.of_plan) return true;  // it holds nothing of this plan
    const held_fact* fact = fact_of(at->second, block);
    return fact == nullptr || fact->lost;
  };
  for (const block_id block : uncovered()) {
    const placed_blocks& entry = present_->holders_of(block);
    const auto no_more = [&](member_id id) { return has_it_no_more(id, block); };
    if (no_more(entry.primary) && std::ranges::all_of(entry.backups, no_more)) all.push_back(block);
  }
  return all;
}

std::vector<record_notice> collection::records() const {
  std::map<std::uint64_t, record_notice> known;
  for (const record_notice& n : present_->records) known[n.record.step] = n;
  std::uint64_t written = 0;
  for (const auto& [id, p] : promises_) {
    for (const record_notice& n : p.records) {
      known[n.record.step] = n;
      written = std::max(written, n.lines);
    }
  }
  const std::uint64_t newest = base();
  std::vector<record_notice> kept;
  for (auto& [step, n] : known) {
    if (step > newest || (step <= written && step != newest)) continue;
    n.last = false;
    kept.push_back(std::move(n));
  }
  // Without a gap up to base.
  while (kept.size() > 1 && kept.back().record.step - kept.front().record.step + 1 != kept.size()) {
    kept.erase(kept.begin());
  }
  return kept;
}

std::variant<plan, std::vector<block_id>> next_plan(const collection& from, const plan& present,
                                                    const std::vector<candidate>& newcomers,
                                                    const next_plan_settings& settings) {
  if (std::vector<block_id> missing = from.uncovered(); !missing.empty()) return missing;
  planner_input input = input_of(present, settings);
  input.base = from.base();
  const auto is_new = [&](member_id id) {
    return std::ranges::any_of(newcomers, [&](const candidate& c) { return c.id == id; });
  };
  const auto list = [&](bool without_leavers) {
    input.candidates.clear();
    for (const plan_member& m : present.members) {
      if (!from.has_answered(m.id) || is_new(m.id)) continue;
      if (without_leavers && settings.leaving.contains(m.id)) continue;
      input.candidates.push_back(candidate_of(m));
    }
    for (const candidate& c : newcomers) {
      if (from.has_answered(c.id)) input.candidates.push_back(c);
    }
  };
  const auto has = [&](member_id who, block_id block) { return from.can_hold(who, block); };
  // Leavers go as soon as the others can do without them.
  for (const bool without_leavers : {true, false}) {
    if (without_leavers && settings.leaving.empty()) continue;
    list(without_leavers);
    if (input.candidates.empty()) continue;
    auto made = publishable(make_plan(input), present, has, settings.reason);
    if (plan* whole = std::get_if<plan>(&made)) {
      if (without_leavers && !fully_held(*whole, settings.backups)) continue;
      whole->records = from.records();
      return std::move(*whole);
    }
    if (!without_leavers) return made;
  }
  ensure(false, "a covered collection has nobody to make a plan of");
  return std::vector<block_id>();
}

plan aim_of(const plan& present, const next_plan_settings& settings) {
  planner_input input = input_of(present, settings);
  input.base = present.base;
  for (const plan_member& m : present.members) {
    if (!settings.leaving.contains(m.id)) input.candidates.push_back(candidate_of(m));
  }
  if (input.candidates.empty()) return present;
  return make_plan(input);
}

}  // namespace troupe::actors::protocol
