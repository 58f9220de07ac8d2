// The bulk traffic of one generation: gradient nodes to primaries, sums to backups, parameters to
// ranks. Arrivals go straight into the computation's memory and are then told to the actor that
// they concern. Destroying it ends the generation's traffic; nothing of an old plan arrives after.
//
// These point-to-point transfers are all the collectives there are: reduce-scatter is every rank
// sending its tree nodes to the primaries, all-gather is every primary sending parameters to the
// ranks, block by block as they become ready. A blocking collective would wait for the slowest
// layer, and could only be aborted as a whole.
#pragma once

#include <cstdint>
#include <memory>
#include <set>

#include "actors/computation.hpp"
#include "actors/router.hpp"
#include "comm/transport.hpp"

namespace troupe::actors {

class exchange final : public comm::bulk_handler {
 public:
  exchange(computation& work, router& mail) : work_(work), mail_(mail) {}

  status open(comm::transport& over, generation number);
  const comm::bytes& local_address() const { return lane_->local_address(); }
  status connect(member_id to, comm::bytes_view address) { return lane_->connect(to, address); }

  void send_node(member_id to, const protocol::node_header& header);
  void send_sum(member_id to, const protocol::sum_header& header);
  void send_parameters(member_id to, const protocol::parameters_header& header);
  // Nodes that may still be read by the transport: the next step must not begin to overwrite them.
  bool nodes_on_their_way() const { return nodes_pending_ > 0; }

  std::optional<std::span<std::byte>> place(comm::bytes_view header, std::size_t size) override;
  void arrived(comm::bytes_view header, std::span<std::byte> payload) override;
  void sent(std::uint64_t token) override;

  std::uint64_t refused() const { return refused_; }

 private:
  computation& work_;
  router& mail_;
  std::unique_ptr<comm::bulk_lane> lane_;
  std::uint64_t nodes_pending_ = 0;
  std::uint64_t refused_ = 0;  // arrivals that nobody had a place for
};

}  // namespace troupe::actors
