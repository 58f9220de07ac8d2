#include "config/base/file.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <random>
#include <system_error>

namespace troupe {
namespace {

// A name that no other process uses, on whatever host: a temporary file that a crash left behind
// may be a second link to a published file, so a name is never used twice.
std::string temporary_name(const std::string& path) {
  static const std::uint64_t process = [] {
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
  }();
  static std::atomic<std::uint64_t> count = 0;
  return fmt::format("{}{}{:016x}-{}", path, temporary_mark, process, count++);
}

status write_temporary(file_system& files, const std::string& path, std::string_view content,
                       open_mode mode = open_mode::create) {
  auto out = files.open(path, mode);
  if (!out) return out.failure();
  if (auto s = (*out)->write_at(0, std::as_bytes(std::span(content))); !s) return s;
  return (*out)->sync();
}

result<publish_outcome> publish_as(file_system& files, const std::string& path,
                                   std::string_view content, open_mode mode) {
  const std::string temporary = temporary_name(path);
  if (auto s = write_temporary(files, temporary, content, mode); !s) {
    (void)files.remove(temporary);
    return s.failure();
  }
  auto linked = files.link(temporary, path);
  // Best effort: a leftover temporary name harms nobody, and a published file stays published.
  (void)files.remove(temporary);
  if (!linked) return linked.failure();
  if (!*linked) return publish_outcome::taken;
  if (auto s = files.sync_directory(parent_path(path)); !s) return s.failure();
  return publish_outcome::published;
}

bool is_unusable(int error_number) {
  return error_number == EACCES || error_number == EPERM || error_number == EROFS;
}

const char* advice(int error_number) {
  switch (error_number) {
    case ENOSPC:
      return "free some space, or use another directory";
    case EDQUOT:
      return "the quota is used up: remove something, or use another directory";
    case EFBIG:
      return "raise the file-size limit (ulimit -f)";
    case EROFS:
      return "use a directory that can be written to";
    case EACCES:
    case EPERM:
      return "check owner and permissions";
    case EIO:
      return "the device or the connection to it fails; see the system's log";
    default:
      return nullptr;
  }
}

}  // namespace

error to_error(const file_failure& f) {
  std::string text = fmt::format("cannot {} {}: {}", f.doing, f.path,
                                 std::generic_category().message(f.error_number));
  if (f.bytes_needed) text += fmt::format("; {} bytes needed", *f.bytes_needed);
  if (f.bytes_free) text += fmt::format("; {} bytes free", *f.bytes_free);
  if (const char* hint = advice(f.error_number)) text += fmt::format("; {}", hint);
  return {is_unusable(f.error_number) ? exit_code::cannot_use : exit_code::io, std::move(text)};
}

std::string join_path(std::string_view directory, std::string_view name) {
  if (directory.empty()) return std::string(name);
  return fmt::format("{}{}{}", directory, directory.ends_with('/') ? "" : "/", name);
}

std::string parent_path(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const auto at = path.rfind('/');
  if (at == std::string_view::npos) return ".";
  return std::string(path.substr(0, at == 0 ? 1 : at));
}

std::string base_name(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return std::string(path.substr(path.rfind('/') + 1));
}

status make_directories(file_system& files, const std::string& path) {
  auto there = files.exists(path);
  if (!there) return there.failure();
  if (*there) return done{};
  const std::string parent = parent_path(path);
  if (parent != path) {
    if (auto s = make_directories(files, parent); !s) return s;
  }
  auto made = files.make_directory(path);
  if (!made) return made.failure();
  return files.sync_directory(parent);
}

status remove_all(file_system& files, const std::string& path) {
  auto there = files.exists(path);
  if (!there) return there.failure();
  if (!*there) return done{};
  // Whether it is a directory is known to its parent's listing only.
  auto siblings = files.list(parent_path(path));
  if (!siblings) return siblings.failure();
  const std::string name = base_name(path);
  for (const directory_entry& e : *siblings) {
    if (e.name != name || !e.is_directory) continue;
    auto inside = files.list(path);
    if (!inside) return inside.failure();
    for (const directory_entry& child : *inside) {
      const std::string child_path = join_path(path, child.name);
      auto s = child.is_directory ? remove_all(files, child_path) : files.remove(child_path);
      if (!s) return s;
    }
  }
  return files.remove(path);
}

result<std::string> read_file(file_system& files, const std::string& path, std::uint64_t limit) {
  auto in = files.open(path, open_mode::read);
  if (!in) return in.failure();
  auto size = (*in)->size();
  if (!size) return size.failure();
  if (*size > limit) {
    return error{exit_code::io,
                 fmt::format("{} has {} bytes; at most {} are expected there", path, *size, limit)};
  }
  std::string content(*size, '\0');
  if (auto s = read_exactly(**in, 0, std::as_writable_bytes(std::span(content))); !s) {
    return s.failure();
  }
  return content;
}

status read_exactly(file& from, std::uint64_t offset, std::span<std::byte> into) {
  auto count = from.read_at(offset, into);
  if (!count) return count.failure();
  if (*count == into.size()) return done{};
  return error{exit_code::io, fmt::format("{} ends at byte {}, but {} bytes were to be read from "
                                          "byte {} on: the file is cut short",
                                          from.path(), offset + *count, into.size(), offset)};
}

result<publish_outcome> publish(file_system& files, const std::string& path,
                                std::string_view content) {
  return publish_as(files, path, content, open_mode::create);
}

result<publish_outcome> publish_private(file_system& files, const std::string& path,
                                        std::string_view content) {
  return publish_as(files, path, content, open_mode::create_private);
}

status replace(file_system& files, const std::string& path, std::string_view content) {
  const std::string temporary = temporary_name(path);
  status s = write_temporary(files, temporary, content);
  if (s) s = files.rename(temporary, path);
  if (!s) {
    (void)files.remove(temporary);
    return s;
  }
  return files.sync_directory(parent_path(path));
}

}  // namespace troupe
