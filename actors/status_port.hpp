// The run's port of one process: nothing listens until the process takes the coordinator's role,
// and nothing again after it has lost it, so that who asks an old address is refused instead of
// told old things. Snapshots are taken all the time; the newest one is there when the port opens.
//
// Not chosen: a port in every member that passes questions on. It would answer in the name of a
// coordinator that it cannot reach in just the moments in which people ask.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "actors/status_server.hpp"

namespace troupe::actors {

struct status_port_settings {
  std::string listen;  // metrics.prometheus_listen; "": there is never a port
  status_server_hooks hooks;
  std::function<void(const comm::address&)> told;  // after each opening
};

// From any thread.
class status_port {
 public:
  explicit status_port(status_port_settings settings) : settings_(std::move(settings)) {}

  // The number of the port, which is open afterwards; 0 where there is to be none.
  result<std::uint16_t> open();
  void publish(std::shared_ptr<const world_status> snapshot);
  void close();

 private:
  const status_port_settings settings_;
  std::mutex mutex_;  // of all below
  std::shared_ptr<const world_status> newest_;
  std::unique_ptr<status_server> server_;
};

}  // namespace troupe::actors
