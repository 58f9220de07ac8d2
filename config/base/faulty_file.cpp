#include "config/base/faulty_file.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

namespace troupe {

std::string_view name_of(file_operation operation) {
  static constexpr std::string_view names[] = {
      "open",           "read",           "write", "append",  "truncate",
      "sync",           "size",           "link",  "rename",  "remove",
      "make directory", "sync directory", "list",  "look at", "free bytes"};
  return names[static_cast<std::size_t>(operation)];
}

void faulty_file_system::inject(file_fault fault) {
  const std::lock_guard lock(mutex_);
  faults_.push_back({std::move(fault)});
}

bool faulty_file_system::crashed() const {
  const std::lock_guard lock(mutex_);
  return crashed_;
}

bool faulty_file_system::all_injected() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(faults_, &armed::happened);
}

std::vector<std::string> faulty_file_system::operations() const {
  const std::lock_guard lock(mutex_);
  return operations_;
}

faulty_file_system::verdict faulty_file_system::judge(file_operation operation,
                                                      const std::string& path) {
  const std::lock_guard lock(mutex_);
  const std::string doing(name_of(operation));
  const auto injected = [&](int number) {
    error e = to_error({doing, path, number});
    e.message += " (injected)";
    return e;
  };
  if (crashed_) return {injected(EIO)};
  operations_.push_back(fmt::format("{} {}", doing, path));
  verdict v;
  for (armed& a : faults_) {
    const file_fault& f = a.fault;
    if (f.operation && *f.operation != operation) continue;
    if (::fnmatch(f.path_pattern.c_str(), path.c_str(), 0) != 0) continue;
    ++a.seen;
    if (a.seen < f.at || a.seen - f.at >= f.times) continue;
    a.happened = true;
    v.failure = injected(f.error_number);
    const bool is_write = operation == file_operation::write || operation == file_operation::append;
    if (f.kind == fault_kind::crash || f.kind == fault_kind::crash_half_way) crashed_ = true;
    v.half_way =
        f.kind == fault_kind::crash_half_way || (f.kind == fault_kind::fail_half_way && is_write);
  }
  return v;
}

// `call(half)` does the operation, or its first half where it has one.
template <class Result, class Call>
Result faulty_file_system::attempt(file_operation operation, const std::string& path, Call call) {
  const verdict v = judge(operation, path);
  if (!v.failure) return call(false);
  if (v.half_way) (void)call(true);
  return *v.failure;
}

class faulty_file_system::faulty_file final : public file {
 public:
  faulty_file(faulty_file_system& home, std::unique_ptr<file> below)
      : home_(home), below_(std::move(below)) {}

  result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> into) override {
    return home_.attempt<result<std::size_t>>(file_operation::read, path(),
                                              [&](bool) { return below_->read_at(offset, into); });
  }
  status write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    return home_.attempt<status>(file_operation::write, path(), [&](bool half) {
      return below_->write_at(offset, half ? bytes.first(bytes.size() / 2) : bytes);
    });
  }
  status append(std::span<const std::byte> bytes) override {
    return home_.attempt<status>(file_operation::append, path(), [&](bool half) {
      return below_->append(half ? bytes.first(bytes.size() / 2) : bytes);
    });
  }
  status truncate(std::uint64_t size) override {
    return home_.attempt<status>(file_operation::truncate, path(),
                                 [&](bool) { return below_->truncate(size); });
  }
  status sync() override {
    return home_.attempt<status>(file_operation::sync, path(),
                                 [&](bool) { return below_->sync(); });
  }
  result<std::uint64_t> size() override {
    return home_.attempt<result<std::uint64_t>>(file_operation::size, path(),
                                                [&](bool) { return below_->size(); });
  }
  result<bool> only_for_owner() override {
    return home_.attempt<result<bool>>(file_operation::exists, path(),
                                       [&](bool) { return below_->only_for_owner(); });
  }
  const std::string& path() const override { return below_->path(); }

 private:
  faulty_file_system& home_;
  std::unique_ptr<file> below_;
};

result<std::unique_ptr<file>> faulty_file_system::open(const std::string& path, open_mode mode) {
  using opened = result<std::unique_ptr<file>>;
  auto below =
      attempt<opened>(file_operation::open, path, [&](bool) { return below_.open(path, mode); });
  if (!below) return below;
  return std::unique_ptr<file>(std::make_unique<faulty_file>(*this, *std::move(below)));
}

result<bool> faulty_file_system::link(const std::string& from, const std::string& to) {
  return attempt<result<bool>>(file_operation::link, to,
                               [&](bool) { return below_.link(from, to); });
}

status faulty_file_system::rename(const std::string& from, const std::string& to) {
  return attempt<status>(file_operation::rename, to, [&](bool) { return below_.rename(from, to); });
}

status faulty_file_system::remove(const std::string& path) {
  return attempt<status>(file_operation::remove, path, [&](bool) { return below_.remove(path); });
}

result<bool> faulty_file_system::make_directory(const std::string& path) {
  return attempt<result<bool>>(file_operation::make_directory, path,
                               [&](bool) { return below_.make_directory(path); });
}

status faulty_file_system::sync_directory(const std::string& path) {
  return attempt<status>(file_operation::sync_directory, path,
                         [&](bool) { return below_.sync_directory(path); });
}

result<std::vector<directory_entry>> faulty_file_system::list(const std::string& path) {
  return attempt<result<std::vector<directory_entry>>>(file_operation::list, path,
                                                       [&](bool) { return below_.list(path); });
}

result<bool> faulty_file_system::exists(const std::string& path) {
  return attempt<result<bool>>(file_operation::exists, path,
                               [&](bool) { return below_.exists(path); });
}

result<std::uint64_t> faulty_file_system::free_bytes(const std::string& path) {
  return attempt<result<std::uint64_t>>(file_operation::free_bytes, path,
                                        [&](bool) { return below_.free_bytes(path); });
}

}  // namespace troupe
