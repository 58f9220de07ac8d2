// One run, one directory. Opening claims it for this launcher or worker: a lock that the kernel
// gives back when its holders end, so that a second start on a directory that is still in use is
// refused, and one after a crash is not. A directory with other things in it is never written to.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "config/base/clock.hpp"
#include "config/base/error.hpp"
#include "config/base/file.hpp"

namespace troupe::actors {

// Workers of a launcher that was killed save and end, and hold the lock until then.
struct lock_patience {
  std::chrono::milliseconds limit{0};
  std::function<void(const std::string&)> say = {};  // a line, if it has to wait
};

class run_directory {
 public:
  // Makes or opens it; takes the lock; writes run.json if it is new. Exit code 73 if it is foreign,
  // held or not writable. The lock passes on to child processes and is held until the last of them
  // ends.
  static result<run_directory> claim(file_system& files, const std::string& path,
                                     const clock_source& clock, const lock_patience& patience = {});
  // For a worker that a person started: claims it, or opens it without the lock (lock_fd() is -1)
  // if others hold it, whose run is under way on it then.
  static result<run_directory> claim_or_open(file_system& files, const std::string& path,
                                             const clock_source& clock);
  // For a worker that its launcher started: `inherited_lock` is the launcher's open lock. Without
  // it (-1), or if it is not this directory's lock, the worker has to claim the directory itself.
  static result<run_directory> join(file_system& files, const std::string& path,
                                    const clock_source& clock, int inherited_lock);
  // For commands that only read, and for members whose world's lock is held by others.
  static result<run_directory> open(file_system& files, const std::string& path);

  int lock_fd() const;  // to hand to a worker; -1 if the lock is not held
  const std::string& path() const { return path_; }
  const std::string& run_id() const { return run_id_; }
  bool is_new() const { return is_new_; }
  std::string file(std::string_view name) const { return join_path(path_, name); }

  // Writes config.toml. A different older one is kept beside it as config.1.toml, config.2.toml,
  // ...
  status write_config(file_system& files, const std::string& toml) const;

 private:
  struct lock;
  static status take(const lock& l, const std::string& path, const lock_patience& patience);
  std::string path_, run_id_;
  bool is_new_ = false;
  std::shared_ptr<lock> lock_;
};

// The process that holds the run's lock, 0 if nobody does.
result<int> holder_of(const std::string& run_directory_path);
// Does this process hold the run's lock? A number in the lock file alone may be another machine's,
// or that of a launcher whose workers have outlived it.
bool holds_lock(int process, const std::string& run_directory_path);

}  // namespace troupe::actors
