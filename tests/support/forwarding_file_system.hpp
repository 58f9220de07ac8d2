// A file system that passes everything on, to be overridden where a test wants another behaviour.
#pragma once

#include "config/base/file.hpp"

namespace troupe {

class forwarding_file_system : public file_system {
 public:
  explicit forwarding_file_system(file_system& below) : below_(below) {}

  result<std::unique_ptr<file>> open(const std::string& path, open_mode mode) override {
    return below_.open(path, mode);
  }
  result<bool> link(const std::string& from, const std::string& to) override {
    return below_.link(from, to);
  }
  status rename(const std::string& from, const std::string& to) override {
    return below_.rename(from, to);
  }
  status remove(const std::string& path) override { return below_.remove(path); }
  result<bool> make_directory(const std::string& path) override {
    return below_.make_directory(path);
  }
  status sync_directory(const std::string& path) override { return below_.sync_directory(path); }
  result<std::vector<directory_entry>> list(const std::string& path) override {
    return below_.list(path);
  }
  result<bool> exists(const std::string& path) override { return below_.exists(path); }
  result<std::uint64_t> free_bytes(const std::string& path) override {
    return below_.free_bytes(path);
  }

 protected:
  file_system& below_;
};

}  // namespace troupe
