#include "actors/cli/worker_wish.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "actors/plan_chain.hpp"

namespace troupe::actors::cli {
namespace {

result<std::string> free_name(file_system& files, const run_directory& run) {
  const auto plans = read_plans(files, run.path(), run.run_id());
  if (!plans) return plans.failure();
  for (std::uint32_t slot = 0;; ++slot) {
    std::string name = name_of_slot(slot);
    const bool taken =
        !plans->empty() && std::ranges::any_of(plans->back().plan.members,
                                               [&](const auto& m) { return m.name == name; });
    if (!taken) return name;
  }
}

}  // namespace

std::string name_of_slot(std::uint32_t slot) { return fmt::format("worker-{}", slot); }

std::optional<std::uint32_t> slot_of(const std::string& name) {
  constexpr std::string_view stem = "worker-";
  if (!name.starts_with(stem)) return std::nullopt;
  std::uint32_t slot = 0;
  std::from_chars(name.data() + stem.size(), name.data() + name.size(), slot);
  if (name != name_of_slot(slot)) return std::nullopt;  // "worker-", "worker-03", "worker-3x"
  return slot;
}

status worker_wish::check() const {
  if (name.empty()) return done{};
  const std::optional<std::uint32_t> slot = slot_of(name);
  // Whoever joins may be more than there were at the start.
  const bool any = !world && (joins || lock_fd < 0);
  if (slot && (any || *slot < world.value_or(1))) return done{};
  if (any) {
    return error{exit_code::usage,
                 fmt::format("--name {}: a worker is called worker-0, worker-1, ...", name)};
  }
  return error{exit_code::usage,
               fmt::format("--name {}: a worker of a world of {} is called worker-0 to worker-{}",
                           name, world.value_or(1), world.value_or(1) - 1)};
}

result<run_directory> worker_wish::enter(file_system& files, const std::string& path,
                                         const clock_source& clock) const {
  if (lock_fd >= 0) return run_directory::join(files, path, clock, lock_fd);
  const bool may_begin = !joins && (name.empty() || slot_of(name) == 0U);
  return may_begin ? run_directory::claim_or_open(files, path, clock)
                   : run_directory::open(files, path);
}

result<place_in_world> worker_wish::place_in(file_system& files, const run_directory& run) const {
  place_in_world place;
  // Whoever says how many start together is one of them, with or without a lock.
  place.joins = joins || (!world && run.lock_fd() < 0);
  if (!name.empty()) {
    place.name = name;
  } else if (place.joins) {
    result<std::string> free = free_name(files, run);
    if (!free) return free.failure();
    place.name = *free;
  }
  place.slot = *slot_of(place.name);
  place.expected = world.value_or(1);
  return place;
}

}  // namespace troupe::actors::cli
