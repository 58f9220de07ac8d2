// The faulty twin of the file interface: passes every operation to the file system below until one
// matches an injected fault. That one fails with the given error, or fails half way, or is where
// the process "crashes": from then on every operation fails and nothing reaches the disk.
//
// Over the real file system or memory, a crash alone is a killed process (the kernel keeps what was
// written); for a lost machine call memory_file_system::power_loss() before looking at what is
// left. Errors made here say "(injected)", so that a log tells staged trouble from true trouble.
#pragma once

#include <cerrno>
#include <mutex>

#include "config/base/file.hpp"

namespace troupe {

enum class file_operation : std::uint8_t {
  open,
  read,
  write,
  append,
  truncate,
  sync,
  size,
  link,
  rename,
  remove,
  make_directory,
  sync_directory,
  list,
  exists,
  free_bytes,
};
std::string_view name_of(file_operation operation);

enum class fault_kind : std::uint8_t {
  fail,            // the operation does nothing and fails
  fail_half_way,   // a write or append leaves its first half; others do nothing
  crash,           // just before the operation
  crash_half_way,  // a write or append leaves its first half, the others happen; then as crash
};

struct file_fault {
  std::optional<file_operation> operation = {};  // unset: any
  std::string path_pattern = "*";                // as fnmatch(3): '*' matches '/' too
  std::size_t at = 1;                            // the how many-th operation that matches, from 1
  std::size_t times = 1;                         // and how many from there on fail
  fault_kind kind = fault_kind::fail;
  int error_number = EIO;
};

class faulty_file_system final : public file_system {
 public:
  explicit faulty_file_system(file_system& below) : below_(below) {}

  void inject(file_fault fault);
  bool crashed() const;
  bool all_injected() const;  // has every injected fault happened at least once?
  // What was asked for so far, one "write some/path" each: tells a sweep how far to go, and what
  // its k-th case hits.
  std::vector<std::string> operations() const;

  result<std::unique_ptr<file>> open(const std::string& path, open_mode mode) override;
  result<bool> link(const std::string& from, const std::string& to) override;
  status rename(const std::string& from, const std::string& to) override;
  status remove(const std::string& path) override;
  result<bool> make_directory(const std::string& path) override;
  status sync_directory(const std::string& path) override;
  result<std::vector<directory_entry>> list(const std::string& path) override;
  result<bool> exists(const std::string& path) override;
  result<std::uint64_t> free_bytes(const std::string& path) override;

 private:
  class faulty_file;
  struct verdict {
    std::optional<error> failure;  // none: go on
    bool half_way = false;         // do half of it first
  };
  struct armed {
    file_fault fault;
    std::size_t seen = 0;
    bool happened = false;
  };
  verdict judge(file_operation operation, const std::string& path);
  template <class Result, class Call>
  Result attempt(file_operation operation, const std::string& path, Call call);

  file_system& below_;
  mutable std::mutex mutex_;
  std::vector<armed> faults_;
  std::vector<std::string> operations_;
  bool crashed_ = false;
};

}  // namespace troupe
