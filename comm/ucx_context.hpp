// The home of UCX's context and workers: which transports it may use, how its errors read, and that
// everything is given back in the right order.
//
// Two accidents of a peer end *this* process when UCX 1.13 is used as it comes, and both are kept
// out by which transports stand in one context:
//   - CMA (process_vm_readv): reading from a killed process is taken for a defect and aborts the
//     reader. CMA is never used, and an environment that asks for it by name is refused rather than
//     corrected: whoever wrote it should know.
//   - Shared memory beside TCP: UCX then connects over TCP what it sends through shared memory, and
//     a peer that dies in that moment ends in an assertion (ucp_request_send_state_ff, "got REQ
//     message"). So shared memory and networks have a context each; each is safe alone.
// The settings go through ucp_config_modify, because settings in the environment would be inherited
// by programs that we start.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/transport.hpp"

namespace troupe::comm {

// Process-wide; a user's UCX_LOG_LEVEL wins.
void keep_ucx_quiet();

// What UCX is told to use when the user's UCX_TLS is `asked` (nothing: unset). An empty text:
// nothing is left. The errors are bad_config: CMA was asked for, or no network is left, without
// which lost peers are not noticed.
struct ucx_transports {
  std::string this_host, network;
};
result<ucx_transports> choose_transports(const std::optional<std::string>& asked);
// The same for this process's environment.
result<ucx_transports> choose_transports();

// What failed, in UCX's words, with our own before it.
error ucx_failure(std::string_view doing, ucs_status_t status);

class ucx_context {
 public:
  // `transports` as UCX_TLS; `devices`: names of network devices, with commas; empty: what UCX
  // finds.
  static result<std::shared_ptr<ucx_context>> open(const std::string& transports,
                                                   const std::string& devices);
  // For control links, see ucx_link.hpp.
  static result<std::shared_ptr<ucx_context>> open_for_control(const std::string& devices);
  ~ucx_context();
  ucx_context(const ucx_context&) = delete;
  ucx_context& operator=(const ucx_context&) = delete;

  ucp_context_h handle() const { return context_; }

 private:
  explicit ucx_context(ucp_context_h context) : context_(context) {}
  static result<std::shared_ptr<ucx_context>> make(
      const std::string& transports, const std::string& devices, std::uint64_t features,
      std::vector<std::pair<const char*, std::string>> settings);
  ucp_context_h context_;
};

// One progress engine with its own address. Whoever destroys it ends all that is in flight on it.
class ucx_worker {
 public:
  static result<std::unique_ptr<ucx_worker>> open(std::shared_ptr<ucx_context> context);
  ~ucx_worker();
  ucx_worker(const ucx_worker&) = delete;
  ucx_worker& operator=(const ucx_worker&) = delete;

  ucp_worker_h handle() const { return worker_; }
  const bytes& address() const { return address_; }
  std::size_t max_header_bytes() const { return max_header_bytes_; }
  // Readable when there is something to progress, provided that arm() said true.
  int event_fd() const { return event_fd_; }
  // False: there is something to progress now.
  bool arm();
  bool progress() { return ucp_worker_progress(worker_) != 0; }

  // Active messages with this number are given to `to(argument, ...)`, from progress().
  status receive(unsigned number, ucp_am_recv_callback_t to, void* argument);

 private:
  explicit ucx_worker(std::shared_ptr<ucx_context> context) : context_(std::move(context)) {}
  std::shared_ptr<ucx_context> context_;
  ucp_worker_h worker_ = nullptr;
  bytes address_;
  std::size_t max_header_bytes_ = 0;
  int event_fd_ = -1;
};

}  // namespace troupe::comm
