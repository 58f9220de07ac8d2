#include "actors/straggler_watch.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::actors {
namespace {

constexpr std::array<const char*, 4> phase_names{"forward", "backward", "reduce", "apply"};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

std::vector<straggler> straggler_watch::step(
    const protocol::plan& p, const std::map<member_id, protocol::step_facts>& facts) {
  const bool shares_changed = plan_ != p.number;
  plan_ = p.number;
  std::erase_if(members_, [&](const auto& known) {
    const protocol::plan_member* m = p.find(known.first);
    return m == nullptr || m->life != known.second.life || m->leaves == 0;
  });
  double leaves = 0;
  for (const protocol::plan_member& m : p.members) leaves += m.leaves;
  for (const protocol::plan_member& m : p.members) {
    const auto told = facts.find(m.id);
    if (m.leaves == 0 || told == facts.end()) continue;
    const protocol::step_facts& f = told->second;
    seen& s = members_[m.id];
    s.life = m.life;
    if (shares_changed) {  // first steps of a plan wait for parameters and warm up
      s.steps.clear();
      s.next = 0;
      s.ratio.reset();
    }
    // Of an average share, as shares differ by up to an eighth.
    const double share = leaves / static_cast<double>(p.members.size()) / m.leaves;
    const by_phase work{f.forward * share, f.backward * share, f.reduce, f.apply};
    if (s.steps.size() < rule_.steps) {
      s.steps.push_back(work);
    } else {
      s.steps[s.next++ % rule_.steps] = work;
    }
  }

  const auto of_member = [](const seen& s, auto value) {
    std::vector<double> all;
    for (const by_phase& work : s.steps) all.push_back(value(work));
    return median(std::move(all));
  };
  const auto whole = [](const by_phase& work) {
    return std::accumulate(work.begin(), work.end(), 0.0);
  };
  std::vector<straggler> news;
  for (auto& [id, s] : members_) {
    if (s.steps.size() < rule_.steps) continue;
    const auto others = [&](auto value) -> std::optional<double> {
      std::vector<double> all;
      for (const auto& [other, o] : members_) {
        if (other != id && o.steps.size() == rule_.steps) all.push_back(of_member(o, value));
      }
      if (all.empty()) return std::nullopt;
      return median(std::move(all));
    };
    const double mine = of_member(s, whole);
    const std::optional<double> theirs = others(whole);
    s.ratio.reset();
    if (!theirs || *theirs <= 0) continue;
    s.ratio = mine / *theirs;
    const bool far = mine - *theirs > rule_.unseen;
    const bool slow = s.slow ? *s.ratio > rule_.fine : *s.ratio > rule_.slow && far;
    if (slow == s.slow) continue;
    s.slow = slow;
    straggler n{id, !slow, *s.ratio, mine, *theirs, ""};
    double most = 0;
    for (std::size_t phase = 0; phase < phase_names.size(); ++phase) {
      const auto part = [phase](const by_phase& work) { return work[phase]; };
      const double loses = of_member(s, part) - others(part).value_or(0);
      if (loses <= most && !n.phase.empty()) continue;
      most = loses;
      n.phase = phase_names[phase];
    }
    news.push_back(std::move(n));
  }
  return news;
}

std::optional<double> straggler_watch::ratio(member_id who) const {
  const auto known = members_.find(who);
  return known == members_.end() ? std::nullopt : known->second.ratio;
}

}  // namespace troupe::actors
