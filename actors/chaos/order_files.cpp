#include "actors/chaos/order_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <utility>

namespace troupe::actors::chaos {
namespace {

constexpr std::size_t counter_bytes = sizeof(std::uint64_t);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

std::string order_stem(std::string_view name, incarnation life) {
  return fmt::format("{}.{}", name, life.value);
}

result<mapped_counter> mapped_counter::create(const std::string& path) { return map(path, true); }
result<mapped_counter> mapped_counter::open(const std::string& path) { return map(path, false); }

result<mapped_counter> mapped_counter::map(const std::string& path, bool anew) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | (anew ? O_CREAT | O_EXCL : 0), 0600);
  if (fd < 0) return to_error({.doing = "open", .path = path, .error_number = errno});
  void* at = MAP_FAILED;
  struct stat seen {};
  const bool whole = anew ? ftruncate(fd, counter_bytes) == 0
                          : fstat(fd, &seen) == 0 && seen.st_size == counter_bytes;
  if (!whole && !anew) errno = EAGAIN;  // its owner is just making it
  if (whole) {
    at = mmap(nullptr, counter_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  const int trouble = errno;
  close(fd);
  if (at == MAP_FAILED) return to_error({.doing = "map", .path = path, .error_number = trouble});
  return mapped_counter(static_cast<std::atomic<std::uint64_t>*>(at));
}

mapped_counter::~mapped_counter() {
  if (value_ != nullptr) munmap(value_, counter_bytes);
}
mapped_counter::mapped_counter(mapped_counter&& other) noexcept
    : value_(std::exchange(other.value_, nullptr)) {}
mapped_counter& mapped_counter::operator=(mapped_counter&& other) noexcept {
  std::swap(value_, other.value_);
  return *this;
}

result<order_inbox> order_inbox::open(file_system& files, const std::string& folder,
                                      std::string_view name, incarnation life) {
  if (status made = make_directories(files, folder); !made) return made.failure();
  const std::string stem = join_path(folder, order_stem(name, life));
  for (const char* what : {".orders", ".proofs"}) {
    auto made = files.open(stem + what, open_mode::append);
    if (!made) return made.failure();
  }
  auto proofs = files.open(stem + ".proofs", open_mode::append);
  if (!proofs) return proofs.failure();
  // Last: who sees it finds the others.
  result<mapped_counter> bell = mapped_counter::create(stem + ".bell");
  if (!bell) return bell.failure();
  return order_inbox(files, std::move(*bell), stem + ".orders", std::move(*proofs));
}

std::vector<worker_order> order_inbox::take() {
  const std::uint64_t now = bell_.peek();
  if (now == heard_) return {};
  std::atomic_thread_fence(std::memory_order_acquire);
  heard_ = now;
  std::vector<worker_order> orders;
  for (const std::string& line : lines_.new_lines()) {
    result<worker_order> o = parse_order(line, path_);
    if (o) {
      orders.push_back(std::move(*o));
    } else {
      prove({0, proof::kind::failed, 0, "", {}, o.failure().message});
    }
  }
  return orders;
}

// A proof that cannot be written is none, and its fault did not happen: that is the right answer.
void order_inbox::prove(const proof& p) { (void)proofs_->append(bytes_of(to_line(p))); }

result<order_outbox> order_outbox::open(file_system& files, const std::string& folder,
                                        std::string_view name, incarnation life) {
  const std::string stem = join_path(folder, order_stem(name, life));
  result<mapped_counter> bell = mapped_counter::open(stem + ".bell");
  if (!bell) return bell.failure();
  auto orders = files.open(stem + ".orders", open_mode::append);
  if (!orders) return orders.failure();
  return order_outbox(files, std::move(*bell), std::move(*orders), stem + ".proofs");
}

status order_outbox::give(const worker_order& o) {
  if (status written = orders_->append(bytes_of(to_line(o))); !written) return written;
  bell_.add_one();
  return done{};
}

std::vector<proof> order_outbox::take_proofs() {
  std::vector<proof> all;
  for (const std::string& line : proofs_.new_lines()) {
    result<proof> p = parse_proof(line, path_);
    if (p) all.push_back(std::move(*p));
  }
  return all;
}

}  // namespace troupe::actors::chaos
