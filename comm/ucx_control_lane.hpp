// The control lane over UCX: each link is a contact (contacts.hpp), which makes the two sides known
// to each other and tells the end of the other process, and a ucx_link beside it, which carries the
// frames.
//
// Making a link: the caller says who it is; the called side opens a worker and answers with its
// address; the caller connects and sends its own address as a hello; then the called side connects.
// One after the other, see ucx_link.hpp.
//
// A polite end is a goodbye behind the last frame; who said it keeps the contact until the other
// side hangs up, so that nothing under way is cut off.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "comm/contacts.hpp"
#include "comm/ucx_link.hpp"

namespace troupe::comm {

// What is kept for a peer that does not read; more ends the link.
inline constexpr std::size_t max_unsent_bytes = std::size_t{256} << 20;

class ucx_control_lane final : public control_lane {
 public:
  // `watch` is told of each descriptor that becomes readable when there is something to progress.
  ucx_control_lane(std::shared_ptr<ucx_context> context, std::unique_ptr<contacts> meeting,
                   std::shared_ptr<traffic> count, clock_source& clock,
                   std::function<void(int fd)> watch);
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
  bool arm();
  int contacts_fd() const { return contacts_->event_fd(); }
  // Contacts are looked at rarely while there is traffic; this asks for the next progress().
  void look_at_contacts() { next_look_ = time_since_start{0}; }
  std::optional<time_since_start> next_limit() const;

 private:
  enum class phase {
    calling,    // for their answer; frames wait
    expecting,  // their hello
    open,
    leaving,  // we said goodbye and wait for the other to hang up
    ending,   // the handler is about to hear of the end
  };
  struct state {
    phase now = phase::calling;
    contact_id contact{};
    std::uint64_t own_token = 0, peer_token = 0;
    std::unique_ptr<ucx_link> wire;
    std::string peer;     // as messages name it
    bool silent = false;  // closed by us: the handler hears no more of it
    std::size_t waiting_bytes = 0;
    std::deque<bytes> waiting;  // until there is a wire
    time_since_start limit{0};  // of expecting and leaving
  };
  struct event {
    enum class kind { opened, frame, closed } what;
    link_id to;
    bool we_connected = false;
    bytes frame;
    std::string why;
  };

  state* find(link_id id);
  state& add(link_id id, contact_id contact);
  static bool has_limit(const state& one) {
    return one.now == phase::expecting || one.now == phase::leaving;
  }
  bytes greeting(std::uint64_t token, const ucx_link* wire) const;
  status open_wire(state& one);
  void take(contact_news news);
  void answer(contact_id contact, const bytes& greeting);
  void call_back(link_id id, state& one, const bytes& greeting);
  void opened(link_id id, state& one, bool we_connected);
  void collect(link_id id, state& one);
  void say_goodbye(state& one);
  void lose(link_id id, state& one, const std::string& why);
  void end(link_id id, state& one, std::string why);
  void remove(link_id id);
  void deliver();

  std::shared_ptr<ucx_context> context_;
  std::unique_ptr<contacts> contacts_;
  std::shared_ptr<traffic> count_;
  clock_source& clock_;
  std::function<void(int)> watch_;
  control_handler* handler_ = nullptr;
  std::uint64_t next_link_ = 1;
  std::map<link_id, state> links_;
  std::map<contact_id, link_id> by_contact_;
  std::deque<event> events_;
  time_since_start next_look_{0};
};

}  // namespace troupe::comm
