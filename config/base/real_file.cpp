// The interface of file.hpp over POSIX calls.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "config/base/file.hpp"

namespace troupe {
namespace {

error failure(const char* doing, const std::string& path, int number) {
  return to_error({doing, path, number});
}

bool is_full(int number) { return number == ENOSPC || number == EDQUOT; }

class real_file final : public file {
 public:
  real_file(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~real_file() override { ::close(fd_); }
  real_file(const real_file&) = delete;
  real_file& operator=(const real_file&) = delete;

  result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> into) override {
    std::size_t got = 0;
    while (got < into.size()) {
      const ssize_t n =
          ::pread(fd_, into.data() + got, into.size() - got, static_cast<off_t>(offset + got));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failure("read", path_, errno);
      if (n == 0) break;
      got += static_cast<std::size_t>(n);
    }
    return got;
  }

  status write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    return write_all(bytes, [&](std::size_t at) {
      return ::pwrite(fd_, bytes.data() + at, bytes.size() - at, static_cast<off_t>(offset + at));
    });
  }

  status append(std::span<const std::byte> bytes) override {
    return write_all(
        bytes, [&](std::size_t at) { return ::write(fd_, bytes.data() + at, bytes.size() - at); });
  }

  status truncate(std::uint64_t size) override {
    while (::ftruncate(fd_, static_cast<off_t>(size)) != 0) {
      if (errno != EINTR) return failure("truncate", path_, errno);
    }
    return done{};
  }

  status sync() override {
    while (::fsync(fd_) != 0) {
      if (is_full(errno)) return full("sync", errno, std::nullopt);
      if (errno != EINTR) return failure("sync", path_, errno);
    }
    return done{};
  }

  result<std::uint64_t> size() override {
    struct stat info;
    if (::fstat(fd_, &info) != 0) return failure("look at", path_, errno);
    return static_cast<std::uint64_t>(info.st_size);
  }

  result<bool> only_for_owner() override {
    struct stat info;
    if (::fstat(fd_, &info) != 0) return failure("look at", path_, errno);
    return (info.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  }

  const std::string& path() const override { return path_; }

 private:
  // A system call may write less than it was asked to; only its next call says why.
  template <class Call>
  status write_all(std::span<const std::byte> bytes, Call call) {
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t n = call(at);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && is_full(errno)) return full("write", errno, bytes.size() - at);
      if (n < 0) return failure("write", path_, errno);
      if (n == 0) return full("write", ENOSPC, bytes.size() - at);
      at += static_cast<std::size_t>(n);
    }
    return done{};
  }

  error full(const char* doing, int number, std::optional<std::uint64_t> needed) {
    struct statvfs info;
    std::optional<std::uint64_t> free;
    if (::fstatvfs(fd_, &info) == 0) free = std::uint64_t{info.f_bavail} * info.f_frsize;
    return to_error({doing, path_, number, needed, free});
  }

  int fd_;
  std::string path_;
};

int flags_of(open_mode mode) {
  switch (mode) {
    case open_mode::read:
      return O_RDONLY;
    case open_mode::update:
      return O_RDWR;
    case open_mode::create:
    case open_mode::create_private:
      return O_RDWR | O_CREAT | O_EXCL;
    case open_mode::truncate:
      return O_RDWR | O_CREAT | O_TRUNC;
    case open_mode::append:
      return O_RDWR | O_CREAT | O_APPEND;
  }
  return O_RDONLY;
}

int open_again(const std::string& path, int flags, mode_t permissions = 0666) {
  for (;;) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, permissions);
    if (fd >= 0 || errno != EINTR) return fd;
  }
}

class real_files final : public file_system {
 public:
  result<std::unique_ptr<file>> open(const std::string& path, open_mode mode) override {
    const bool is_private = mode == open_mode::create_private;
    const int fd = open_again(path, flags_of(mode), is_private ? 0600 : 0666);
    const bool creates = mode == open_mode::create || is_private;
    if (fd < 0) return failure(creates ? "create" : "open", path, errno);
    struct stat info;
    if (::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {  // reading one would fail only later
      ::close(fd);
      return failure("open", path, EISDIR);
    }
    return std::unique_ptr<file>(std::make_unique<real_file>(fd, path));
  }

  result<bool> link(const std::string& from, const std::string& to) override {
    if (::link(from.c_str(), to.c_str()) == 0) return true;
    const int number = errno;
    // Over NFS a repeated request may say "exists" about our own success: the link count knows.
    struct stat info;
    if (::stat(from.c_str(), &info) == 0 && info.st_nlink == 2 && same_file(info, to)) return true;
    if (number == EEXIST) return false;
    return failure("publish", to, number);
  }

  status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) == 0) return done{};
    return failure("rename", from + " to " + to, errno);
  }

  status remove(const std::string& path) override {
    if (std::remove(path.c_str()) == 0) return done{};
    return failure("remove", path, errno);
  }

  result<bool> make_directory(const std::string& path) override {
    if (::mkdir(path.c_str(), 0777) == 0) return true;
    const int number = errno;
    struct stat info;
    if (number == EEXIST && ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return false;
    return failure("make directory", path, number == EEXIST ? ENOTDIR : number);
  }

  status sync_directory(const std::string& path) override {
    const int fd = open_again(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return failure("sync directory", path, errno);
    int number = 0;
    while (::fsync(fd) != 0) {
      number = errno;
      if (number != EINTR) break;
      number = 0;
    }
    ::close(fd);
    if (number != 0) return failure("sync directory", path, number);
    return done{};
  }

  result<std::vector<directory_entry>> list(const std::string& path) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> at(::opendir(path.c_str()), ::closedir);
    if (!at) return failure("list", path, errno);
    std::vector<directory_entry> entries;
    for (;;) {
      errno = 0;
      const dirent* e = ::readdir(at.get());
      if (e == nullptr) break;
      const std::string name = e->d_name;
      if (name == "." || name == "..") continue;
      bool is_directory = e->d_type == DT_DIR;
      struct stat info;
      if (e->d_type == DT_UNKNOWN && ::lstat(join_path(path, name).c_str(), &info) == 0) {
        is_directory = S_ISDIR(info.st_mode);
      }
      entries.push_back({name, is_directory});
    }
    if (errno != 0) return failure("list", path, errno);
    std::ranges::sort(entries, {}, &directory_entry::name);
    return entries;
  }

  result<bool> exists(const std::string& path) override {
    struct stat info;
    if (::lstat(path.c_str(), &info) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return failure("look at", path, errno);
  }

  result<std::uint64_t> free_bytes(const std::string& path) override {
    struct statvfs info;
    if (::statvfs(path.c_str(), &info) != 0) return failure("look at", path, errno);
    return std::uint64_t{info.f_bavail} * info.f_frsize;
  }

 private:
  static bool same_file(const struct stat& a, const std::string& path) {
    struct stat b;
    return ::stat(path.c_str(), &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
  }
};

}  // namespace

file_system& real_file_system() {
  static real_files files;
  return files;
}

}  // namespace troupe
