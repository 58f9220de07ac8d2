// The transport of real runs: both lanes over UCX, and one place to sleep.
//
// A thread that waits eagerly looks at the lanes for at most 50 us after something last happened,
// since the answer to what was just sent usually comes by then; after that, and at once if it waits
// patiently, it sleeps on one descriptor that all workers, the contacts and wake() make readable.
// An idle process costs nothing.
#pragma once

#include <atomic>
#include <memory>

#include "comm/network.hpp"
#include "comm/ucx_bulk_lane.hpp"
#include "comm/ucx_control_lane.hpp"
#include "config/base/clock.hpp"

namespace troupe::comm {

using ucx_settings = network_settings;

inline constexpr std::chrono::microseconds spin_limit{50};

class ucx_transport final : public transport {
 public:
  // Listens at once. The errors: bad_config (settings, UCX_TLS), io (a port that is taken, UCX).
  static result<std::unique_ptr<ucx_transport>> open(const ucx_settings& settings);
  ~ucx_transport() override;
  ucx_transport(const ucx_transport&) = delete;
  ucx_transport& operator=(const ucx_transport&) = delete;

  void start(control_handler& handler) override;
  control_lane& control() override { return *control_; }
  result<std::unique_ptr<bulk_lane>> open_bulk(generation number, bulk_handler& handler) override;
  bool progress() override;
  void wait(std::chrono::nanoseconds at_most, waiting how) override;
  void wake() override;
  traffic sent() const override { return *count_; }

 private:
  ucx_transport(clock_source& clock, int epoll, int waker);
  // Lets UCX work without calling handlers; true if it did or if handlers are to be called.
  bool poll();
  bool arm();
  bool was_woken();
  void sleep(std::chrono::nanoseconds at_most);
  void listen_to(int fd, std::uint32_t what);

  clock_source& clock_;
  int epoll_, waker_;
  std::atomic<bool> woken_{false};
  std::shared_ptr<traffic> count_ = std::make_shared<traffic>();
  // For bulk in this order: shared memory (if allowed), network.
  std::vector<std::shared_ptr<ucx_context>> contexts_;
  std::unique_ptr<ucx_control_lane> control_;
  std::vector<std::shared_ptr<ucx_bulk_traffic>> bulk_;
  time_since_start last_moved_{0};
};

}  // namespace troupe::comm
