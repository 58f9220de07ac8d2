// UCX's part of one control link: a worker of its own, one endpoint, frames in both directions.
//
// UCX is used in the one way that was found to survive a peer killed at any moment, by killing
// thousands (tests/comm/ucx_control_lane_test.cpp): over TCP alone, one side connecting after the
// other, endpoints without error handling (the contact tells the end, see contacts.hpp), and tagged
// messages so small that UCX sends each in one piece. Then UCX has nothing to say of its own while
// it connects. With peer error handling, with connections by client and server, with active
// messages and with messages that UCX cuts up it does, and in UCX 1.13 a peer that dies while that
// is under way ends the survivor by an assertion or worse (ucp_request.c:684, wireup_ep.c:241,
// tcp_sockcm_ep.c), once in some dozens to hundreds of kills.
//
// Shared memory would be faster (2 us instead of 20 for there and back) but its workers take 5 ms
// and 4 MiB each, where TCP's take a tenth of that, and one worker for all links is out of the
// question: a peer that is killed while it fills a slot stops everybody who writes to that worker.
// A worker for each link keeps UCX from taking two links between the same processes for one.
//
// Every piece carries a number; a gap ends the link, which then cannot have lost a frame in
// silence.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "comm/ucx_context.hpp"

namespace troupe::comm {

class ucx_link {
 public:
  enum class kind : std::uint32_t {
    frame,
    hello,    // the first from the side that called: its address
    goodbye,  // the last
  };
  struct message {
    kind what = kind::frame;
    bytes content;
  };

  // `own_token`: what the peer's pieces must carry.
  static result<std::unique_ptr<ucx_link>> open(std::shared_ptr<ucx_context> context,
                                                std::uint64_t own_token);
  ~ucx_link();
  ucx_link(const ucx_link&) = delete;
  ucx_link& operator=(const ucx_link&) = delete;

  const bytes& address() const { return worker_->address(); }
  ucx_worker& worker() { return *worker_; }
  status connect(bytes_view address, std::uint64_t peer_token);
  bool is_connected() const { return endpoint_ != nullptr; }
  void send(kind what, bytes content);
  // What the peer has not taken yet.
  std::size_t unsent_bytes() const { return unsent_bytes_; }

  bool progress();
  // Whole messages, in order, after progress().
  std::deque<message>& received() { return received_; }
  // Why nothing comes or goes any more.
  const std::optional<std::string>& trouble() const { return trouble_; }

 private:
  struct prefix {  // of every piece
    std::uint64_t token;
    std::uint32_t number;
    kind what;
    std::uint64_t left;  // bytes of the message that come after this piece
  };
  struct outgoing {
    bytes piece;  // prefix and content
    ucx_link* owner = nullptr;
    std::list<outgoing>::iterator place;
  };

  ucx_link() = default;
  void send_piece(kind what, bytes_view content, std::size_t left);
  bool take_pieces();
  void take(bytes_view piece);
  void fail(std::string why);
  static void was_sent(void* request, ucs_status_t status, void* message);
  static void failed(void* self, ucp_ep_h endpoint, ucs_status_t status);

  std::uint64_t own_token_ = 0, peer_token_ = 0;
  std::uint32_t sent_ = 0, taken_ = 0;
  std::size_t unsent_bytes_ = 0;
  std::list<outgoing> sending_;
  message partial_;
  std::uint64_t partial_left_ = 0;
  std::deque<message> received_;
  std::optional<std::string> trouble_;
  ucp_ep_h endpoint_ = nullptr;
  bool ended_ = false;
  std::unique_ptr<ucx_worker> worker_;  // the first to go: its end calls back into the rest
};

}  // namespace troupe::comm
