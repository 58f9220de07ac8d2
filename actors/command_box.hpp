// Where a launcher takes commands from people on its machine: a datagram socket whose name, made
// of the run's id, lives in the kernel and ends with its process. A command is one datagram and so
// is its answer, so a slow or silent asker costs the launcher nothing.
//
// The kernel says who sent a datagram; only the launcher's own user and root are listened to, and
// the asker believes only these two. Not chosen: a signal, which carries no number and no answer; a
// file in the run directory, which needs polling, is left behind, and may lie on a network disk; a
// socket in the file system, whose path has to fit into 107 bytes.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "config/base/error.hpp"

namespace troupe::actors {

class command_box {
 public:
  static result<command_box> open(const std::string& run_id);
  ~command_box();
  command_box(command_box&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  command_box(const command_box&) = delete;
  command_box& operator=(const command_box&) = delete;

  int fd() const { return fd_; }  // readable when a command waits

  struct command {
    std::string words;
    std::string asker;  // for answer()
  };
  // The next one; what strangers sent is passed over.
  std::optional<command> take() const;
  // An asker that is gone is no trouble.
  void answer(const command& to, exit_code code, const std::string& words) const;

 private:
  explicit command_box(int fd) : fd_(fd) {}
  int fd_;
};

struct command_answer {
  exit_code code = exit_code::ok;
  std::string words;
};
// Nothing: no launcher of this run is on this machine. An error: it is, and does not answer.
result<std::optional<command_answer>> ask_launcher(const std::string& run_id,
                                                   const std::string& words,
                                                   std::chrono::milliseconds patience);

}  // namespace troupe::actors
