#include "comm/ucx_bulk_lane.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "comm/sealed.hpp"

namespace troupe::comm {
namespace {

constexpr unsigned bulk_message = 1;
constexpr std::uint64_t bulk_mark = 0x6b6c75622d706f72;  // "rop-bulk", little endian

// The addresses of the workers in one text, each with its length (4 bytes, little endian) before
// it.
bytes together(const std::vector<bytes>& addresses) {
  bytes all;
  for (const bytes& one : addresses) {
    for (int i = 0; i < 4; ++i) all.push_back(static_cast<std::byte>(one.size() >> (8 * i)));
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

std::vector<bytes_view> apart(bytes_view all) {
  std::vector<bytes_view> addresses;
  while (all.size() >= 4) {
    std::size_t size = 0;
    for (int i = 0; i < 4; ++i) size |= std::to_integer<std::size_t>(all[i]) << (8 * i);
    all = all.subspan(4);
    if (size > all.size()) break;
    addresses.push_back(all.first(size));
    all = all.subspan(size);
  }
  return addresses;
}

// Errors of an endpoint without error handling: nothing to do, the actors notice lost peers.
void ignore(void*, ucp_ep_h, ucs_status_t) {}

}  // namespace

ucx_bulk_traffic::~ucx_bulk_traffic() { end(); }

result<std::shared_ptr<ucx_bulk_traffic>> ucx_bulk_traffic::open(
    const std::vector<std::shared_ptr<ucx_context>>& contexts, generation number,
    bulk_handler& handler, std::shared_ptr<traffic> count) {
  std::shared_ptr<ucx_bulk_traffic> lane(new ucx_bulk_traffic(number, handler, std::move(count)));
  std::vector<bytes> addresses;
  for (const std::shared_ptr<ucx_context>& context : contexts) {
    result<std::unique_ptr<ucx_worker>> worker = ucx_worker::open(context);
    if (!worker) return worker.failure();
    ensure((*worker)->max_header_bytes() >= max_bulk_header_bytes,
           "UCX takes smaller headers than the bulk lane promises");
    addresses.push_back((*worker)->address());
    const auto& made = lane->workers_.emplace_back(
        std::make_unique<door>(door{.owner = lane.get(), .worker = std::move(*worker)}));
    if (status set = made->worker->receive(bulk_message, announce, made.get()); !set)
      return set.failure();
  }
  lane->address_ = seal(bulk_mark, number.value, together(addresses));
  return lane;
}

std::vector<ucx_worker*> ucx_bulk_traffic::workers() const {
  std::vector<ucx_worker*> all;
  for (const auto& one : workers_) all.push_back(one->worker.get());
  return all;
}

status ucx_bulk_traffic::connect(member_id to, bytes_view address) {
  const result<unsealed> opened = unseal(bulk_mark, address);
  if (!opened) {
    return error{opened.failure().code,
                 fmt::format("the bulk address of member {} cannot be used: {}", to.value,
                             opened.failure().message)};
  }
  if (opened->number != number_.value) {
    return error{exit_code::bad_data,
                 fmt::format("the bulk address of member {} is of generation {}; this is {}",
                             to.value, opened->number, number_.value)};
  }
  if (peers_.contains(to)) {
    return error{exit_code::defect, fmt::format("member {} is connected already in generation {}",
                                                to.value, number_.value)};
  }
  const std::vector<bytes_view> addresses = apart(opened->content);
  ucs_status_t why = UCS_ERR_UNREACHABLE;
  // The same contexts stand in the same order with every member; a peer on another host is not
  // reachable through shared memory, which UCX finds out by itself.
  for (std::size_t i = 0; i < std::min(addresses.size(), workers_.size()); ++i) {
    if (addresses[i].empty()) continue;
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(addresses[i].data());
    params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
    params.err_handler.cb = ignore;
    ucp_ep_h peer = nullptr;
    why = ucp_ep_create(workers_[i]->worker->handle(), &params, &peer);
    if (why != UCS_OK) continue;
    peers_.emplace(to, peer);
    return done{};
  }
  return ucx_failure(fmt::format("UCX cannot reach member {}", to.value), why);
}

void ucx_bulk_traffic::send(member_id to, bytes_view header, bytes_view payload,
                            std::uint64_t token) {
  ensure(!ended(), "a bulk lane that has ended was asked to send");
  ensure(header.size() <= max_bulk_header_bytes, "the header of a bulk message is too long");
  const auto peer = peers_.find(to);
  ensure(peer != peers_.end(), "a bulk message was sent before connect()");
  count_->bulk_bytes += header.size() + payload.size();
  ++count_->bulk_messages;

  outgoing& message = sending_.emplace_back();
  message.header.assign(header.begin(), header.end());
  message.token = token;
  message.owner = this;
  message.place = std::prev(sending_.end());
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.cb.send = was_sent;
  how.user_data = &message;
  const ucs_status_ptr_t request =
      ucp_am_send_nbx(peer->second, bulk_message, message.header.data(), message.header.size(),
                      payload.data(), payload.size(), &how);
  if (UCS_PTR_IS_PTR(request)) return;
  // Done, or the peer is lost; either way UCX looks at the payload no more.
  sent_.push_back(token);
  sending_.pop_back();
}

void ucx_bulk_traffic::was_sent(void* request, ucs_status_t, void* argument) {
  auto& message = *static_cast<outgoing*>(argument);
  ucp_request_free(request);
  ucx_bulk_traffic& self = *message.owner;
  if (self.ended()) return;
  self.sent_.push_back(message.token);
  self.sending_.erase(message.place);
}

ucs_status_t ucx_bulk_traffic::announce(void* argument, const void* header, std::size_t header_size,
                                        void* data, std::size_t size,
                                        const ucp_am_recv_param_t* how) {
  auto& through = *static_cast<door*>(argument);
  ucx_bulk_traffic& self = *through.owner;
  if (self.ended()) return UCS_OK;
  incoming& message = self.receiving_.emplace_back();
  const auto* begin = static_cast<const std::byte*>(header);
  message.header.assign(begin, begin + header_size);
  message.size = size;
  message.from = &through;
  message.place = std::prev(self.receiving_.end());
  self.announced_.push_back(&message);
  message.rendezvous = (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  if (message.rendezvous || (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0) {
    message.kept = data;
    return UCS_INPROGRESS;
  }
  const auto* payload = static_cast<const std::byte*>(data);
  message.copy.assign(payload, payload + size);
  return UCS_OK;
}

void ucx_bulk_traffic::received(void* request, ucs_status_t status, std::size_t, void* argument) {
  auto& message = *static_cast<incoming*>(argument);
  ucp_request_free(request);
  ucx_bulk_traffic& self = *message.from->owner;
  // After a failure the memory stays with the lane until that ends, as if nothing had come.
  if (!self.ended() && status == UCS_OK) self.arrived_.push_back(&message);
}

bool ucx_bulk_traffic::poll() {
  bool moved = false;
  for (const auto& one : workers_) moved |= one->worker->progress();
  return has_news() || moved;
}

bool ucx_bulk_traffic::progress() {
  const bool moved = poll();
  deliver();
  return moved;
}

void ucx_bulk_traffic::deliver() {
  // What handlers cause is delivered by the next progress(), so that no lane starves another. A
  // message stays in its list while a handler looks at it: end() keeps the lists.
  for (std::size_t left = arrived_.size(); left > 0 && !ended(); --left) {
    const incoming& message = *arrived_.front();
    arrived_.pop_front();
    handler_.arrived(message.header, message.into);
    receiving_.erase(message.place);
  }
  for (std::size_t left = announced_.size(); left > 0 && !ended(); --left) {
    incoming& message = *announced_.front();
    announced_.pop_front();
    deliver(message);
  }
  for (std::size_t left = sent_.size(); left > 0 && !ended(); --left) {
    const std::uint64_t token = sent_.front();
    sent_.pop_front();
    handler_.sent(token);
  }
}

void ucx_bulk_traffic::deliver(incoming& message) {
  const std::optional<std::span<std::byte>> into = handler_.place(message.header, message.size);
  if (ended()) return;
  if (!into) {
    release(message);
    receiving_.erase(message.place);
    return;
  }
  ensure(into->size() == message.size, "place() gave memory of another size");
  message.into = *into;
  if (!message.rendezvous) {
    const void* from = message.kept != nullptr ? message.kept : message.copy.data();
    if (message.size > 0) std::memcpy(into->data(), from, message.size);
    release(message);
    handler_.arrived(message.header, message.into);
    receiving_.erase(message.place);
    return;
  }
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.cb.recv_am = received;
  how.user_data = &message;
  const ucs_status_ptr_t request = ucp_am_recv_data_nbx(
      message.from->worker->handle(), message.kept, into->data(), into->size(), &how);
  message.kept = nullptr;
  if (request == nullptr) arrived_.push_back(&message);
}

void ucx_bulk_traffic::release(incoming& message) {
  if (message.kept != nullptr) ucp_am_data_release(message.from->worker->handle(), message.kept);
  message.kept = nullptr;
}

void ucx_bulk_traffic::end() {
  if (ended()) return;
  // Payloads that UCX keeps for us would outlive its worker; a rendezvous is a part of the worker.
  for (incoming& message : receiving_) {
    if (!message.rendezvous) release(message);
  }
  // From here on ended() is true: callbacks that UCX makes while it destroys find nobody at home.
  const auto workers = std::move(workers_);
  workers_.clear();
}

}  // namespace troupe::comm
