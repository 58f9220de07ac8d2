#include "model/data/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace troupe::model::data {
namespace {

error bad(const std::string& path, const std::string& cause) {
  return {exit_code::bad_data, fmt::format("data file {}: {}", path, cause)};
}

}  // namespace

result<input_file> input_file::open(const std::string& path) {
  // O_NONBLOCK: opening a pipe by mistake must not wait for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if (errno == ENOENT) return bad(path, "no such file");
    return bad(path, fmt::format("cannot be opened ({})", std::strerror(errno)));
  }
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) {
    const int cause = errno;
    ::close(fd);
    return bad(path, fmt::format("cannot be examined ({})", std::strerror(cause)));
  }
  input_file file(path, fd, static_cast<std::uint64_t>(facts.st_size));
  if (S_ISDIR(facts.st_mode))
    return bad(path, "is a folder; name its files, for example by a pattern like '*.txt'");
  if (!S_ISREG(facts.st_mode)) return bad(path, "is not a regular file");
  if (facts.st_size == 0) return bad(path, "is empty (0 bytes)");
  return file;
}

input_file::input_file(std::string path, int fd, std::uint64_t size)
    : path_(std::move(path)), fd_(fd), size_(size) {}

input_file::input_file(input_file&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

input_file& input_file::operator=(input_file&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

input_file::~input_file() {
  if (fd_ >= 0) ::close(fd_);
}

status input_file::read(std::uint64_t offset, std::span<std::byte> out) const {
  std::size_t done_bytes = 0;
  while (done_bytes < out.size()) {
    const ssize_t n = ::pread(fd_, out.data() + done_bytes, out.size() - done_bytes,
                              static_cast<off_t>(offset + done_bytes));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return error{exit_code::io, fmt::format("data file {}: reading at byte {} failed ({})", path_,
                                              offset + done_bytes, std::strerror(errno))};
    }
    if (n == 0) {
      return error{
          exit_code::io,
          fmt::format("data file {}: ends at byte {} although it had {} bytes when it was opened; "
                      "it was shortened while in use",
                      path_, offset + done_bytes, size_)};
    }
    done_bytes += static_cast<std::size_t>(n);
  }
  return done{};
}

}  // namespace troupe::model::data
