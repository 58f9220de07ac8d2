// The control lane over UCX: each link is a contact (contacts.hpp), over which both sides exchanged
// the address of their worker, and a UCX endpoint with peer error handling in each direction, over
// which frames go as active messages.
//
// A lost peer is noticed by whichever comes first, the end of the contact or an error of the
// endpoint. A polite end is a goodbye behind the last frame; who said it keeps the contact until
// the other side hangs up, so that nothing under way is cut off.
//
// Frames go eagerly, whatever their size: a rendezvous would let small frames overtake large ones.
// Every message carries a number; a gap ends the link, which then cannot have lost a frame in
// silence. It also carries a random token that the receiver chose, which tells the links of one
// worker apart.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>

#include "comm/contacts.hpp"
#include "comm/ucx_context.hpp"

namespace troupe::comm {

// What a link keeps for a peer that does not read; more ends the link.
inline constexpr std::size_t max_unsent_bytes = std::size_t{256} << 20;

class ucx_control_lane final : public control_lane {
 public:
  static result<std::unique_ptr<ucx_control_lane>> open(std::shared_ptr<ucx_context> context,
                                                        std::unique_ptr<contacts> meeting,
                                                        std::shared_ptr<traffic> count,
                                                        clock_source& clock);
  // Gives frames under way on links that were closed half a second.
  ~ucx_control_lane() override;
  ucx_control_lane(const ucx_control_lane&) = delete;
  ucx_control_lane& operator=(const ucx_control_lane&) = delete;

  const address& local_address() const override { return contacts_->local_address(); }
  link_id connect(const address& to) override;
  void send(link_id link, bytes frame) override;
  void close(link_id link) override;

  // For the transport.
  void start(control_handler& handler) { handler_ = &handler; }
  bool progress();
  // Lets UCX work without calling handlers; true if it did or if handlers are to be called.
  bool poll();
  ucx_worker& worker() { return *worker_; }
  int contacts_fd() const { return contacts_->event_fd(); }
  // Contacts are looked at rarely while there is traffic; this asks for the next progress().
  void look_at_contacts() { next_look_ = time_since_start{0}; }
  std::optional<time_since_start> next_limit() const;

 private:
  enum class phase {
    calling,  // no endpoint yet; frames wait
    open,
    leaving,  // we said goodbye and wait for the other to hang up
  };
  struct prefix {  // of every message
    std::uint64_t token;
    std::uint32_t number;
    std::uint32_t goodbye;
  };
  struct state {
    phase now = phase::calling;
    contact_id contact{};
    std::uint64_t own_token = 0, peer_token = 0;
    ucp_ep_h endpoint = nullptr;
    std::string peer;     // as messages name it
    bool silent = false;  // closed by us: the handler hears no more of it
    bool ending = false;  // its end is among the events
    bool left = false;    // the peer said goodbye
    bool close_wanted = false;
    std::uint32_t sent = 0, received = 0;
    std::size_t unsent_bytes = 0;
    std::deque<bytes> waiting;  // until there is an endpoint
    std::deque<bytes> early;    // received before the link was opened here
    time_since_start leave_at{0};
  };
  struct event {
    enum class kind { opened, frame, closed } what;
    link_id to;
    bool we_connected = false;
    bytes frame;
    std::string why;
  };
  struct outgoing {
    bytes frame;
    prefix before{};
    link_id to{};
    ucx_control_lane* owner = nullptr;
    std::list<outgoing>::iterator place;
  };
  struct lost {
    link_id link;
    std::string why;
  };

  ucx_control_lane(std::unique_ptr<contacts> meeting, std::shared_ptr<traffic> count,
                   clock_source& clock)
      : contacts_(std::move(meeting)), count_(std::move(count)), clock_(clock) {}
  state* find(link_id id);
  state& add(link_id id, contact_id contact);
  bytes greeting(std::uint64_t token) const;
  bool has_news() const { return !events_.empty() || !lost_.empty(); }
  void take(contact_news news);
  void begin(link_id id, state& one, const bytes& their_greeting);
  void post(link_id id, state& one, bytes frame, bool goodbye);
  void say_goodbye(link_id id, state& one);
  void end(link_id id, state& one, std::string why);
  void remove(link_id id);
  void end_lost();
  void deliver();
  static ucs_status_t announce(void* self, const void* header, std::size_t header_size, void* data,
                               std::size_t size, const ucp_am_recv_param_t* how);
  void received(const prefix& before, bytes_view frame);
  static void was_sent(void* request, ucs_status_t status, void* message);
  static void failed(void* self, ucp_ep_h endpoint, ucs_status_t status);

  std::unique_ptr<contacts> contacts_;
  std::shared_ptr<traffic> count_;
  clock_source& clock_;
  control_handler* handler_ = nullptr;
  std::uint64_t next_link_ = 1;
  std::map<link_id, state> links_;
  std::map<std::uint64_t, link_id> by_token_;
  std::map<contact_id, link_id> by_contact_;
  std::map<ucp_ep_h, link_id> by_endpoint_;
  std::list<outgoing> sending_;
  std::deque<event> events_;
  std::vector<lost> lost_;
  time_since_start next_look_{0};
  bool ended_ = false;
  std::unique_ptr<ucx_worker> worker_;  // the first to go: its end calls back into the rest
};

}  // namespace troupe::comm
