#include "comm/ucx_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace troupe::comm {
namespace {

constexpr unsigned link_message = 1;
// Less than the segments of UCX's TCP and shared memory, 8 KiB each, headers included.
constexpr std::size_t longest_piece = 7168;

}  // namespace

result<std::unique_ptr<ucx_link>> ucx_link::open(std::shared_ptr<ucx_context> context,
                                                 std::uint64_t own_token) {
  std::unique_ptr<ucx_link> link(new ucx_link);
  link->own_token_ = own_token;
  result<std::unique_ptr<ucx_worker>> worker = ucx_worker::open(std::move(context));
  if (!worker) return worker.failure();
  link->worker_ = std::move(*worker);
  if (status set = link->worker_->receive(link_message, announce, link.get()); !set)
    return set.failure();
  return link;
}

ucx_link::~ucx_link() { ended_ = true; }

status ucx_link::connect(bytes_view address, std::uint64_t peer_token) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
  params.err_handler = {.cb = failed, .arg = this};
  if (const ucs_status_t made = ucp_ep_create(worker_->handle(), &params, &endpoint_);
      made != UCS_OK) {
    endpoint_ = nullptr;
    return ucx_failure("UCX finds no way there", made);
  }
  peer_token_ = peer_token;
  return done{};
}

void ucx_link::send(kind what, bytes content) {
  ensure(is_connected(), "a link was asked to send before it was connected");
  const auto shared = std::make_shared<const bytes>(std::move(content));
  std::size_t at = 0;
  do {
    const std::size_t size = std::min(longest_piece, shared->size() - at);
    send_piece(shared, at, size, what);
    at += size;
  } while (at < shared->size() && !trouble_);
}

void ucx_link::send_piece(const std::shared_ptr<const bytes>& content, std::size_t at,
                          std::size_t size, kind what) {
  outgoing& piece = sending_.emplace_back();
  piece.place = std::prev(sending_.end());
  piece.owner = this;
  piece.content = content;
  piece.size = size;
  piece.before = {
      .token = peer_token_, .number = sent_++, .what = what, .left = content->size() - at - size};
  ucp_request_param_t how{};
  how.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_AM_SEND_FLAG_EAGER;
  how.cb.send = was_sent;
  how.user_data = &piece;
  const ucs_status_ptr_t request =
      ucp_am_send_nbx(endpoint_, link_message, &piece.before, sizeof piece.before,
                      content->data() + at, size, &how);
  if (UCS_PTR_IS_PTR(request)) {
    unsent_bytes_ += size;
    return;
  }
  if (UCS_PTR_IS_ERR(request)) fail(ucs_status_string(UCS_PTR_STATUS(request)));
  sending_.pop_back();
}

void ucx_link::was_sent(void* request, ucs_status_t status, void* argument) {
  auto& piece = *static_cast<outgoing*>(argument);
  ucp_request_free(request);
  ucx_link& self = *piece.owner;
  if (self.ended_) return;
  if (status != UCS_OK) self.fail(ucs_status_string(status));
  self.unsent_bytes_ -= piece.size;
  self.sending_.erase(piece.place);
}

void ucx_link::failed(void* argument, ucp_ep_h, ucs_status_t status) {
  auto& self = *static_cast<ucx_link*>(argument);
  if (!self.ended_) self.fail(ucs_status_string(status));
}

void ucx_link::fail(std::string why) {
  if (!trouble_) trouble_ = std::move(why);
}

ucs_status_t ucx_link::announce(void* argument, const void* header, std::size_t header_size,
                                void* data, std::size_t size, const ucp_am_recv_param_t* how) {
  auto& self = *static_cast<ucx_link*>(argument);
  prefix before{};
  if (self.ended_ || self.trouble_ || header_size != sizeof before) return UCS_OK;
  std::memcpy(&before, header, sizeof before);
  if (before.token != self.own_token_) return UCS_OK;
  if ((how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 || size > longest_piece) {
    self.fail(fmt::format("it sent {} bytes in a way that is not foreseen", size));
  } else {
    self.take(before, bytes_view(static_cast<const std::byte*>(data), size));
  }
  return UCS_OK;
}

void ucx_link::take(const prefix& before, bytes_view piece) {
  if (before.number != taken_) {
    return fail(fmt::format("its piece {} came where {} was expected", before.number, taken_));
  }
  ++taken_;
  const bool first = partial_left_ == 0;
  if (first) {
    // Also keeps the sum below from wrapping.
    if (before.left > max_frame_bytes || before.left + piece.size() > max_frame_bytes) {
      return fail(fmt::format("it sent a frame of {} bytes; {} are allowed",
                              before.left + piece.size(), max_frame_bytes));
    }
    partial_.what = before.what;
    partial_.content.reserve(piece.size() + before.left);
  } else if (before.what != partial_.what || before.left + piece.size() != partial_left_ ||
             piece.empty()) {
    return fail("the pieces of its frame do not fit together");
  }
  partial_.content.insert(partial_.content.end(), piece.begin(), piece.end());
  partial_left_ = before.left;
  if (partial_left_ == 0) received_.push_back(std::exchange(partial_, {}));
}

}  // namespace troupe::comm
