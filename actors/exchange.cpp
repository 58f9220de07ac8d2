#include "actors/exchange.hpp"

#include <algorithm>
#include <caf/all.hpp>

#include "actors/messages.hpp"
#include "actors/wire/codec.hpp"

namespace troupe::actors {
namespace {

// What `sent` is told: nodes are counted, states have a number each from the third on.
enum token : std::uint64_t { node_token = 1, other_token = 2, first_state_token = 3 };

}  // namespace

exchange::exchange(computation& work, router& mail, member_share share, lasting_facts& lasting)
    : work_(work),
      mail_(mail),
      share_(std::move(share)),
      lasting_(lasting),
      next_token_(first_state_token) {}

status exchange::open(comm::transport& over, generation number) {
  auto lane = comm::checked_lane::open(over, number, *this, [this, number](const std::string& why) {
    caf::anon_send(mail_.worker, transfer_damaged{number, why});
  });
  if (!lane) return lane.failure();
  lane_ = std::move(*lane);
  return done{};
}

void exchange::send_node(member_id to, const protocol::node_header& header) {
  if (!lane_) return;
  ++nodes_pending_;
  lane_->send(to, wire::encode_header(header), work_.node(header.key), node_token);
}

void exchange::send_sum(member_id to, const protocol::sum_header& header) {
  if (!lane_) return;
  lane_->send(to, wire::encode_header(header), work_.sum(header.block, header.step), other_token);
}

void exchange::send_parameters(member_id to, const protocol::parameters_header& header) {
  if (!lane_) return;
  lane_->send(to, wire::encode_header(header), work_.parameters(header.block), other_token);
}

void exchange::send_state(member_id to, const protocol::state_header& header,
                          std::shared_ptr<const comm::bytes> state) {
  if (!lane_) return;
  const std::uint64_t token = next_token_++;
  const comm::bytes_view payload(*state);
  states_sent_[token] = std::move(state);
  lane_->send(to, wire::encode_header(header), payload, token);
}

void exchange::expect_copy(block_id block) {
  copies_[block].resize(work_.state_bytes(block));
  followed_.insert(block);
  share_.backup.insert(std::ranges::lower_bound(share_.backup, block), block);
}

std::optional<std::span<std::byte>> exchange::place(comm::bytes_view header, std::size_t size) {
  const result<protocol::bulk_header> what = wire::decode_header(header);
  const std::span<std::byte> memory = what ? place_for(*what) : std::span<std::byte>();
  if (memory.empty() || memory.size() != size) {
    ++refused_;
    return std::nullopt;
  }
  return memory;
}

// Only a block's primary takes nodes, only a backup its sum, and only a rank that does not hold it
// its parameters: anything else would write over what others rely on.
std::span<std::byte> exchange::place_for(const protocol::bulk_header& what) {
  const auto among = [](const std::vector<block_id>& blocks, block_id block) {
    return std::ranges::binary_search(blocks, block);
  };
  if (const auto* node = std::get_if<protocol::node_header>(&what)) {
    if (!among(share_.primary, node->key.block)) return {};
    return work_.slot(node->key);
  }
  if (const auto* sum = std::get_if<protocol::sum_header>(&what)) {
    if (!among(share_.backup, sum->block)) return {};
    return work_.sum(sum->block, sum->step);
  }
  if (const auto* state = std::get_if<protocol::state_header>(&what)) {
    const auto room = copies_.find(state->block);
    return room != copies_.end() ? std::span(room->second) : std::span<std::byte>();
  }
  const block_id block = std::get<protocol::parameters_header>(what).block;
  if (share_.leaves == 0 || among(share_.primary, block)) return {};
  // Those of a block whose copy comes here are of the copy's own version, and the step needs them.
  if (among(share_.backup, block) && !followed_.contains(block)) return {};
  lasting_.parameters = false;
  return work_.parameters(block);
}

void exchange::arrived(comm::bytes_view header, std::span<std::byte>) {
  const result<protocol::bulk_header> what = wire::decode_header(header);
  ensure(static_cast<bool>(what), "a bulk header could not be read after it was");
  if (const auto* node = std::get_if<protocol::node_header>(&*what)) {
    caf::anon_send(mail_.primary_shards.at(node->key.block.layer), node_arrived{*node});
  } else if (const auto* sum = std::get_if<protocol::sum_header>(&*what)) {
    caf::anon_send(mail_.backup_shards.at(sum->block.layer), sum_arrived{*sum});
  } else if (const auto* state = std::get_if<protocol::state_header>(&*what)) {
    const auto copy = copies_.find(state->block);
    ensure(copy != copies_.end(), "a copy arrived twice");
    auto bytes = std::make_shared<const comm::bytes>(std::move(copy->second));
    copies_.erase(copy);
    caf::anon_send(mail_.rank, state_arrived{*state, bytes});
  } else {
    caf::anon_send(mail_.rank, parameters_arrived{std::get<protocol::parameters_header>(*what)});
  }
}

void exchange::sent(std::uint64_t token) {
  if (token >= first_state_token) states_sent_.erase(token);
  if (token != node_token) return;
  ensure(nodes_pending_ > 0, "more nodes were sent than were given to the lane");
  if (--nodes_pending_ == 0) caf::anon_send(mail_.rank, nodes_sent{});
}

}  // namespace troupe::actors
