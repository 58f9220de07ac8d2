#include "actors/run_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <thread>

#include "actors/machine.hpp"
#include "config/base/json.hpp"

namespace troupe::actors {
namespace {

constexpr std::uint64_t small_file_limit = 1 << 20;

error cannot_use(std::string message) { return {exit_code::cannot_use, std::move(message)}; }

std::string new_run_id() {
  std::array<unsigned char, 8> bytes{};
  ensure(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
         "the system gave no random bytes for a run id");
  std::string id;
  for (unsigned char b : bytes) id += fmt::format("{:02x}", b);
  return id;
}

result<std::string> read_run_id(file_system& files, const std::string& path) {
  result<std::string> text = read_file(files, path, small_file_limit);
  if (!text) return text.failure();
  result<nlohmann::json> parsed = parse_json(*text, path);
  if (!parsed) return cannot_use(parsed.failure().message);
  json_fields fields(*parsed, path);
  std::string id = fields.text("run");
  fields.text("started");
  fields.text("host");
  fields.u64("user");
  fields.u64("format");
  if (status whole = fields.finish(); !whole) return cannot_use(whole.failure().message);
  return id;
}

}  // namespace

struct run_directory::lock {
  int fd = -1;
  ~lock() {
    if (fd >= 0) close(fd);
  }
};

result<int> holder_of(const std::string& path) {
  const std::string name = join_path(path, "lock");
  const int fd = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return 0;
    return cannot_use(fmt::format("cannot open {}: {}", name, std::strerror(errno)));
  }
  int pid = 0;
  if (flock(fd, LOCK_SH | LOCK_NB) != 0) {
    std::array<char, 32> text{};
    const ssize_t got = pread(fd, text.data(), text.size(), 0);
    if (got > 0) std::from_chars(text.data(), text.data() + got, pid);
    if (pid == 0) pid = -1;  // held, and whoever holds it has not said its number yet
  }
  close(fd);
  return pid;
}

bool holds_lock(int process, const std::string& path) {
  struct stat lock {};
  if (stat(join_path(path, "lock").c_str(), &lock) != 0) return false;
  std::error_code trouble;
  const std::filesystem::path files = fmt::format("/proc/{}/fd", process);
  for (const auto& open : std::filesystem::directory_iterator(files, trouble)) {
    struct stat facts {};
    if (stat(open.path().c_str(), &facts) == 0 && facts.st_ino == lock.st_ino &&
        facts.st_dev == lock.st_dev) {
      return true;
    }
  }
  return false;
}

status run_directory::take(const lock& l, const std::string& path, const lock_patience& patience) {
  constexpr std::chrono::milliseconds nap{20};  // the system's own wait for a lock has no end
  for (std::chrono::milliseconds waited{0};; waited += nap) {
    if (flock(l.fd, LOCK_EX | LOCK_NB) == 0) return done{};
    const result<int> holder = holder_of(path);
    const std::string who = holder && *holder > 0 ? fmt::format("{}", *holder) : "another";
    // Only workers that a launcher has left behind are about to end.
    if (waited >= patience.limit || (holder && *holder > 0 && holds_lock(*holder, path))) {
      return cannot_use(fmt::format(
          "{} is in use by process {} on this machine; stop it with `troupe stop {}` or "
          "choose another with --run-dir",
          path, who, path));
    }
    if (waited.count() == 0 && patience.say) {
      patience.say(
          fmt::format("{} is still in use by process {} or workers that it has left; "
                      "waiting up to {:.0f} s for their end",
                      path, who, std::chrono::duration<double>(patience.limit).count()));
    }
    std::this_thread::sleep_for(nap);
  }
}

result<run_directory> run_directory::claim(file_system& files, const std::string& path,
                                           const clock_source& clock,
                                           const lock_patience& patience) {
  run_directory run;
  run.path_ = path;
  if (status made = make_directories(files, path); !made) {
    return cannot_use(
        fmt::format("the run directory cannot be made: {}; choose another with --run-dir",
                    made.failure().message));
  }
  result<std::vector<directory_entry>> entries = files.list(path);
  if (!entries) return cannot_use(entries.failure().message);
  bool ours = entries->empty();
  for (const directory_entry& e : *entries) ours |= e.name == "run.json" || e.name == "lock";
  if (!ours) {
    return cannot_use(
        fmt::format("{} is not a run directory: it holds {} but no run.json; choose another with "
                    "--run-dir",
                    path, entries->front().name));
  }

  run.lock_ = std::make_shared<lock>();
  const std::string lock_name = run.file("lock");
  // No O_CLOEXEC: the worker inherits the lock, so the directory stays taken while any of the two
  // lives.
  run.lock_->fd = ::open(lock_name.c_str(), O_RDWR | O_CREAT, 0644);
  if (run.lock_->fd < 0) {
    return cannot_use(
        fmt::format("the run directory is not writable: cannot open {}: {}; choose another with "
                    "--run-dir",
                    lock_name, std::strerror(errno)));
  }
  if (status taken = take(*run.lock_, path, patience); !taken) return taken.failure();
  const std::string pid = fmt::format("{}\n", getpid());
  if (ftruncate(run.lock_->fd, 0) != 0 ||
      pwrite(run.lock_->fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return cannot_use(fmt::format("cannot write {}: {}", lock_name, std::strerror(errno)));
  }

  result<bool> known = files.exists(run.file("run.json"));
  if (!known) return known.failure();
  run.is_new_ = !*known;
  if (run.is_new_) {
    json_page page;
    page.u64("format", 1)
        .text("run", new_run_id())
        .text("started", iso_8601(clock.wall()))
        .text("host", host_name())
        .u64("user", getuid());
    result<publish_outcome> written = publish(files, run.file("run.json"), page.finish());
    if (!written) return cannot_use(written.failure().message);
  }
  result<std::string> id = read_run_id(files, run.file("run.json"));
  if (!id) return id.failure();
  run.run_id_ = *id;
  for (const char* folder : {"checkpoints", "logs"}) {
    if (status made = make_directories(files, run.file(folder)); !made) return made.failure();
  }
  return run;
}

result<run_directory> run_directory::claim_or_open(file_system& files, const std::string& path,
                                                   const clock_source& clock) {
  result<run_directory> mine = claim(files, path, clock);
  if (mine) return mine;
  const result<int> holder = holder_of(path);
  if (holder && *holder != 0) return open(files, path);
  return claim(files, path, clock);  // whoever held it has just ended, or the same failure again
}

int run_directory::lock_fd() const { return lock_ ? lock_->fd : -1; }

result<run_directory> run_directory::join(file_system& files, const std::string& path,
                                          const clock_source& clock, int inherited_lock) {
  struct stat held {
  }, named{};
  const bool is_ours = inherited_lock >= 0 && fstat(inherited_lock, &held) == 0 &&
                       stat(join_path(path, "lock").c_str(), &named) == 0 &&
                       held.st_dev == named.st_dev && held.st_ino == named.st_ino &&
                       flock(inherited_lock, LOCK_EX | LOCK_NB) == 0;
  if (!is_ours) return claim(files, path, clock);
  result<run_directory> run = open(files, path);
  if (!run) return run;
  run->lock_ = std::make_shared<lock>();
  run->lock_->fd = inherited_lock;
  return run;
}

result<run_directory> run_directory::open(file_system& files, const std::string& path) {
  run_directory run;
  run.path_ = path;
  result<bool> known = files.exists(run.file("run.json"));
  if (!known) return known.failure();
  if (!*known) {
    return cannot_use(fmt::format("{} is not a run directory: it has no run.json", path));
  }
  result<std::string> id = read_run_id(files, run.file("run.json"));
  if (!id) return id.failure();
  run.run_id_ = *id;
  return run;
}

status run_directory::write_config(file_system& files, const std::string& toml) const {
  const std::string name = file("config.toml");
  result<bool> known = files.exists(name);
  if (!known) return known.failure();
  if (*known) {
    result<std::string> old = read_file(files, name, small_file_limit);
    if (!old) return old.failure();
    if (*old == toml) return done{};
    for (int version = 1;; ++version) {
      result<publish_outcome> kept =
          publish(files, file(fmt::format("config.{}.toml", version)), *old);
      if (!kept) return kept.failure();
      if (*kept == publish_outcome::published) break;
    }
  }
  return replace(files, name, toml);
}

}  // namespace troupe::actors
