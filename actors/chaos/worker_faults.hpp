// A worker's hand against itself: takes the injector's orders, waits for their points, carries them
// out and proves it. The worker's side of process mode; order_files is the way, order_book the
// decision, this does it.
//
// A proof is written before what it proves takes the process away: a line that was handed to the
// system is there whatever happens to the process next. The injector still looks for itself where
// it can (a process that is gone, one that stands still).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/chaos/faulty_computation.hpp"
#include "actors/chaos/order_files.hpp"
#include "actors/fault_hooks.hpp"
#include "comm/message_faults.hpp"
#include "config/base/clock.hpp"

namespace troupe::actors::chaos {

// The actor that reaches a point: "rank"; "" where it is not known.
std::string_view actor_at(std::string_view point);
// The actors in which `throw` can happen.
const std::vector<std::string>& throwing_actors();

class worker_faults final : public fault_hooks {
 public:
  // `links`: what stands before the worker's transport; outlives this.
  worker_faults(order_inbox inbox, const clock_source& clock, comm::message_faults& links)
      : inbox_(std::move(inbox)), clock_(&clock), links_(&links) {}

  void reached(std::string_view point, std::uint64_t step, std::uint32_t k) override;
  void turn() override;
  std::unique_ptr<computation> around(std::unique_ptr<computation> work,
                                      compute::executor& device) override;

 private:
  struct place {
    std::string_view point;
    std::uint64_t step = 0;
  };
  void take_orders();
  void carry_out(const worker_order& o, const place& at);
  void end(std::uint64_t id, const std::string& how);
  void throw_if_wished(const place& at);
  void tell_what_others_saw();
  void tell_what_links_did();
  proof proof_of(const worker_order& o, const place& at, std::string words) const;

  order_inbox inbox_;
  const clock_source* clock_;
  comm::message_faults* links_;
  order_book book_;
  std::vector<worker_order> throws_;                                  // that wait for an actor
  std::map<std::uint64_t, std::optional<time_since_start>> lasting_;  // until when
  std::map<std::uint64_t, proof> unproven_links_;  // that have struck nothing yet
  faulty_computation* work_ = nullptr;
  compute::executor* device_ = nullptr;
  std::uint64_t step_ = 0;  // newest that a point was reached in

  std::mutex seen_mutex_;
  std::vector<proof> seen_by_others_;  // by the device's thread
};

}  // namespace troupe::actors::chaos
