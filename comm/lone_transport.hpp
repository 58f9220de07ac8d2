// The transport of a world of one: nobody is there, nothing arrives, and waiting is all it does.
// For a member in a test, or where no other may ever join.
#pragma once

#include <condition_variable>
#include <mutex>

#include "comm/transport.hpp"

namespace troupe::comm {

class lone_transport final : public transport {
 public:
  lone_transport();
  ~lone_transport() override;

  void start(control_handler& handler) override { handler_ = &handler; }
  control_lane& control() override;
  result<std::unique_ptr<bulk_lane>> open_bulk(generation number, bulk_handler& handler) override;
  bool progress() override;
  void wait(std::chrono::nanoseconds at_most, waiting how) override;
  void wake() override;
  traffic sent() const override { return {}; }

 private:
  class lane;
  std::unique_ptr<lane> lane_;
  control_handler* handler_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
};

}  // namespace troupe::comm
