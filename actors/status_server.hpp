// The port of a run: /metrics for Prometheus, /api/status for scripts, / for people (the table of
// `troupe status`), /healthz for whoever restarts what is stuck, and POST /api/stop, /api/scale/N
// and /api/drain/MEMBER, which need the run's secret in the header X-Troupe-Secret. The last two
// are passed on to the launcher, which knows the processes.
//
// The loop's thread publishes immutable snapshots; pages are made from the newest one when they are
// asked for, on the server's thread. So no request waits for the training, and the training never
// waits for more than a pointer to be swapped.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "actors/command_box.hpp"
#include "actors/http_server.hpp"
#include "actors/world_status.hpp"

namespace troupe::actors {

struct status_server_hooks {
  std::string secret = {};          // "": nobody may stop the run this way
  std::function<void()> stop = {};  // on the server's thread
  // Asks the run's launcher, if it is on this machine ("scale 4"); on the server's thread.
  std::function<result<std::optional<command_answer>>(const std::string&)> order = {};
  const clock_source* clock = &real_clock();
};

class status_server {
 public:
  // The error names metrics.prometheus_listen and the address that cannot be had.
  static result<std::unique_ptr<status_server>> start(const std::string& listen,
                                                      status_server_hooks hooks);

  const comm::address& address() const { return http_->address(); }
  // From any thread.
  void publish(std::shared_ptr<const world_status> snapshot);

 private:
  explicit status_server(status_server_hooks hooks) : hooks_(std::move(hooks)) {}
  http_response answer(const http_request& request) const;
  http_response answer_stop(const http_request& request) const;
  http_response answer_order(const http_request& request) const;
  bool has_secret(const http_request& request) const;
  std::shared_ptr<const world_status> newest() const;

  status_server_hooks hooks_;
  mutable std::mutex mutex_;  // of newest_
  std::shared_ptr<const world_status> newest_;
  std::unique_ptr<http_server> http_;  // last: its thread ends before anything that it uses
};

// Takes the same time wherever the two differ.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace troupe::actors
