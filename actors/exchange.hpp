// The bulk traffic of one generation: gradient nodes to primaries, sums to backups, parameters to
// ranks. Arrivals go straight into the computation's memory and are then told to the actor that
// they concern. Closing it ends the generation's traffic; nothing of an old plan arrives after.
//
// These point-to-point transfers are all the collectives there are: reduce-scatter is every rank
// sending its tree nodes to the primaries, all-gather is every primary sending parameters to the
// ranks, block by block as they become ready. A blocking collective would wait for the slowest
// layer, and could only be aborted as a whole.
#pragma once

#include <caf/all.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "actors/computation.hpp"
#include "actors/generation_context.hpp"
#include "actors/router.hpp"
#include "comm/checked_lane.hpp"

namespace troupe::actors {

// To the worker: something of this plan did not come whole, and nobody will send it again in it.
struct transfer_damaged {
  generation of;
  std::string why;
};

class exchange final : public comm::bulk_handler {
 public:
  // share: what arrivals are taken for, whatever strangers send.
  // lasting: told when parameters begin to be overwritten.
  exchange(computation& work, router& mail, member_share share, lasting_facts& lasting);

  // What was damaged on the way never arrives: the worker is told, with transfer_damaged.
  status open(comm::transport& over, generation number);
  // Ends the traffic; what is sent after it goes nowhere. Actors may still run for a while.
  void close() { lane_.reset(); }
  const comm::bytes& local_address() const { return lane_->local_address(); }
  status connect(member_id to, comm::bytes_view address) { return lane_->connect(to, address); }

  void send_node(member_id to, const protocol::node_header& header);
  void send_sum(member_id to, const protocol::sum_header& header);
  void send_parameters(member_id to, const protocol::parameters_header& header);
  // `state` lives until it is sent.
  void send_state(member_id to, const protocol::state_header& header,
                  std::shared_ptr<const comm::bytes> state);
  // Copies of these blocks come here: then sums do too. Before anybody is asked for them.
  void expect_copy(block_id block);
  // Nodes that may still be read by the transport: the next step must not begin to overwrite them.
  bool nodes_on_their_way() const { return nodes_pending_ > 0; }

  std::optional<std::span<std::byte>> place(comm::bytes_view header, std::size_t size) override;
  void arrived(comm::bytes_view header, std::span<std::byte> payload) override;
  void sent(std::uint64_t token) override;

  std::uint64_t refused() const { return refused_; }

 private:
  std::span<std::byte> place_for(const protocol::bulk_header& what);

  computation& work_;
  router& mail_;
  member_share share_;
  lasting_facts& lasting_;
  std::map<block_id, comm::bytes> copies_;  // of blocks to be held: where their state arrives
  std::set<block_id> followed_;             // all of which copies were expected
  std::map<std::uint64_t, std::shared_ptr<const comm::bytes>> states_sent_;  // by token
  std::uint64_t next_token_;
  std::unique_ptr<comm::checked_lane> lane_;
  std::uint64_t nodes_pending_ = 0;
  std::uint64_t refused_ = 0;  // arrivals that nobody had a place for
};

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::transfer_damaged)
