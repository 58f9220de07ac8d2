#include "actors/router.hpp"

#include <type_traits>
#include <utility>

#include "actors/messages.hpp"

namespace troupe::actors {

namespace {

// What the worker hears whatever plan it was sent in: it is about members and plans themselves.
template <class T>
constexpr bool about_plans =
    std::is_same_v<T, protocol::plan_notice> || std::is_same_v<T, protocol::farewell> ||
    std::is_same_v<T, protocol::collect> || std::is_same_v<T, protocol::promise> ||
    std::is_same_v<T, protocol::promise_refused> || std::is_same_v<T, protocol::member_gone> ||
    std::is_same_v<T, protocol::stop_wish>;

}  // namespace

void router::send(member_id to, protocol::message what, const mark& sent) {
  if (to == self_) {
    const caf::actor target = target_of(what);
    if (target) caf::anon_send(target, incoming{self_, std::move(what)});
    return tell(sent, to);
  }
  const auto it = peers_.find(to);
  if (it != peers_.end()) return caf::anon_send(it->second, outgoing{std::move(what), sent});
  if (worker) caf::anon_send(worker, to_be_linked{to, std::move(what)});
}

void router::broadcast(const protocol::message& what, const mark& sent) {
  for (const auto& [id, peer] : peers_) caf::anon_send(peer, outgoing{what, sent});
  send(self_, what);
}

void router::act_for(std::optional<generation> plan) {
  plan_ = plan;
  if (!plan) return;
  newest_ = plan;
  for (early_message& m : std::exchange(early_, {})) {
    deliver(m.from, m.plan, std::move(m.what));
  }
}

void router::deliver(member_id from, generation plan, protocol::message what) {
  const bool always =
      std::visit([](const auto& m) { return about_plans<std::decay_t<decltype(m)>>; }, what);
  if (!always && plan_ != plan) {
    const bool is_early = (!newest_ || plan > *newest_) && early_.size() < most_early;
    if (is_early) return early_.push_back({from, plan, std::move(what)});
    ++refused_;
    return;
  }
  const caf::actor target = target_of(what);
  if (target) caf::anon_send(target, incoming{from, std::move(what)});
}

caf::actor router::target_of(const protocol::message& what) const {
  return std::visit(
      [this](const auto& m) -> caf::actor {
        using type = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<type, protocol::sum_held> ||
                      std::is_same_v<type, protocol::copy_wish>) {
          return m.block.layer < primary_shards.size() ? primary_shards[m.block.layer]
                                                       : caf::actor();
        } else if constexpr (std::is_same_v<type, protocol::record_notice> ||
                             std::is_same_v<type, protocol::save_request> ||
                             std::is_same_v<type, protocol::copy_plan> ||
                             std::is_same_v<type, protocol::go>) {
          return rank;
        } else if constexpr (std::is_same_v<type, protocol::bulk_address> ||
                             std::is_same_v<type, protocol::ready> ||
                             std::is_same_v<type, protocol::vote> ||
                             std::is_same_v<type, protocol::recorded> ||
                             std::is_same_v<type, protocol::validation_share> ||
                             std::is_same_v<type, protocol::save_share> ||
                             std::is_same_v<type, protocol::copies_held> ||
                             std::is_same_v<type, protocol::heartbeat>) {
          return coordinator;
        } else {
          static_assert(about_plans<type> || std::is_same_v<type, protocol::address_table>);
          return worker;
        }
      },
      what);
}

}  // namespace troupe::actors
