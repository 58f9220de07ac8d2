#include "comm/ucx_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace troupe::comm {
namespace {

// With its prefix: less than a segment of UCX's TCP, 8 KiB, headers included.
constexpr std::size_t longest_piece = 7168;
// What one progress() takes, so that one peer does not keep the others waiting.
constexpr int most_pieces = 256;

}  // namespace

result<std::unique_ptr<ucx_link>> ucx_link::open(std::shared_ptr<ucx_context> context,
                                                 std::uint64_t own_token) {
  std::unique_ptr<ucx_link> link(new ucx_link);
  link->own_token_ = own_token;
  result<std::unique_ptr<ucx_worker>> worker = ucx_worker::open(std::move(context));
  if (!worker) return worker.failure();
  link->worker_ = std::move(*worker);
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
  bytes_view rest = content;
  do {
    const bytes_view piece = rest.first(std::min(longest_piece - sizeof(prefix), rest.size()));
    rest = rest.subspan(piece.size());
    send_piece(what, piece, rest.size());
  } while (!rest.empty() && !trouble_);
}

void ucx_link::send_piece(kind what, bytes_view content, std::size_t left) {
  const prefix before{.token = peer_token_, .number = sent_++, .what = what, .left = left};
  outgoing& one = sending_.emplace_back();
  one.place = std::prev(sending_.end());
  one.owner = this;
  one.piece.resize(sizeof before + content.size());
  std::memcpy(one.piece.data(), &before, sizeof before);
  if (!content.empty())
    std::memcpy(one.piece.data() + sizeof before, content.data(), content.size());
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.cb.send = was_sent;
  how.user_data = &one;
  const ucs_status_ptr_t request =
      ucp_tag_send_nbx(endpoint_, one.piece.data(), one.piece.size(), 0, &how);
  if (UCS_PTR_IS_PTR(request)) {
    unsent_bytes_ += one.piece.size();
    return;
  }
  if (UCS_PTR_IS_ERR(request)) fail(ucs_status_string(UCS_PTR_STATUS(request)));
  sending_.pop_back();
}

void ucx_link::was_sent(void* request, ucs_status_t status, void* argument) {
  const auto& one = *static_cast<outgoing*>(argument);
  ucp_request_free(request);
  ucx_link& self = *one.owner;
  if (self.ended_) return;
  if (status != UCS_OK) self.fail(ucs_status_string(status));
  self.unsent_bytes_ -= one.piece.size();
  self.sending_.erase(one.place);
}

void ucx_link::failed(void* argument, ucp_ep_h, ucs_status_t status) {
  auto& self = *static_cast<ucx_link*>(argument);
  if (!self.ended_) self.fail(ucs_status_string(status));
}

void ucx_link::fail(std::string why) {
  if (!trouble_) trouble_ = std::move(why);
}

bool ucx_link::progress() {
  const bool moved = worker_->progress();
  return take_pieces() || moved;
}

// True if more is there: UCX tells of each piece only once.
bool ucx_link::take_pieces() {
  std::array<std::byte, longest_piece> space;
  for (int i = 0; i < most_pieces && !trouble_; ++i) {
    ucp_tag_recv_info_t info{};
    const ucp_tag_message_h next = ucp_tag_probe_nb(worker_->handle(), 0, 0, 1, &info);
    if (next == nullptr) return false;
    // Too long to be one of ours; what UCX would have to fetch first is, too.
    if (info.length > space.size()) {
      fail(fmt::format("it sent {} bytes in one piece", info.length));
      return false;
    }
    ucp_request_param_t how{};
    const ucs_status_ptr_t request =
        ucp_tag_msg_recv_nbx(worker_->handle(), space.data(), info.length, next, &how);
    if (request != nullptr) {
      if (UCS_PTR_IS_PTR(request)) {
        ucp_request_cancel(worker_->handle(), request);
        ucp_request_free(request);
      }
      fail("it sent a piece that is not there");
      return false;
    }
    take(std::span(space).first(info.length));
  }
  return !trouble_;
}

void ucx_link::take(bytes_view piece) {
  prefix before{};
  if (piece.size() < sizeof before) return;
  std::memcpy(&before, piece.data(), sizeof before);
  if (before.token != own_token_) return;
  piece = piece.subspan(sizeof before);
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
