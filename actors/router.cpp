#include "actors/router.hpp"

#include <type_traits>

#include "actors/messages.hpp"

namespace troupe::actors {

void router::send(member_id to, protocol::message what) {
  if (to == self_) return deliver(self_, std::move(what));
  const auto it = peers_.find(to);
  if (it != peers_.end()) caf::anon_send(it->second, outgoing{std::move(what)});
}

void router::broadcast(const protocol::message& what) {
  for (const auto& [id, peer] : peers_) caf::anon_send(peer, outgoing{what});
  deliver(self_, what);
}

void router::deliver(member_id from, protocol::message what) {
  const caf::actor target = target_of(what);
  if (target) caf::anon_send(target, incoming{from, std::move(what)});
}

caf::actor router::target_of(const protocol::message& what) const {
  return std::visit(
      [this](const auto& m) -> caf::actor {
        using type = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<type, protocol::sum_held>) {
          return m.block.layer < primary_shards.size() ? primary_shards[m.block.layer]
                                                       : caf::actor();
        } else if constexpr (std::is_same_v<type, protocol::record_notice> ||
                             std::is_same_v<type, protocol::save_request> ||
                             std::is_same_v<type, protocol::go>) {
          return rank;
        } else if constexpr (std::is_same_v<type, protocol::bulk_address> ||
                             std::is_same_v<type, protocol::ready> ||
                             std::is_same_v<type, protocol::vote> ||
                             std::is_same_v<type, protocol::recorded> ||
                             std::is_same_v<type, protocol::validation_share> ||
                             std::is_same_v<type, protocol::save_share> ||
                             std::is_same_v<type, protocol::heartbeat> ||
                             std::is_same_v<type, protocol::stop_wish>) {
          return coordinator;
        } else {
          static_assert(std::is_same_v<type, protocol::plan_notice> ||
                        std::is_same_v<type, protocol::address_table> ||
                        std::is_same_v<type, protocol::farewell>);
          return worker;
        }
      },
      what);
}

}  // namespace troupe::actors
