// A data file that is open for reading. Reads are positioned and exact: a short or failed read is
// an error, never an early end of the data.
//
// Why pread and not a memory map: a file that is shortened or sits on a failing disk would kill the
// process by SIGBUS when mapped, and resident pages of the map would count as memory of the run.
// One system call a window does not show up beside computing the window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "config/base/error.hpp"

namespace troupe::model::data {

class input_file {
 public:
  // A regular file that can be read and is not empty; anything else is bad data.
  static result<input_file> open(const std::string& path);

  input_file(input_file&& other) noexcept;
  input_file& operator=(input_file&& other) noexcept;
  ~input_file();

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }

  // Fills `out` from `offset` on. Safe to call from several threads.
  status read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  input_file(std::string path, int fd, std::uint64_t size);
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace troupe::model::data
