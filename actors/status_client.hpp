// The other side of a run's port: what `troupe status` and `troupe stop` ask with, and the file in
// the run directory that says where.
#pragma once

#include <optional>
#include <string>

#include "comm/transport.hpp"
#include "config/base/error.hpp"
#include "config/base/file.hpp"

namespace troupe::actors {

// Where a run answers: RUN_DIR/address, published by rename. It outlives a killed run, so whoever
// reads it asks there and compares the run's id.
struct status_address {
  comm::address http;
  std::string run_id;
};
status write_status_address(file_system& files, const std::string& run_directory,
                            const status_address& where);
// Nothing: there is none.
result<std::optional<status_address>> read_status_address(file_system& files,
                                                          const std::string& run_directory);

struct http_answer {
  int code = 0;
  std::string body;
};
// Failures, with address and cause, are `too_few`: nobody answers there.
result<http_answer> http_get(const comm::address& at, const std::string& path);
result<http_answer> http_post(const comm::address& at, const std::string& path,
                              const std::string& secret);

}  // namespace troupe::actors
