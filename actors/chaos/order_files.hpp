// The way of orders to a worker and of its proofs back: for each life of a slot three files in one
// folder of the run directory,
//
//   worker-2.LIFE.orders   lines, appended by the injector
//   worker-2.LIFE.proofs   lines, appended by the worker
//   worker-2.LIFE.bell     eight bytes that both map: how many orders were given
//
// To look for an order is one relaxed load, at every point, frame and turn; no thread, no socket,
// no descriptor that a loop must wait for. Files, because they are still there when the process
// that wrote them has killed itself, and because both sides are on one machine by what process mode
// is. Not chosen: shared memory for everything (a ring with two processes that die at any
// instruction), signals with numbers (they are taken).
//
// The worker makes the files before it meets anybody; so whoever stands in a plan takes orders.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/chaos/order.hpp"
#include "actors/chaos/run_watcher.hpp"
#include "config/base/file.hpp"

namespace troupe::actors::chaos {

// "worker-2.17": begins the names of one life's files.
std::string order_stem(std::string_view name, incarnation life);

// Eight bytes of a file, mapped.
class mapped_counter {
 public:
  static result<mapped_counter> create(const std::string& path);  // at zero; it must not exist
  static result<mapped_counter> open(const std::string& path);
  ~mapped_counter();
  mapped_counter(mapped_counter&& other) noexcept;
  mapped_counter& operator=(mapped_counter&& other) noexcept;

  std::uint64_t peek() const { return value_->load(std::memory_order_relaxed); }
  void add_one() { value_->fetch_add(1, std::memory_order_release); }

 private:
  explicit mapped_counter(std::atomic<std::uint64_t>* value) : value_(value) {}
  static result<mapped_counter> map(const std::string& path, bool anew);
  std::atomic<std::uint64_t>* value_ = nullptr;
};

// The worker's side.
class order_inbox {
 public:
  static result<order_inbox> open(file_system& files, const std::string& folder,
                                  std::string_view name, incarnation life);

  bool rings() const { return bell_.peek() != heard_; }
  // Everything that came since. An order that cannot be read is proven to have failed.
  std::vector<worker_order> take();
  void prove(const proof& p);

 private:
  order_inbox(file_system& files, mapped_counter bell, std::string orders,
              std::unique_ptr<file> proofs)
      : bell_(std::move(bell)),
        path_(orders),
        lines_(files, std::move(orders)),
        proofs_(std::move(proofs)) {}

  mapped_counter bell_;
  std::uint64_t heard_ = 0;
  std::string path_;
  line_follower lines_;
  std::unique_ptr<file> proofs_;
};

// The injector's side, of one life.
class order_outbox {
 public:
  // An error: that life takes no orders (yet).
  static result<order_outbox> open(file_system& files, const std::string& folder,
                                   std::string_view name, incarnation life);

  status give(const worker_order& o);
  std::vector<proof> take_proofs();

 private:
  order_outbox(file_system& files, mapped_counter bell, std::unique_ptr<file> orders,
               std::string proofs)
      : bell_(std::move(bell)),
        orders_(std::move(orders)),
        path_(proofs),
        proofs_(files, std::move(proofs)) {}

  mapped_counter bell_;
  std::unique_ptr<file> orders_;
  std::string path_;
  line_follower proofs_;
};

}  // namespace troupe::actors::chaos
