#include "comm/ucx_transport.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace troupe::comm {
namespace {

constexpr std::uint32_t waker_event = 1, contacts_event = 2, worker_event = 3;

}  // namespace

ucx_transport::ucx_transport(clock_source& clock, int epoll, int waker)
    : clock_(clock), epoll_(epoll), waker_(waker) {}

result<std::unique_ptr<ucx_transport>> ucx_transport::open(const ucx_settings& settings) {
  clock_source& clock = real_clock();
  const std::vector<network_card> cards = find_network_cards();
  const result<listening> where = decide_listening(settings, cards);
  if (!where) return where.failure();
  const result<ucx_transports> transports = choose_transports();
  if (!transports) return transports.failure();
  result<std::unique_ptr<contacts>> meeting = contacts::open(*where, clock);
  if (!meeting) return meeting.failure();

  std::unique_ptr<ucx_transport> made(new ucx_transport(clock, ::epoll_create1(EPOLL_CLOEXEC),
                                                        ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  if (made->epoll_ < 0 || made->waker_ < 0) {
    return error{exit_code::io,
                 std::string("the system gives no descriptor to wait on: ") + std::strerror(errno)};
  }
  for (const std::string* one : {&transports->this_host, &transports->network}) {
    if (one->empty()) continue;
    result<std::shared_ptr<ucx_context>> context = ucx_context::open(*one, where->devices);
    if (!context) return context.failure();
    made->contexts_.push_back(std::move(*context));
  }
  result<std::shared_ptr<ucx_context>> for_control = ucx_context::open_for_control(where->devices);
  if (!for_control) return for_control.failure();
  made->listen_to(made->waker_, waker_event);
  made->listen_to((*meeting)->event_fd(), contacts_event);
  made->control_ = std::make_unique<ucx_control_lane>(
      std::move(*for_control), std::move(*meeting), made->count_, clock,
      [self = made.get()](int fd) { self->listen_to(fd, worker_event); });
  return made;
}

ucx_transport::~ucx_transport() {
  bulk_.clear();
  control_.reset();
  if (epoll_ >= 0) ::close(epoll_);
  if (waker_ >= 0) ::close(waker_);
}

void ucx_transport::listen_to(int fd, std::uint32_t what) {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.u32 = what;
  // A descriptor that is closed leaves the set by itself.
  ensure(::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &wanted) == 0, "a descriptor cannot be waited for");
}

void ucx_transport::start(control_handler& handler) { control_->start(handler); }

result<std::unique_ptr<bulk_lane>> ucx_transport::open_bulk(generation number,
                                                            bulk_handler& handler) {
  result<std::shared_ptr<ucx_bulk_traffic>> opened =
      ucx_bulk_traffic::open(contexts_, number, handler, count_);
  if (!opened) return opened.failure();
  for (const ucx_worker* worker : (*opened)->workers()) listen_to(worker->event_fd(), worker_event);
  bulk_.push_back(*opened);
  return std::unique_ptr<bulk_lane>(std::make_unique<ucx_bulk_lane>(std::move(*opened)));
}

bool ucx_transport::progress() {
  bool moved = control_->progress();
  // By index and with a pointer held: handlers may open and end lanes.
  for (std::size_t i = 0; i < bulk_.size(); ++i) {
    const std::shared_ptr<ucx_bulk_traffic> one = bulk_[i];
    if (!one->ended()) moved |= one->progress();
  }
  std::erase_if(bulk_, [](const auto& one) { return one->ended(); });
  if (moved) last_moved_ = clock_.now();
  return moved;
}

bool ucx_transport::poll() {
  bool moved = control_->poll();
  for (const auto& one : bulk_) moved |= !one->ended() && one->poll();
  return moved;
}

bool ucx_transport::arm() {
  if (!control_->arm()) return false;
  for (const auto& one : bulk_) {
    for (ucx_worker* worker : one->workers()) {
      if (!worker->arm()) return false;
    }
  }
  return true;
}

void ucx_transport::wait(std::chrono::nanoseconds at_most, waiting how) {
  const time_since_start begin = clock_.now();
  const time_since_start end =
      begin + std::min<std::chrono::nanoseconds>(at_most, std::chrono::hours(24 * 365));
  const time_since_start spin_end =
      how == waiting::eager ? std::min(end, last_moved_ + spin_limit) : begin;
  time_since_start now = begin;
  do {
    if (was_woken() || poll()) return;
    now = clock_.now();
  } while (now < spin_end);
  if (now >= end || !arm()) return;
  time_since_start until = end;
  if (const auto limit = control_->next_limit()) until = std::min(until, *limit);
  sleep(std::max(until - now, std::chrono::nanoseconds(0)));
}

void ucx_transport::sleep(std::chrono::nanoseconds at_most) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
  const timespec limit{.tv_sec = seconds.count(), .tv_nsec = (at_most - seconds).count()};
  std::array<epoll_event, 16> events;
  const int count =
      ::epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &limit, nullptr);
  if (count == 0) control_->look_at_contacts();  // perhaps one of their limits
  for (int i = 0; i < count; ++i) {
    const std::uint32_t what = events[static_cast<std::size_t>(i)].data.u32;
    if (what == waker_event) {
      eventfd_t ignored = 0;
      ::eventfd_read(waker_, &ignored);
      woken_ = false;
    }
    if (what == contacts_event) control_->look_at_contacts();
    if (what == worker_event) last_moved_ = clock_.now();
  }
}

void ucx_transport::wake() {
  if (!woken_.exchange(true)) ::eventfd_write(waker_, 1);
}

bool ucx_transport::was_woken() {
  if (!woken_.exchange(false)) return false;
  eventfd_t ignored = 0;
  ::eventfd_read(waker_, &ignored);
  return true;
}

}  // namespace troupe::comm
