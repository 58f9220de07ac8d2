#include "actors/chaos/order_desk.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/base/mixing.hpp"

namespace troupe::actors::chaos {

order_outbox* order_desk::outbox_of(const std::string& name, incarnation life) {
  const auto found = outboxes_.find({name, life});
  if (found != outboxes_.end()) return &found->second;
  if (folder_.empty()) return nullptr;
  auto opened = order_outbox::open(real_file_system(), folder_, name, life);
  if (!opened) return nullptr;
  return &outboxes_.emplace(std::pair(name, life), std::move(*opened)).first->second;
}

std::uint64_t order_desk::give_one(const protocol::plan_member& to, worker_order o) {
  o.id = given_.size() + 1;
  given_[o.id] = {to.name, to.life, {}, false};
  order_outbox* box = outbox_of(to.name, to.life);
  if (box == nullptr) {
    given_[o.id].proofs.push_back(
        {o.id, proof::kind::failed, 0, "", {}, fmt::format("{} takes no orders", to.name)});
  } else if (status sent = box->give(o); !sent) {
    given_[o.id].proofs.push_back({o.id, proof::kind::failed, 0, "", {}, sent.failure().message});
  }
  return o.id;
}

std::vector<std::uint64_t> order_desk::give(const injection& what, const chosen& whom,
                                            const std::optional<order_moment>& when,
                                            std::optional<duration> lasts) {
  worker_order o;
  o.kind = what.kind;
  o.params = what.params;
  o.when = when;
  o.lasts = lasts;
  o.seed = mixed(mixed(seed_, what.which.fault), what.which.number);
  std::map<member_id, std::vector<member_id>> to;  // who does it, to whom
  if (whom.links.empty()) {
    for (const member_id m : whom.members) to[m];
  }
  for (const link& l : whom.links) to[l.from].push_back(l.to);
  std::vector<std::uint64_t> ids;
  for (auto& [who, towards] : to) {
    const protocol::plan_member* member = plan_.find(who);
    if (member == nullptr) continue;
    o.towards = std::move(towards);
    ids.push_back(give_one(*member, o));
  }
  return ids;
}

// Its end, or that it is not to begin any more.
void order_desk::tell(std::uint64_t id, bool ends) {
  worker_order about;
  about.id = id;
  about.ends = ends;
  about.withdrawn = !ends;
  const given_order& given = given_.at(id);
  // Whoever has ended does not mind.
  if (order_outbox* box = outbox_of(given.name, given.life)) (void)box->give(about);
}

void order_desk::end(const std::vector<std::uint64_t>& orders) {
  for (const std::uint64_t id : orders) tell(id, true);
}

void order_desk::take_proofs() {
  for (auto& [whose, box] : outboxes_) {
    for (proof& p : box.take_proofs()) {
      const auto found = given_.find(p.id);
      if (found != given_.end()) found->second.proofs.push_back(std::move(p));
    }
  }
}

void order_desk::arm(const std::vector<armed_fault>& wanted) {
  const auto lives_of = [&](const armed_fault& a) {
    std::vector<std::pair<std::string, incarnation>> lives;
    for (const member_id m : a.whom.members) {
      if (const auto* found = plan_.find(m)) lives.emplace_back(found->name, found->life);
    }
    return lives;
  };
  std::vector<armed> kept;
  for (armed& a : armed_) {
    const auto found = std::ranges::find(wanted, a.what);
    if (found != wanted.end() && lives_of(*found) == a.lives) {
      kept.push_back(std::move(a));
      continue;
    }
    for (const std::uint64_t id : a.orders) tell(id, false);
    withdrawn_.push_back(std::move(a));  // it may have struck already
  }
  armed_ = std::move(kept);
  for (const armed_fault& w : wanted) {
    if (std::ranges::any_of(armed_, [&](const armed& a) { return a.what == w; })) continue;
    armed a{w, {}, lives_of(w)};
    const injection like{w.which, w.kind, w.whom, w.params, {}, "", 0, true, false};
    for (const step_range& r : w.steps) {
      for (const std::uint64_t id :
           give(like, w.whom, order_moment{w.point, r.first, r.last}, w.lasts)) {
        a.orders.push_back(id);
      }
    }
    armed_.push_back(std::move(a));
  }
}

std::vector<armed_struck> order_desk::take_struck() {
  take_proofs();
  std::vector<armed_struck> news;
  for (const auto* all : {&armed_, &withdrawn_}) {
    for (const armed& a : *all) {
      for (const std::uint64_t id : a.orders) {
        given_order& given = given_.at(id);
        if (given.shown || given.proofs.empty()) continue;
        const proof& p = given.proofs.front();
        if (p.what != proof::kind::struck) continue;
        given.shown = true;
        member_id who;
        for (const protocol::plan_member& m : plan_.members) {
          if (m.name == given.name) who = m.id;
        }
        news.push_back({a.what.which, who, p.step, p.point});
      }
    }
  }
  return news;
}

std::vector<order_desk::shown_order> order_desk::shown(const occurrence& which) const {
  std::vector<shown_order> all;
  for (const auto* some : {&armed_, &withdrawn_}) {
    for (const armed& a : *some) {
      if (a.what.which != which) continue;
      for (const std::uint64_t id : a.orders) {
        const given_order& given = given_.at(id);
        if (given.shown) all.push_back({id, given.name, given.proofs.front()});
      }
    }
  }
  return all;
}

std::string order_desk::proven(const std::vector<std::uint64_t>& orders, fault_kind kind) const {
  std::string words;
  std::size_t proven = 0;
  for (const std::uint64_t id : orders) {
    const given_order& given = given_.at(id);
    for (const proof& p : given.proofs) {
      if (p.what != proof::kind::struck) continue;
      ++proven;
      words += fmt::format("{}{}: {}", words.empty() ? "" : ", ", given.name, p.words);
      break;
    }
  }
  // Of several ends of links one may have nothing to say.
  const bool links = row_of(kind).what == strikes::links;
  const bool enough = links ? proven > 0 : proven > 0 && proven == orders.size();
  return enough ? words : "";
}

std::string order_desk::refused(const std::vector<std::uint64_t>& orders) const {
  for (const std::uint64_t id : orders) {
    for (const proof& p : given_.at(id).proofs) {
      if (p.what == proof::kind::failed) return p.words;
    }
  }
  return "";
}

}  // namespace troupe::actors::chaos
