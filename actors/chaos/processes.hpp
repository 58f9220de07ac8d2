// Processes of this machine, as one who does harm to them on purpose needs them: start one that
// cannot outlive this one, find the workers of a launcher by name, signal exactly the process that
// was meant, and see afterwards what became of it.
//
// A process is held by its pidfd: its number may belong to somebody else as soon as it has ended,
// and a fault that strikes a stranger is worse than none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/base/error.hpp"

namespace troupe::actors::chaos {

class held_process {
 public:
  held_process() = default;
  // Nothing: it has ended already.
  static std::optional<held_process> hold(int id);
  ~held_process();
  held_process(held_process&& other) noexcept;
  held_process& operator=(held_process&& other) noexcept;

  int id() const { return id_; }
  bool ended() const;           // also while its parent has not reaped it
  bool send(int signal) const;  // false: it has ended
  // Of our own child that has ended: 0..255, or 128 + signal.
  int reap() const;

 private:
  int id_ = 0, fd_ = -1;
};

struct process_look {
  char state = '?';  // as in /proc: R, S, D, T (stopped), Z (ended), ...
  double cpu_seconds = 0;
};
std::optional<process_look> look_at(int id);  // nothing: there is no such process

std::vector<int> children_of(int id);
// "worker-2" of a `troupe worker ... --name worker-2`; nothing: it is none (yet).
std::optional<std::string> worker_name(int id);

// A file without a name that takes what processes print.
class output_file {
 public:
  static result<output_file> make();
  ~output_file();
  output_file(output_file&& other) noexcept;
  output_file& operator=(output_file&&) = delete;
  int fd() const { return fd_; }
  std::string text() const;

 private:
  explicit output_file(int fd) : fd_(fd) {}
  int fd_ = -1;
};

std::string text_in(int fd);  // all that was written into such a file

// Starts `program` in a process group of its own, with output and errors into `output`; it is told
// to end (TERM) if this process ends first.
result<held_process> start_program(const std::string& program,
                                   const std::vector<std::string>& arguments, int output);
// A child that does nothing but use a core; the kernel kills it if this process ends first.
result<held_process> start_busy_child();

// While it lives, orphans among our descendants become our children instead of init's, so that none
// is out of sight.
class adopts_orphans {
 public:
  adopts_orphans();
  ~adopts_orphans();
  adopts_orphans(const adopts_orphans&) = delete;
  adopts_orphans& operator=(const adopts_orphans&) = delete;

 private:
  int before_ = 0;
};

}  // namespace troupe::actors::chaos
