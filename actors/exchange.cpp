#include "actors/exchange.hpp"

#include <caf/all.hpp>

#include "actors/messages.hpp"
#include "actors/wire/codec.hpp"

namespace troupe::actors {
namespace {

// What `sent` is told: only nodes are counted.
enum token : std::uint64_t { node_token = 1, other_token = 2 };

}  // namespace

status exchange::open(comm::transport& over, generation number) {
  result<std::unique_ptr<comm::bulk_lane>> lane = over.open_bulk(number, *this);
  if (!lane) return lane.failure();
  lane_ = std::move(*lane);
  return done{};
}

void exchange::send_node(member_id to, const protocol::node_header& header) {
  ++nodes_pending_;
  lane_->send(to, wire::encode_header(header), work_.node(header.key), node_token);
}

void exchange::send_sum(member_id to, const protocol::sum_header& header) {
  lane_->send(to, wire::encode_header(header), work_.sum(header.block, header.step), other_token);
}

void exchange::send_parameters(member_id to, const protocol::parameters_header& header) {
  lane_->send(to, wire::encode_header(header), work_.parameters(header.block), other_token);
}

std::optional<std::span<std::byte>> exchange::place(comm::bytes_view header, std::size_t size) {
  const result<protocol::bulk_header> what = wire::decode_header(header);
  std::span<std::byte> memory;
  if (what) {
    if (const auto* node = std::get_if<protocol::node_header>(&*what)) {
      memory = work_.slot(node->key);
    } else if (const auto* sum = std::get_if<protocol::sum_header>(&*what)) {
      memory = work_.sum(sum->block, sum->step);
    } else {
      memory = work_.parameters(std::get<protocol::parameters_header>(*what).block);
    }
  }
  if (memory.empty() || memory.size() != size) {
    ++refused_;
    return std::nullopt;
  }
  return memory;
}

void exchange::arrived(comm::bytes_view header, std::span<std::byte>) {
  const result<protocol::bulk_header> what = wire::decode_header(header);
  ensure(static_cast<bool>(what), "a bulk header could not be read after it was");
  if (const auto* node = std::get_if<protocol::node_header>(&*what)) {
    caf::anon_send(mail_.primary_shards.at(node->key.block.layer), node_arrived{*node});
  } else if (const auto* sum = std::get_if<protocol::sum_header>(&*what)) {
    caf::anon_send(mail_.backup_shards.at(sum->block.layer), sum_arrived{*sum});
  } else {
    caf::anon_send(mail_.rank, parameters_arrived{std::get<protocol::parameters_header>(*what)});
  }
}

void exchange::sent(std::uint64_t token) {
  if (token != node_token) return;
  ensure(nodes_pending_ > 0, "more nodes were sent than were given to the lane");
  if (--nodes_pending_ == 0) caf::anon_send(mail_.rank, nodes_sent{});
}

}  // namespace troupe::actors
