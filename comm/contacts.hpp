// How two processes find each other: a plain TCP connection over which each says one sealed record
// (what UCX needs to connect them), and which then stays silent. Its end is the end of the
// process at the other side, noticed within a millisecond.
//
// UCX has listeners of its own. They were not chosen because they take what a stranger sends for
// their own records: UCX 1.13 checks a length by assertion and unpacks the rest unchecked, so that
// a port scanner would end a training run. Here a stranger costs a descriptor and at most 64 KiB
// for at most five seconds, and there are at most `max_strangers` of them.
//
// Connecting, resolving names and waiting for the other's record have one limit, contact_seconds;
// nothing here blocks.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/network.hpp"
#include "config/base/clock.hpp"

namespace troupe::comm {

enum class contact_id : std::uint64_t {};

inline constexpr std::chrono::seconds contact_limit{5};
inline constexpr std::size_t max_strangers = 256;

struct contact_news {
  enum class kind {
    called,    // somebody called and said `record`: answer() or drop()
    answered,  // the one we called said `record`
    failed,    // our call came to nothing: `why`
    ended,     // the connection ended, `why` in words
  };
  contact_id id{};
  kind what = kind::failed;
  bytes record;
  std::string why;
};

class contacts {
 public:
  static result<std::unique_ptr<contacts>> open(const listening& where, clock_source& clock);
  ~contacts();
  contacts(const contacts&) = delete;
  contacts& operator=(const contacts&) = delete;

  // The advertised host and the real port.
  const address& local_address() const { return local_; }
  // answered or failed follows.
  contact_id call(const address& to, bytes_view record);
  void answer(contact_id to, bytes_view record);
  // Both ends of a connection that is there, as literals; empty if it has just gone.
  std::string own_literal(contact_id which) const;
  std::string their_literal(contact_id which) const;
  // Nothing follows any more. Unknown ones are ignored.
  void drop(contact_id which);

  // Readable when progress() has something to do, but for limits of time: those at next_limit().
  int event_fd() const { return epoll_; }
  std::optional<time_since_start> next_limit() const;
  std::vector<contact_news> progress();
  std::size_t strangers() const { return strangers_; }

 private:
  struct lookup;
  enum class phase {
    looking_up,   // a thread resolves the name
    connecting,   // one literal after the other
    awaiting,     // their record
    unanswered,   // theirs is here, ours is not asked for yet
    established,  // silent, until it ends
  };
  struct contact {
    int fd = -1;
    phase now = phase::awaiting;
    bool we_called = false;
    address to;                         // of those that we called
    std::vector<std::string> literals;  // not tried yet
    std::shared_ptr<lookup> name;
    bytes out, in;
    std::string last_trouble;
    time_since_start limit{0};
  };

  contacts(int listener, int epoll, address local, std::vector<std::string> accept_on,
           clock_source& clock);
  void accept_all();
  void listen_again(bool on);
  void connect_next(contact_id id, contact& one);
  void watch(contact_id id, const contact& one, bool anew);
  void handle(contact_id id, std::uint32_t events);
  void write(contact_id id, contact& one);
  void read(contact_id id, contact& one);
  void fail(contact_id id, const std::string& why);
  void forget(contact_id id);
  void check_limits();

  int listener_, epoll_;
  bool listening_ = true;
  time_since_start listen_again_at_{0};
  address local_;
  std::vector<std::string> accept_on_;
  clock_source& clock_;
  std::uint64_t next_ = 1;
  std::map<contact_id, contact> all_;
  std::size_t strangers_ = 0;
  std::vector<contact_news> news_;
};

}  // namespace troupe::comm
