#include "actors/http_server.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "config/base/clock.hpp"

namespace troupe::actors {
namespace {

error cannot_listen(const comm::address& where, const std::string& why) {
  return {exit_code::bad_config,
          fmt::format("cannot listen on {}: {}; choose another address, or port 0 for any free one",
                      to_text(where), why)};
}

result<int> listen_on(const comm::address& where) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int trouble =
          getaddrinfo(where.host.c_str(), fmt::format("{}", where.port).c_str(), &hints, &found);
      trouble != 0) {
    return cannot_listen(where, gai_strerror(trouble));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, freeaddrinfo);
  int why = 0;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
      why = errno;
      continue;
    }
    const int on = 1;  // a port whose last owner has just ended is free
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, 64) == 0) return fd;
    why = errno;
    close(fd);
  }
  return cannot_listen(where, std::strerror(why));
}

std::uint16_t port_of(int fd) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  std::array<char, 16> port{};
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&name), size, nullptr, 0, port.data(), port.size(),
                  NI_NUMERICSERV) != 0) {
    return 0;
  }
  return static_cast<std::uint16_t>(std::atoi(port.data()));
}

}  // namespace

class http_server::loop {
 public:
  loop(int listener, http_handler handler, http_limits limits)
      : listener_(listener),
        stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        handler_(std::move(handler)),
        limits_(limits) {
    ensure(stop_ >= 0, "the system gave no eventfd");
    // Notices are for the main thread.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~loop() {
    eventfd_write(stop_, 1);
    thread_.join();
    for (const connection& c : open_) close(c.fd);
    close(listener_);
    close(stop_);
  }

 private:
  enum class stage : std::uint8_t { reading, writing, draining, over };
  struct connection {
    int fd;
    time_since_start end;  // it is closed then at the latest
    stage at = stage::reading;
    std::string in = {}, out = {};
    std::size_t written = 0, drained = 0;
  };

  void run() {
    std::vector<pollfd> waits;
    while (true) {
      waits.assign({{stop_, POLLIN, 0}, {listener_, POLLIN, 0}});
      for (const connection& c : open_) {
        waits.push_back({c.fd, static_cast<short>(c.at == stage::writing ? POLLOUT : POLLIN), 0});
      }
      const int got = poll(waits.data(), waits.size(), time_left());
      if (got < 0 && errno != EINTR) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (waits[0].revents != 0) return;
      const auto now = real_clock().now();
      for (std::size_t i = 0; i < open_.size(); ++i) {
        if (got > 0 && waits[i + 2].revents != 0) serve(open_[i]);
        if (now >= open_[i].end) open_[i].at = stage::over;
      }
      std::erase_if(open_, [](const connection& c) {
        if (c.at == stage::over) close(c.fd);
        return c.at == stage::over;
      });
      if (got > 0 && waits[1].revents != 0) take_new(now);
    }
  }

  int time_left() const {
    if (open_.empty()) return -1;
    const auto first = std::ranges::min(open_, {}, &connection::end).end;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - real_clock().now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60000));
  }

  void take_new(time_since_start now) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      // No descriptors left: the next one that is closed makes room.
      if (errno == EMFILE || errno == ENFILE) drop_oldest();
      return;
    }
    if (open_.size() >= limits_.connections) drop_oldest();
    open_.push_back({.fd = fd, .end = now + limits_.life});
  }

  void drop_oldest() {
    if (open_.empty()) return std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const auto oldest = std::ranges::min_element(open_, {}, &connection::end);
    close(oldest->fd);
    open_.erase(oldest);
  }

  void serve(connection& c) {
    if (c.at == stage::reading) read_more(c);
    if (c.at == stage::writing) write_more(c);
    if (c.at == stage::draining) drain(c);
  }

  void read_more(connection& c) {
    std::array<char, 4096> buffer;
    const std::size_t room = std::min(buffer.size(), limits_.request_bytes - c.in.size());
    const ssize_t got = recv(c.fd, buffer.data(), room, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      c.at = stage::over;
      return;
    }
    c.in.append(buffer.data(), static_cast<std::size_t>(got));
    http_request request;
    switch (read_http_request(c.in, limits_.request_bytes, request)) {
      case http_reading::unfinished:
        return;
      case http_reading::finished:
        c.out = write_http_response(handler_(request), request.method != "HEAD");
        break;
      case http_reading::malformed:
        c.out = write_http_response({400, "text/plain; charset=utf-8", "no HTTP request\n"}, true);
        break;
      case http_reading::too_large:
        c.out = write_http_response(
            {413, "text/plain; charset=utf-8", "the request is too large\n"}, true);
        break;
    }
    c.at = stage::writing;
  }

  void write_more(connection& c) {
    const ssize_t put =
        send(c.fd, c.out.data() + c.written, c.out.size() - c.written, MSG_NOSIGNAL);
    if (put < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (put < 0) {
      c.at = stage::over;
      return;
    }
    c.written += static_cast<std::size_t>(put);
    if (c.written < c.out.size()) return;
    // What is unread when a socket is closed resets it, and a reset overtakes the answer.
    shutdown(c.fd, SHUT_WR);
    c.at = stage::draining;
  }

  void drain(connection& c) {
    std::array<char, 4096> buffer;
    const ssize_t got = recv(c.fd, buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    c.drained += got > 0 ? static_cast<std::size_t>(got) : 0;
    if (got <= 0 || c.drained > (std::size_t{1} << 20)) c.at = stage::over;
  }

  const int listener_, stop_;
  const http_handler handler_;
  const http_limits limits_;
  std::vector<connection> open_;
  std::thread thread_;
};

http_server::http_server(comm::address where, std::unique_ptr<loop> running)
    : address_(std::move(where)), loop_(std::move(running)) {}

http_server::~http_server() = default;

result<std::unique_ptr<http_server>> http_server::start(const comm::address& listen,
                                                        http_handler handler, http_limits limits) {
  result<int> listener = listen_on(listen);
  if (!listener) return listener.failure();
  comm::address where{.host = listen.host, .port = port_of(*listener)};
  return std::unique_ptr<http_server>(new http_server(
      std::move(where), std::make_unique<loop>(*listener, std::move(handler), limits)));
}

}  // namespace troupe::actors
