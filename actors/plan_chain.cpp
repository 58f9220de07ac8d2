#include "actors/plan_chain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>

#include "actors/plan_text.hpp"
#include "config/base/json.hpp"

namespace troupe::actors {
namespace {

using protocol::plan;

constexpr std::uint64_t plan_limit = std::uint64_t{1} << 30;
constexpr std::uint64_t claim_limit = 1 << 16;
constexpr std::size_t room = 1 << 20;  // for the plans of a full disk
constexpr std::string_view room_name = "room-for-a-full-disk";

error cannot_use(std::string message) { return {exit_code::cannot_use, std::move(message)}; }

std::string folder_of(const std::string& run_directory) {
  return join_path(run_directory, "plans");
}

std::string plan_name(std::uint32_t number) { return fmt::format("plan-{:06}", number); }
std::string claim_name(std::uint32_t number) { return fmt::format("claim-{:04}", number); }

// The number in "plan-000012"; nothing for other names, such as those of temporary files.
std::optional<std::uint32_t> number_in(std::string_view name, std::string_view prefix,
                                       std::string (*name_of)(std::uint32_t)) {
  if (!name.starts_with(prefix)) return std::nullopt;
  std::uint32_t number = 0;
  std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
  if (name_of(number) != name) return std::nullopt;
  return number;
}

result<std::optional<std::uint32_t>> highest(file_system& files, const std::string& folder,
                                             std::string_view prefix,
                                             std::string (*name_of)(std::uint32_t)) {
  result<std::vector<directory_entry>> entries = files.list(folder);
  if (!entries) return entries.failure();
  std::optional<std::uint32_t> most;
  for (const directory_entry& e : *entries) {
    const auto number = number_in(e.name, prefix, name_of);
    if (number && (!most || *number > *most)) most = number;
  }
  return most;
}

// Nothing if there is no such file.
result<std::optional<std::string>> read_if_there(file_system& files, const std::string& path,
                                                 std::uint64_t limit) {
  result<bool> there = files.exists(path);
  if (!there) return there.failure();
  if (!*there) return std::optional<std::string>();
  result<std::string> text = read_file(files, path, limit);
  if (!text) return text.failure();
  return std::optional(std::move(*text));
}

// Reads a plan and checks that it belongs where it stands. `parent`: what it has to name.
result<std::optional<chained_plan>> read_plan(file_system& files, const std::string& path,
                                              std::uint32_t number, const std::string& parent,
                                              const std::string& run_id) {
  result<std::optional<std::string>> text = read_if_there(files, path, plan_limit);
  if (!text) return text.failure();
  if (!*text) return std::optional<chained_plan>();
  result<plan> parsed = parse_plan(**text, path);
  if (!parsed) {
    return cannot_use(parsed.failure().message +
                      "; the file was changed after it was published, and the run cannot go on "
                      "from it");
  }
  if (parsed->run_id != run_id) {
    return cannot_use(
        fmt::format("{} is a plan of run {}, but this is run {}; the file was copied "
                    "from another run directory",
                    path, parsed->run_id, run_id));
  }
  if (parsed->number.value != number) {
    return cannot_use(
        fmt::format("{} holds plan {}; the file was renamed", path, parsed->number.value));
  }
  if (parsed->parent != parent) {
    return cannot_use(fmt::format(
        "{} follows a plan with hash {}, but the plan before it has hash {}; one of the two files "
        "was changed after it was published",
        path, parsed->parent.empty() ? "(none)" : parsed->parent,
        parent.empty() ? "(none)" : parent));
  }
  return std::optional(chained_plan{std::move(*parsed), plan_hash(**text)});
}

// One after the other, each checked against the one before; all that a listing shows.
status read_all(file_system& files, const std::string& folder, const std::string& run_id,
                const std::function<void(chained_plan)>& visit) {
  result<bool> there = files.exists(folder);
  if (!there) return there.failure();
  if (!*there) return done{};
  result<std::optional<std::uint32_t>> last = highest(files, folder, "plan-", plan_name);
  if (!last) return last.failure();
  const std::uint64_t count = *last ? std::uint64_t{**last} + 1 : 0;
  std::string parent;
  for (std::uint32_t number = 0; number < count; ++number) {
    const std::string path = join_path(folder, plan_name(number));
    result<std::optional<chained_plan>> read = read_plan(files, path, number, parent, run_id);
    if (!read) return read.failure();
    if (!*read) {
      return cannot_use(
          fmt::format("{} is missing although {} is there; plans must never be "
                      "deleted: put it back, or start a new run",
                      path, plan_name(**last)));
    }
    parent = (*read)->hash;
    visit(std::move(**read));
  }
  return done{};
}

std::string print(const start_claim& c) {
  json_page page;
  page.u64("format", 1)
      .u64("claim", c.number)
      .u64("before_plan", c.before.value)
      .text("run", c.run_id)
      .text("identity", c.identity)
      .text("name", c.name)
      .text("host", c.host)
      .text("address", c.address);
  return page.finish();
}

result<start_claim> parse_claim(std::string_view text, const std::string& path) {
  result<nlohmann::json> parsed = parse_json(text, path);
  if (!parsed) return cannot_use(parsed.failure().message);
  json_fields fields(*parsed, path);
  start_claim c;
  if (fields.u64("format") != 1 && !fields.failed()) fields.fail("format", "is not 1");
  const std::uint64_t number = fields.u64("claim"), before = fields.u64("before_plan");
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  if (number > most) fields.fail("claim", "is too large");
  if (before > most) fields.fail("before_plan", "is too large");
  c.number = static_cast<std::uint32_t>(number);
  c.before = generation(static_cast<std::uint32_t>(before));
  c.run_id = fields.text("run");
  c.identity = fields.text("identity");
  c.name = fields.text("name");
  c.host = fields.text("host");
  c.address = fields.text("address");
  if (status whole = fields.finish(); !whole) return cannot_use(whole.failure().message);
  return c;
}

}  // namespace

result<plan_chain> plan_chain::open(file_system& files, const std::string& run_directory,
                                    std::string run_id) {
  plan_chain chain(files, folder_of(run_directory), std::move(run_id));
  if (status made = make_directories(files, chain.folder_); !made) return made.failure();
  const status all = read_all(files, chain.folder_, chain.run_id_,
                              [&](chained_plan next) { chain.head_ = std::move(next); });
  if (!all) return all.failure();
  if (result<bool> later = chain.read_on(); !later) return later.failure();
  if (status durable = files.sync_directory(chain.folder_); !durable) return durable.failure();
  (void)chain.keep_room();  // a disk that is full already must not keep a run from going on
  return chain;
}

std::string plan_chain::path_of(generation number) const {
  return join_path(folder_, plan_name(number.value));
}
std::string plan_chain::claim_path(std::uint32_t number) const {
  return join_path(folder_, claim_name(number));
}

generation plan_chain::next_number() const {
  return generation(head_ ? head_->plan.number.value + 1 : 0);
}

result<std::optional<chained_plan>> plan_chain::read(generation number) const {
  return read_plan(*files_, path_of(number), number.value, head_hash(), run_id_);
}

// By name and not by listing: some file systems show new names in a listing late.
result<bool> plan_chain::read_on() {
  bool found = false;
  for (;; found = true) {
    result<std::optional<chained_plan>> next = read(next_number());
    if (!next) return next.failure();
    if (!*next) return found;
    head_ = std::move(*next);
  }
}

result<bool> plan_chain::refresh() {
  const std::optional<chained_plan> before = head_;
  result<bool> found = read_on();
  status durable = done{};
  if (found && *found) durable = files_->sync_directory(folder_);
  if (!found || !durable) head_ = before;  // nobody may act on what might be gone again
  if (!durable) return durable.failure();
  return found;
}

result<plan_chain::outcome> plan_chain::publish(const plan& next) {
  ensure(next.run_id == run_id_, "a plan was to be published in another run's chain");
  ensure(next.number == next_number() && next.parent == head_hash(),
         "a plan was to be published that does not follow the chain's head");
  const std::string path = path_of(next.number);
  const std::string text = print_plan(next);
  result<publish_outcome> said = troupe::publish(*files_, path, text);
  if (!said) {
    // It may stand there all the same. If not, the room that was kept may be what is lacking.
    result<bool> there = files_->exists(path);
    if (there && !*there) {
      (void)files_->remove(join_path(folder_, room_name));
      said = troupe::publish(*files_, path, text);
      (void)keep_room();
    }
  }
  result<std::optional<chained_plan>> stands = read(next.number);
  if (!stands) return stands.failure();
  if (!*stands) {
    if (!said) return said.failure();
    return error{exit_code::io,
                 fmt::format("{} was published but cannot be found; the run directory must be on a "
                             "file system that shows new files at once",
                             path)};
  }
  if (status durable = files_->sync_directory(folder_); !durable) return durable.failure();
  const bool mine = (*stands)->hash == plan_hash(text);
  head_ = std::move(*stands);
  return mine ? outcome::mine : outcome::lost;
}

// Blocks that a full disk cannot take: given back when a plan has to be written.
status plan_chain::keep_room() {
  const std::string path = join_path(folder_, room_name);
  result<bool> there = files_->exists(path);
  if (!there) return there.failure();
  if (*there) return done{};
  result<std::unique_ptr<file>> out = files_->open(path, open_mode::create);
  if (!out) return out.failure();
  const std::vector<std::byte> zeros(room);
  status written = (*out)->write_at(0, zeros);
  if (written) written = (*out)->sync();
  if (!written) (void)files_->remove(path);  // half of it would only be in the way
  return written;
}

result<std::optional<start_claim>> plan_chain::read_claim(std::uint32_t number) const {
  const std::string path = claim_path(number);
  result<std::optional<std::string>> text = read_if_there(*files_, path, claim_limit);
  if (!text) return text.failure();
  if (!*text) return std::optional<start_claim>();
  result<start_claim> read = parse_claim(**text, path);
  if (!read) return read.failure();
  if (read->run_id != run_id_ || read->number != number) {
    return cannot_use(
        fmt::format("{} holds claim {} of run {}, but this is run {}; the file was "
                    "copied or renamed",
                    path, read->number, read->run_id, run_id_));
  }
  return std::optional(std::move(*read));
}

result<std::uint32_t> plan_chain::next_claim() {
  result<std::optional<std::uint32_t>> last = highest(*files_, folder_, "claim-", claim_name);
  if (!last) return last.failure();
  return *last ? **last + 1 : 0;
}

result<std::optional<start_claim>> plan_chain::present_claim() {
  result<std::uint32_t> next = next_claim();
  if (!next) return next.failure();
  if (*next == 0) return std::optional<start_claim>();
  result<std::optional<start_claim>> last = read_claim(*next - 1);
  if (!last) return last.failure();
  if (*last && (*last)->before < next_number()) return std::optional<start_claim>();
  return last;
}

result<start_claim> plan_chain::claim(start_claim mine) {
  result<std::uint32_t> next = next_claim();
  if (!next) return next.failure();
  mine.run_id = run_id_;
  mine.before = next_number();
  for (mine.number = *next;; ++mine.number) {
    const std::string path = claim_path(mine.number);
    result<publish_outcome> said = troupe::publish(*files_, path, print(mine));
    result<std::optional<start_claim>> stands = read_claim(mine.number);
    if (!stands) return stands.failure();
    if (!*stands) {
      if (!said) return said.failure();
      return error{exit_code::io, fmt::format("{} was published but cannot be found", path)};
    }
    if ((*stands)->before < mine.before) continue;  // of an earlier start; the listing was late
    if (status durable = files_->sync_directory(folder_); !durable) return durable.failure();
    return std::move(**stands);
  }
}

result<std::vector<chained_plan>> read_plans(file_system& files, const std::string& run_directory,
                                             const std::string& run_id) {
  std::vector<chained_plan> all;
  const status read = read_all(files, folder_of(run_directory), run_id,
                               [&](chained_plan next) { all.push_back(std::move(next)); });
  if (!read) return read.failure();
  return all;
}

}  // namespace troupe::actors
