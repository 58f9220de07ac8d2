// The other side of a run's port: what `troupe status` and `troupe stop` ask with. Where the port
// is stands in the run directory (run_address.hpp).
#pragma once

#include <string>

#include "comm/transport.hpp"
#include "config/base/error.hpp"

namespace troupe::actors {

struct http_answer {
  int code = 0;
  std::string body;
};
// Failures, with address and cause, are `too_few`: nobody answers there.
result<http_answer> http_get(const comm::address& at, const std::string& path);
result<http_answer> http_post(const comm::address& at, const std::string& path,
                              const std::string& secret);

}  // namespace troupe::actors
