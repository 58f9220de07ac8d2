// Where the coordinator listens now: RUN_DIR/address, for the launcher, for commands and for
// newcomers. A hint and no proof: it is replaced by each new coordinator, may be old, and whoever
// connects learns by the handshake whether it reached this run. Who has the role is in the chain of
// plans alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/base/error.hpp"
#include "config/base/file.hpp"
#include "config/base/ids.hpp"

namespace troupe::actors {

struct run_address {
  std::string run_id;
  generation plan;  // that gave the coordinator its role
  std::string host;
  std::uint16_t port = 0;       // of the control lane
  std::uint16_t http_port = 0;  // of metrics and web page; 0: there are none
  friend bool operator==(const run_address&, const run_address&) = default;
};

enum class address_kind : std::uint8_t {
  current,
  stale,           // of a coordinator that a later plan has replaced
  of_another_run,  // the file was copied
};
// `head`: the newest plan that is known.
address_kind kind_of(const run_address& address, const std::string& run_id, generation head);

// The file holds the old or the new address, whatever happens. A newer coordinator's address is
// left alone; false then.
result<bool> publish_address(file_system& files, const std::string& run_directory,
                             const run_address& address);

// Nothing if there is none yet. Strict; exit code 73 if the file is damaged.
result<std::optional<run_address>> read_address(file_system& files,
                                                const std::string& run_directory);

}  // namespace troupe::actors
