// The run's secret: 32 random bytes that only who may take part can read. It stands in a file of
// its own (64 hexadecimal digits, mode 0600) beside the run or wherever the user keeps it; a file
// that others may read is refused, because then it is none. In memory it is wiped when it is done
// with.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "config/base/error.hpp"
#include "config/base/file.hpp"

namespace troupe::comm {

class secret {
 public:
  static constexpr std::size_t size = 32;

  explicit secret(std::span<const std::byte, size> bytes);
  secret(const secret&) = default;
  secret& operator=(const secret&) = default;
  ~secret();

  std::span<const std::byte, size> bytes() const { return bytes_; }
  // In a time that does not depend on where they differ.
  friend bool operator==(const secret& a, const secret& b);

 private:
  std::array<std::byte, size> bytes_;
};

secret random_secret();

result<secret> read_secret(file_system& files, const std::string& path);

// Publishes a new one, once: where there is one already, that one is the secret.
result<secret> create_secret(file_system& files, const std::string& path);

}  // namespace troupe::comm
