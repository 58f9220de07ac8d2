// Files behind one small interface, so that a test can take a disk away at any moment: the same
// code runs on the real file system, on an in-memory tree that forgets what was not synced
// (memory_file.hpp), and under injected faults (faulty_file.hpp).
//
// The interface has only what durable publishing needs: positioned reads and writes, append, sync
// of files and of directories, hard links and renames. What can be built from these (publish,
// replace, remove_all, ...) is a free function below, so that a fault can hit each of its steps.
//
// Failures carry the path, the system's reason and, where space ran out, bytes needed and free.
// Their exit code is 73 where the place cannot be used at all (permissions, read-only), else 74.
// A process that may meet a file-size limit must ignore SIGXFSZ; then the limit is an error like
// any other (EFBIG).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/error.hpp"

namespace troupe {

// One open file. Safe to use from several threads as long as their ranges do not overlap.
class file {
 public:
  virtual ~file() = default;
  // Bytes read: fewer than asked for only where the file ends.
  virtual result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> into) = 0;
  // Both write everything or fail; a failure may leave a part behind.
  virtual status write_at(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  virtual status append(std::span<const std::byte> bytes) = 0;  // opened with open_mode::append
  virtual status truncate(std::uint64_t size) = 0;
  virtual status sync() = 0;  // content and size are durable; the name needs sync_directory
  virtual result<std::uint64_t> size() = 0;
  virtual result<bool> only_for_owner() = 0;  // nobody else may read or write it
  virtual const std::string& path() const = 0;
};

enum class open_mode : std::uint8_t {
  read,            // must exist
  update,          // must exist; read and write_at
  create,          // must not exist; read and write_at
  create_private,  // the same, only for its owner
  truncate,        // created or emptied; read and write_at
  append,          // created if missing; read and append
};

struct directory_entry {
  std::string name;
  bool is_directory = false;
  friend bool operator==(const directory_entry&, const directory_entry&) = default;
};

class file_system {
 public:
  virtual ~file_system() = default;
  virtual result<std::unique_ptr<file>> open(const std::string& path, open_mode mode) = 0;
  virtual result<bool> link(const std::string& from, const std::string& to) = 0;  // false: `to` is
  virtual status rename(const std::string& from, const std::string& to) = 0;      // taken already
  virtual status remove(const std::string& path) = 0;                // a file or an empty directory
  virtual result<bool> make_directory(const std::string& path) = 0;  // false: it is there already
  virtual status sync_directory(const std::string& path) = 0;
  virtual result<std::vector<directory_entry>> list(const std::string& path) = 0;  // by name
  virtual result<bool> exists(const std::string& path) = 0;
  virtual result<std::uint64_t> free_bytes(const std::string& path) = 0;
};

file_system& real_file_system();

// What a failed operation reports; also for other implementations of the interface.
struct file_failure {
  std::string doing;  // "write", "open", ...
  std::string path;
  int error_number = 0;
  std::optional<std::uint64_t> bytes_needed = {};
  std::optional<std::uint64_t> bytes_free = {};
};
error to_error(const file_failure& failure);

// "a/b" for ("a", "b"); the directory part of a path ("." if it has none); its last name.
std::string join_path(std::string_view directory, std::string_view name);
std::string parent_path(std::string_view path);
std::string base_name(std::string_view path);

// Makes all missing directories; each new name is durable when this returns.
status make_directories(file_system& files, const std::string& path);

// Removes a file or a whole tree; what is not there counts as removed. Not durable by itself.
status remove_all(file_system& files, const std::string& path);

// The whole content; refuses more than `limit` bytes before it allocates anything.
result<std::string> read_file(file_system& files, const std::string& path, std::uint64_t limit);

// Reads exactly `into.size()` bytes; a file that ends before is an error.
status read_exactly(file& from, std::uint64_t offset, std::span<std::byte> into);

enum class publish_outcome : std::uint8_t { published, taken };

// Write-once: the name appears with its whole content, durably, or not at all; a name that is taken
// stays as it is and says so. Temporary file, sync, link(), directory sync: unlike rename(), link()
// never replaces what another writer has published.
result<publish_outcome> publish(file_system& files, const std::string& path,
                                std::string_view content);

// The same with a file that is only for its owner.
result<publish_outcome> publish_private(file_system& files, const std::string& path,
                                        std::string_view content);

// The name holds either its old or its new content, whatever happens.
status replace(file_system& files, const std::string& path, std::string_view content);

// Ends the names of temporary files that publish() and replace() leave behind only in a crash.
inline constexpr std::string_view temporary_mark = ".tmp-";

}  // namespace troupe
