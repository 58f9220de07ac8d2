#include "config/base/memory_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

namespace troupe {
namespace {

constexpr std::size_t page_bytes = 4096;

error failure(const char* doing, const std::string& path, int number) {
  return to_error({doing, path, number});
}

struct coin {  // splitmix64
  std::uint64_t state;
  std::uint64_t operator()() {
    std::uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
};

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string name = path.substr(at, end - at);
    if (!name.empty() && name != ".") names.push_back(name);
    at = end + 1;
  }
  return names;
}

using content = std::vector<std::byte>;

// What a power cut leaves of a file whose durable content was `before` and was written to be
// `after`: any size between, and each page old, new, or new only in its first part.
content torn(const content& before, const content& after, coin& next) {
  const std::size_t sizes[] = {before.size(), after.size(), (before.size() + after.size()) / 2};
  content left(sizes[next() % 3]);
  for (std::size_t at = 0; at < left.size(); at += page_bytes) {
    const std::size_t end = std::min(at + page_bytes, left.size());
    const std::uint64_t what = next() % 3;
    std::size_t from_new = what == 0 ? at : what == 1 ? end : at + next() % (end - at);
    for (std::size_t i = at; i < end; ++i) {
      const content& source = i < from_new ? after : before;
      left[i] = i < source.size() ? source[i] : std::byte{0};
    }
  }
  return left;
}

}  // namespace

struct memory_file_system::node {
  bool is_directory = false;
  bool only_for_owner = false;
  content bytes, durable_bytes;
  std::map<std::string, node_ptr> names, durable_names;
};

struct memory_file_system::place {
  node_ptr directory;  // null: does not exist
  std::string name;
  node_ptr target;  // null: no such name
};

class memory_file_system::open_file final : public file {
 public:
  open_file(memory_file_system& home, node_ptr at, std::string path, open_mode mode)
      : home_(home), node_(std::move(at)), path_(std::move(path)), mode_(mode) {}

  result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> into) override {
    const std::lock_guard lock(home_.mutex_);
    if (offset >= node_->bytes.size()) return std::size_t{0};
    const std::size_t count = std::min<std::size_t>(into.size(), node_->bytes.size() - offset);
    if (count > 0) std::memcpy(into.data(), node_->bytes.data() + offset, count);
    return count;
  }
  status write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(home_.mutex_);
    if (mode_ == open_mode::read) return failure("write", path_, EBADF);
    return home_.write(*node_, path_, offset, bytes);
  }
  status append(std::span<const std::byte> bytes) override {
    const std::lock_guard lock(home_.mutex_);
    if (mode_ == open_mode::read) return failure("write", path_, EBADF);
    return home_.write(*node_, path_, node_->bytes.size(), bytes);
  }
  status truncate(std::uint64_t size) override {
    const std::lock_guard lock(home_.mutex_);
    if (mode_ == open_mode::read) return failure("truncate", path_, EBADF);
    node_->bytes.resize(size);
    return done{};
  }
  status sync() override {
    const std::lock_guard lock(home_.mutex_);
    node_->durable_bytes = node_->bytes;
    return done{};
  }
  result<std::uint64_t> size() override {
    const std::lock_guard lock(home_.mutex_);
    return std::uint64_t{node_->bytes.size()};
  }
  result<bool> only_for_owner() override {
    const std::lock_guard lock(home_.mutex_);
    return node_->only_for_owner;
  }
  const std::string& path() const override { return path_; }

 private:
  memory_file_system& home_;
  node_ptr node_;
  std::string path_;
  open_mode mode_;
};

memory_file_system::memory_file_system() : root_(std::make_shared<node>()) {
  root_->is_directory = true;
}
memory_file_system::~memory_file_system() = default;

void memory_file_system::set_capacity(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  capacity_ = bytes;
}

std::uint64_t memory_file_system::used_bytes() const {
  std::uint64_t total = 0;
  std::set<const node*> seen;
  std::vector<const node*> open{root_.get()};
  while (!open.empty()) {
    const node* at = open.back();
    open.pop_back();
    if (!seen.insert(at).second) continue;
    total += at->bytes.size();
    for (const auto& [name, child] : at->names) open.push_back(child.get());
  }
  return total;
}

status memory_file_system::write(node& at, const std::string& path, std::uint64_t offset,
                                 std::span<const std::byte> bytes) {
  const std::uint64_t end = offset + bytes.size();
  const std::uint64_t growth = end > at.bytes.size() ? end - at.bytes.size() : 0;
  const std::uint64_t used = used_bytes();
  const std::uint64_t room = capacity_ > used ? capacity_ - used : 0;
  const std::uint64_t missing = growth > room ? growth - room : 0;
  const auto fits = bytes.first(bytes.size() - std::min<std::uint64_t>(missing, bytes.size()));
  if (!fits.empty()) {
    if (offset + fits.size() > at.bytes.size()) at.bytes.resize(offset + fits.size());
    std::memcpy(at.bytes.data() + offset, fits.data(), fits.size());
  }
  if (missing == 0) return done{};
  return to_error({"write", path, ENOSPC, bytes.size() - fits.size(), std::uint64_t{0}});
}

memory_file_system::node_ptr memory_file_system::find(const std::string& path) const {
  node_ptr at = root_;
  for (const std::string& name : names_in(path)) {
    if (!at->is_directory) return nullptr;
    const auto found = at->names.find(name);
    if (found == at->names.end()) return nullptr;
    at = found->second;
  }
  return at;
}

memory_file_system::place memory_file_system::find_place(const std::string& path) const {
  auto names = names_in(path);
  if (names.empty()) return {};
  place p;
  p.name = names.back();
  p.directory = find(parent_path(path));
  if (!p.directory || !p.directory->is_directory) return {};
  if (const auto found = p.directory->names.find(p.name); found != p.directory->names.end()) {
    p.target = found->second;
  }
  return p;
}

void memory_file_system::apply(change what) {
  for (const entry_change& e : what) {
    if (e.target) {
      e.directory->names[e.name] = e.target;
    } else {
      e.directory->names.erase(e.name);
    }
  }
  unsynced_.push_back(std::move(what));
}

result<std::unique_ptr<file>> memory_file_system::open(const std::string& path, open_mode mode) {
  const std::lock_guard lock(mutex_);
  place p = find_place(path);
  const bool may_create = mode != open_mode::read && mode != open_mode::update;
  if (!p.directory || (!p.target && !may_create)) return failure("open", path, ENOENT);
  const bool creates = mode == open_mode::create || mode == open_mode::create_private;
  if (p.target && creates) return failure("create", path, EEXIST);
  if (p.target && p.target->is_directory) return failure("open", path, EISDIR);
  if (!p.target) {
    p.target = std::make_shared<node>();
    p.target->only_for_owner = mode == open_mode::create_private;
    apply({{p.directory, p.name, p.target}});
  }
  if (mode == open_mode::truncate) p.target->bytes.clear();
  return std::unique_ptr<file>(std::make_unique<open_file>(*this, p.target, path, mode));
}

result<bool> memory_file_system::link(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  const node_ptr source = find(from);
  const place p = find_place(to);
  if (!source || !p.directory) return failure("publish", to, ENOENT);
  if (source->is_directory) return failure("publish", to, EPERM);
  if (p.target) return false;
  apply({{p.directory, p.name, source}});
  return true;
}

status memory_file_system::rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  const place source = find_place(from), target = find_place(to);
  if (!source.target || !target.directory) return failure("rename", from + " to " + to, ENOENT);
  if (target.target) {
    if (target.target->is_directory && !target.target->names.empty()) {
      return failure("rename", from + " to " + to, ENOTEMPTY);
    }
    if (target.target->is_directory != source.target->is_directory) {
      return failure("rename", from + " to " + to, target.target->is_directory ? EISDIR : ENOTDIR);
    }
  }
  if (source.target == target.target) return done{};
  apply({{target.directory, target.name, source.target}, {source.directory, source.name, nullptr}});
  return done{};
}

status memory_file_system::remove(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const place p = find_place(path);
  if (!p.target) return failure("remove", path, ENOENT);
  if (p.target->is_directory && !p.target->names.empty()) return failure("remove", path, ENOTEMPTY);
  apply({{p.directory, p.name, nullptr}});
  return done{};
}

result<bool> memory_file_system::make_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (names_in(path).empty()) return false;
  const place p = find_place(path);
  if (!p.directory) return failure("make directory", path, ENOENT);
  if (p.target && !p.target->is_directory) return failure("make directory", path, ENOTDIR);
  if (p.target) return false;
  auto made = std::make_shared<node>();
  made->is_directory = true;
  apply({{p.directory, p.name, made}});
  return true;
}

status memory_file_system::sync_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const node_ptr at = find(path);
  if (!at || !at->is_directory) return failure("sync directory", path, at ? ENOTDIR : ENOENT);
  std::vector<change> rest;
  for (change& c : unsynced_) {
    if (std::ranges::none_of(c, [&](const entry_change& e) { return e.directory == at; })) {
      rest.push_back(std::move(c));
      continue;
    }
    for (entry_change& e : c) {
      if (e.target) {
        e.directory->durable_names[e.name] = e.target;
      } else {
        e.directory->durable_names.erase(e.name);
      }
    }
  }
  unsynced_ = std::move(rest);
  return done{};
}

result<std::vector<directory_entry>> memory_file_system::list(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const node_ptr at = find(path);
  if (!at || !at->is_directory) return failure("list", path, at ? ENOTDIR : ENOENT);
  std::vector<directory_entry> entries;
  for (const auto& [name, child] : at->names) entries.push_back({name, child->is_directory});
  return entries;
}

result<bool> memory_file_system::exists(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return find(path) != nullptr;
}

result<std::uint64_t> memory_file_system::free_bytes(const std::string&) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t used = used_bytes();
  return capacity_ > used ? capacity_ - used : std::uint64_t{0};
}

void memory_file_system::power_loss(std::uint64_t seed) {
  const std::lock_guard lock(mutex_);
  coin next{seed};
  for (change& c : unsynced_) {
    if (seed == 0 || (seed != 1 && next() % 2 == 0)) continue;
    for (entry_change& e : c) {
      if (e.target) {
        e.directory->durable_names[e.name] = e.target;
      } else {
        e.directory->durable_names.erase(e.name);
      }
    }
  }
  unsynced_.clear();
  std::set<node*> seen;
  std::vector<node*> open{root_.get()};
  while (!open.empty()) {
    node* at = open.back();
    open.pop_back();
    if (!seen.insert(at).second) continue;
    if (seed == 0) at->bytes = at->durable_bytes;
    if (seed > 1) at->bytes = torn(at->durable_bytes, at->bytes, next);
    at->durable_bytes = at->bytes;
    at->names = at->durable_names;
    for (const auto& [name, child] : at->names) open.push_back(child.get());
  }
}

}  // namespace troupe
