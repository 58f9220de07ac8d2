// A file system in memory that remembers what was synced, for tests. `power_loss(seed)` does what a
// power cut does to a disk: writes that were not synced are lost, kept or torn, page by page; names
// that were not synced with sync_directory() come, go or stay as they were. Renames stay atomic.
//
// The model is harsher than a journaling file system on purpose: a name survives only if its
// directory was synced, and unsynced changes survive in any combination, not only in order.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "config/base/file.hpp"

namespace troupe {

class memory_file_system final : public file_system {
 public:
  memory_file_system();
  ~memory_file_system() override;

  // Writes that would need more fail with "no space left", after writing what fits.
  void set_capacity(std::uint64_t bytes);
  // Seed 0: everything unsynced is lost. Seed 1: everything is kept, as when only the process dies.
  // Others: a mix. Open files must not be used afterwards.
  void power_loss(std::uint64_t seed);
  std::uint64_t used_bytes() const;

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
  struct node;
  using node_ptr = std::shared_ptr<node>;
  struct place;
  class open_file;
  struct entry_change {
    node_ptr directory;
    std::string name;
    node_ptr target;  // null: the name goes
  };
  using change = std::vector<entry_change>;  // happens as a whole or not at all

  node_ptr find(const std::string& path) const;
  place find_place(const std::string& path) const;
  void apply(change what);
  status write(node& at, const std::string& path, std::uint64_t offset,
               std::span<const std::byte> bytes);

  mutable std::mutex mutex_;
  node_ptr root_;
  std::vector<change> unsynced_;
  std::uint64_t capacity_ = std::uint64_t{1} << 40;
};

}  // namespace troupe
