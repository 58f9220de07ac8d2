#include "comm/contacts.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>

#include "comm/sealed.hpp"

namespace troupe::comm {
namespace {

constexpr std::uint64_t contact_mark = 0x312d65707572742d;  // "-troupe1"
constexpr std::uint64_t listener_event = 0;                 // no contact has this id

std::string reason(int number) { return std::strerror(number); }

// One end of a connection.
std::string end_of(int fd, decltype(&::getsockname) which) {
  socket_address end;
  end.size = sizeof end.space;
  return fd >= 0 && which(fd, end.get(), &end.size) == 0 ? literal_of(*end.get()) : std::string();
}

}  // namespace

// Shared with a thread that may outlive us: a name server may take its time.
struct contacts::lookup {
  std::mutex guard;
  std::vector<std::string> literals;
  int done = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  ~lookup() { ::close(done); }
};

contacts::contacts(int listener, int epoll, address local, std::vector<std::string> accept_on,
                   clock_source& clock)
    : listener_(listener),
      epoll_(epoll),
      local_(std::move(local)),
      accept_on_(std::move(accept_on)),
      clock_(clock) {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.u64 = listener_event;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_, &wanted);
}

contacts::~contacts() {
  for (auto& [id, one] : all_) {
    if (one.fd >= 0) ::close(one.fd);
  }
  ::close(listener_);
  ::close(epoll_);
}

result<std::unique_ptr<contacts>> contacts::open(const listening& where, clock_source& clock) {
  socket_address bind_to = to_socket_address(where.bind.host, where.bind.port);
  ensure(bind_to.size > 0, "an address to listen on was not resolved");
  const auto trouble = [&](int number) {
    std::string hint;
    if (number == EADDRINUSE)
      hint = "; take another port with comm.listen, or port 0 for any that is free";
    if (number == EACCES) hint = "; ports below 1024 belong to the system, take another";
    return error{exit_code::io, fmt::format("cannot listen on {}: {}{}", to_text(where.bind),
                                            reason(number), hint)};
  };
  const int listener =
      ::socket(bind_to.space.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener < 0) return trouble(errno);
  const int on = 1;
  // The port of a run that has just ended may be taken again; one that is in use may not.
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  socket_address bound;
  bound.size = sizeof bound.space;
  if (::bind(listener, bind_to.get(), bind_to.size) != 0 || ::listen(listener, 1024) != 0 ||
      ::getsockname(listener, bound.get(), &bound.size) != 0) {
    const int number = errno;
    ::close(listener);
    return trouble(number);
  }
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) {
    const int number = errno;
    ::close(listener);
    return trouble(number);
  }
  address local = where.advertise;
  if (local.port == 0) local.port = port_of(*bound.get());
  return std::unique_ptr<contacts>(
      new contacts(listener, epoll, std::move(local), where.accept_on, clock));
}

contact_id contacts::call(const address& to, bytes_view record) {
  const contact_id id{next_++};
  contact& one = all_[id];
  one.we_called = true;
  one.to = to;
  one.out = seal(contact_mark, 0, record);
  one.limit = clock_.now() + contact_limit;
  if (is_literal(to.host)) {
    one.literals = {to.host};
    connect_next(id, one);
    return id;
  }
  one.now = phase::looking_up;
  one.name = std::make_shared<lookup>();
  watch(id, one, true);
  std::thread([name = one.name, host = to.host] {
    std::vector<std::string> literals = resolve_host(host);
    const std::lock_guard lock(name->guard);
    name->literals = std::move(literals);
    ::eventfd_write(name->done, 1);
  }).detach();
  return id;
}

// May end the contact, but only by news: callers of call() hear of it later.
void contacts::connect_next(contact_id id, contact& one) {
  one.now = phase::connecting;
  while (!one.literals.empty()) {
    socket_address to = to_socket_address(one.literals.front(), one.to.port);
    one.literals.erase(one.literals.begin());
    if (one.fd >= 0) ::close(one.fd);
    one.fd = ::socket(to.space.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (one.fd < 0) {
      one.last_trouble = reason(errno);
      continue;
    }
    const int on = 1;
    ::setsockopt(one.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(one.fd, to.get(), to.size) == 0 || errno == EINPROGRESS)
      return watch(id, one, true);
    one.last_trouble = reason(errno);
  }
  fail(id, one.last_trouble.empty() ? "the name has no address" : one.last_trouble);
}

void contacts::watch(contact_id id, const contact& one, bool anew) {
  epoll_event wanted{};
  const bool writing =
      one.now == phase::connecting || (!one.out.empty() && one.now != phase::looking_up);
  wanted.events = EPOLLIN | EPOLLRDHUP | (writing ? static_cast<std::uint32_t>(EPOLLOUT) : 0u);
  wanted.data.u64 = static_cast<std::uint64_t>(id);
  const int fd = one.now == phase::looking_up ? one.name->done : one.fd;
  ::epoll_ctl(epoll_, anew ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &wanted);
}

void contacts::answer(contact_id to, bytes_view record) {
  const auto found = all_.find(to);
  if (found == all_.end()) return;
  contact& one = found->second;
  ensure(one.now == phase::unanswered, "an answer was given to nobody's call");
  one.now = phase::established;
  --strangers_;
  one.out = seal(contact_mark, 0, record);
  write(to, one);
}

std::string contacts::own_literal(contact_id which) const {
  const auto found = all_.find(which);
  return found == all_.end() ? std::string() : end_of(found->second.fd, ::getsockname);
}

std::string contacts::their_literal(contact_id which) const {
  const auto found = all_.find(which);
  return found == all_.end() ? std::string() : end_of(found->second.fd, ::getpeername);
}

void contacts::drop(contact_id which) {
  std::erase_if(news_, [&](const contact_news& n) { return n.id == which; });
  forget(which);
}

void contacts::forget(contact_id id) {
  const auto found = all_.find(id);
  if (found == all_.end()) return;
  const contact& one = found->second;
  if (one.now == phase::looking_up) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, one.name->done, nullptr);
  if (one.fd >= 0) ::close(one.fd);
  if (!one.we_called && one.now != phase::established) --strangers_;
  all_.erase(found);
}

void contacts::fail(contact_id id, const std::string& why) {
  const contact& one = all_.at(id);
  // Strangers fail in silence.
  if (one.we_called && one.now != phase::established) {
    news_.push_back({id,
                     contact_news::kind::failed,
                     {},
                     fmt::format("{} cannot be reached: {}", to_text(one.to), why)});
  } else if (one.now == phase::established || one.now == phase::unanswered) {
    news_.push_back({id, contact_news::kind::ended, {}, why});
  }
  forget(id);
}

void contacts::listen_again(bool on) {
  if (listening_ == on) return;
  listening_ = on;
  epoll_event wanted{};
  wanted.events = on ? static_cast<std::uint32_t>(EPOLLIN) : 0u;
  wanted.data.u64 = listener_event;
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, listener_, &wanted);
  if (!on) listen_again_at_ = clock_.now() + std::chrono::milliseconds(50);
}

void contacts::accept_all() {
  for (;;) {
    if (strangers_ >= max_strangers) {
      // The oldest stranger had its second; before that the newcomers wait in the system's queue.
      const auto oldest = std::ranges::find_if(all_, [](const auto& entry) {
        return !entry.second.we_called && entry.second.now == phase::awaiting;
      });
      if (oldest == all_.end() ||
          oldest->second.limit - clock_.now() > contact_limit - std::chrono::seconds(1)) {
        return listen_again(false);
      }
      forget(oldest->first);
    }
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      // Out of descriptors: the connection stays in the queue, and we shall not spin over it.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        listen_again(false);
      if (errno == ECONNABORTED || errno == EINTR) continue;
      return;
    }
    if (!accept_on_.empty() && std::ranges::count(accept_on_, end_of(fd, ::getsockname)) == 0) {
      ::close(fd);
      continue;
    }
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const contact_id id{next_++};
    contact& one = all_[id];
    one.fd = fd;
    one.limit = clock_.now() + contact_limit;
    ++strangers_;
    watch(id, one, true);
  }
}

void contacts::write(contact_id id, contact& one) {
  while (!one.out.empty()) {
    const ssize_t n = ::send(one.fd, one.out.data(), one.out.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) return fail(id, reason(errno));
    one.out.erase(one.out.begin(), one.out.begin() + n);
  }
  watch(id, one, false);
}

void contacts::read(contact_id id, contact& one) {
  for (;;) {
    // First the seal, then as much as it announces; never more than that is taken in.
    std::size_t wanted = seal_bytes;
    if (one.in.size() >= seal_bytes) {
      const auto whole = sealed_size(contact_mark, one.in);
      if (!whole) return fail(id, "what listens there is no Troupe process of this version");
      wanted = *whole;
    }
    if (one.now == phase::awaiting && one.in.size() == wanted && wanted >= seal_bytes) {
      result<unsealed> record = unseal(contact_mark, one.in);
      if (!record) return fail(id, "its greeting is wrong: " + record.failure().message);
      one.in = {};
      one.now = one.we_called ? phase::established : phase::unanswered;
      news_.push_back({id,
                       one.we_called ? contact_news::kind::answered : contact_news::kind::called,
                       std::move(record->content),
                       {}});
      continue;
    }
    std::array<std::byte, 4096> space;
    const bool silent = one.now != phase::awaiting;
    const std::size_t room = silent ? 1 : std::min(space.size(), wanted - one.in.size());
    const ssize_t n = ::recv(one.fd, space.data(), room, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) return fail(id, reason(errno));
    if (n == 0) {
      return fail(id, silent ? "the process there ended or dropped the connection"
                             : "it closed the connection without a greeting");
    }
    if (silent) return fail(id, "it sent what is not foreseen");
    one.in.insert(one.in.end(), space.begin(), space.begin() + n);
  }
}

void contacts::handle(contact_id id, std::uint32_t events) {
  const auto found = all_.find(id);
  if (found == all_.end()) return;
  contact& one = found->second;
  if (one.now == phase::looking_up) {
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, one.name->done, nullptr);
    {
      const std::lock_guard lock(one.name->guard);
      one.literals = std::move(one.name->literals);
    }
    return connect_next(id, one);
  }
  if (one.now == phase::connecting) {
    int number = 0;
    socklen_t size = sizeof number;
    ::getsockopt(one.fd, SOL_SOCKET, SO_ERROR, &number, &size);
    if (number != 0) {
      one.last_trouble = reason(number);
      return connect_next(id, one);
    }
    if ((events & EPOLLOUT) == 0) return;
    one.now = phase::awaiting;
  }
  if (!one.out.empty()) write(id, one);
  if (all_.contains(id) && (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
    read(id, one);
}

void contacts::check_limits() {
  const time_since_start now = clock_.now();
  if (!listening_ && now >= listen_again_at_) listen_again(true);
  std::vector<contact_id> late;
  for (const auto& [id, one] : all_) {
    if (one.now != phase::established && one.limit <= now) late.push_back(id);
  }
  for (contact_id id : late) {
    fail(id, fmt::format("no answer within {} s", contact_limit.count()));
  }
}

std::optional<time_since_start> contacts::next_limit() const {
  std::optional<time_since_start> next;
  const auto consider = [&](time_since_start limit) {
    next = next ? std::min(*next, limit) : limit;
  };
  if (!listening_) consider(listen_again_at_);
  for (const auto& [id, one] : all_) {
    if (one.now != phase::established) consider(one.limit);
  }
  return next;
}

std::vector<contact_news> contacts::progress() {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == listener_event) {
      accept_all();
    } else {
      handle(contact_id{event.data.u64}, event.events);
    }
  }
  check_limits();
  return std::exchange(news_, {});
}

}  // namespace troupe::comm
