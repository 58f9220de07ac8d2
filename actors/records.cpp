#include "actors/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <type_traits>

namespace troupe::actors {
namespace {

constexpr std::uint64_t log_limit = std::uint64_t{4} << 30;

bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (a != a && b != b);
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string print(const step_record& r) {
  json_line line;
  line.u64("step", r.step)
      .number("loss", r.loss)
      .number("grad_norm", r.grad_norm)
      .number("lr", r.lr)
      .u64("tokens", r.tokens)
      .u64("world", r.world)
      .u64("generation", r.generation)
      .boolean("skipped", r.skipped)
      .number("seconds", r.seconds);
  if (r.mono >= 0) line.number("mono", r.mono);
  return line.finish();
}

// A line just as print() writes it, all numbers finite. A coordinator that takes over reads them
// all while the run stands still, and this is more than ten times as fast as a general reader.
class own_line {
 public:
  explicit own_line(std::string_view line) : rest_(line) {}
  std::optional<step_record> read() {
    step_record r;
    bool ok = word("{\"step\":") && number(r.step) && word(",\"loss\":") && number(r.loss) &&
              word(",\"grad_norm\":") && number(r.grad_norm) && word(",\"lr\":") && number(r.lr) &&
              word(",\"tokens\":") && number(r.tokens) && word(",\"world\":") && number(r.world) &&
              word(",\"generation\":") && number(r.generation) && word(",\"skipped\":");
    if (!ok) return std::nullopt;
    r.skipped = word("true");
    ok = (r.skipped || word("false")) && word(",\"seconds\":") && number(r.seconds);
    if (ok && word(",\"mono\":")) ok = number(r.mono) && r.mono >= 0;
    ok = ok && rest_ == "}";
    return ok ? std::optional(r) : std::nullopt;
  }

 private:
  bool word(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  // from_chars takes "inf" and "nan" as well, which are no JSON.
  template <class T>
  bool number(T& value) {
    if (rest_.empty() || (rest_[0] != '-' && (rest_[0] < '0' || rest_[0] > '9'))) return false;
    const auto [end, trouble] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (trouble != std::errc{}) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    if constexpr (std::is_floating_point_v<T>) return std::isfinite(value);
    return true;
  }

  std::string_view rest_;
};

result<step_record> parse(std::string_view line, const std::string& where) {
  result<nlohmann::json> parsed = parse_json(line, where);
  if (!parsed) return parsed.failure();
  json_fields fields(*parsed, where);
  step_record r;
  r.step = fields.u64("step");
  r.loss = fields.number("loss");
  r.grad_norm = fields.number("grad_norm");
  r.lr = fields.number("lr");
  r.tokens = fields.u64("tokens");
  r.world = fields.u64("world");
  r.generation = fields.u64("generation");
  r.skipped = fields.boolean("skipped");
  r.seconds = fields.number("seconds");
  if (fields.has("mono")) r.mono = fields.number("mono");
  if (status whole = fields.finish(); !whole) return whole.failure();
  return r;
}

struct parsed_steps {
  std::vector<step_record> records;
  std::uint64_t whole_bytes = 0;  // up to the end of the last whole line
};

// Lines of the steps that follow on `before`.
result<parsed_steps> parse_all(const std::string& text, const std::string& path,
                               std::uint64_t before = 0) {
  parsed_steps steps;
  std::size_t at = 0;
  for (std::size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string_view line = std::string_view(text).substr(at, end - at);
    const std::uint64_t next = before + steps.records.size() + 1;
    const std::optional<step_record> own = own_line(line).read();
    if (own && own->step == next) {
      steps.records.push_back(*own);
      steps.whole_bytes = end + 1;
      continue;
    }
    const std::string where = fmt::format("{}:{}", path, next);
    result<step_record> record = parse(line, where);
    if (!record) return record.failure();
    if (record->step != next) {
      return error{
          exit_code::cannot_use,
          fmt::format(
              "{} holds step {}, but step {} comes next there; the file was changed by hand or "
              "belongs to another run",
              where, record->step, next)};
    }
    steps.records.push_back(*record);
    steps.whole_bytes = end + 1;
  }
  return steps;
}

// Opens for appending and cuts off what a crash left behind the last newline. The name is durable
// from here on: a checkpoint whose steps.jsonl was lost with its machine could not be resumed.
result<std::unique_ptr<file>> open_repaired(file_system& files, const std::string& path,
                                            std::uint64_t whole_bytes) {
  result<std::unique_ptr<file>> opened = files.open(path, open_mode::append);
  if (!opened) return opened.failure();
  result<std::uint64_t> size = (*opened)->size();
  if (!size) return size.failure();
  if (*size > whole_bytes) {
    if (status cut = (*opened)->truncate(whole_bytes); !cut) return cut.failure();
  }
  if (status named = files.sync_directory(parent_path(path)); !named) return named.failure();
  return opened;
}

result<bool> ends_at(file& opened, std::uint64_t whole_bytes) {
  result<std::uint64_t> size = opened.size();
  if (!size) return size.failure();
  return *size == whole_bytes;
}

result<std::string> read_if_there(file_system& files, const std::string& path) {
  result<bool> there = files.exists(path);
  if (!there) return there.failure();
  if (!*there) return std::string();
  return read_file(files, path, log_limit);
}

// The first of the fields that the bits decide in which the two differ, "" if there is none.
std::string difference(const step_record& a, const step_record& b) {
  if (!same(a.loss, b.loss)) return "loss";
  if (!same(a.grad_norm, b.grad_norm)) return "grad_norm";
  if (!same(a.lr, b.lr)) return "lr";
  if (a.tokens != b.tokens) return "tokens";
  return a.skipped != b.skipped ? "skipped" : "";
}

}  // namespace

bool step_record::same_bits(const step_record& o) const {
  return step == o.step && difference(*this, o).empty();
}

result<std::vector<step_record>> read_steps(file_system& files, const std::string& path) {
  result<std::string> text = read_if_there(files, path);
  if (!text) return text.failure();
  result<parsed_steps> steps = parse_all(*text, path);
  if (!steps) return steps.failure();
  return std::move(steps->records);
}

result<step_log> step_log::open(file_system& files, const std::string& path) {
  result<std::string> text = read_if_there(files, path);
  if (!text) return text.failure();
  result<parsed_steps> steps = parse_all(*text, path);
  if (!steps) return steps.failure();
  result<std::unique_ptr<file>> opened = open_repaired(files, path, steps->whole_bytes);
  if (!opened) return opened.failure();
  step_log log;
  log.path_ = path;
  log.file_ = std::move(*opened);
  log.records_ = std::move(steps->records);
  log.whole_bytes_ = steps->whole_bytes;
  return log;
}

// Whoever coordinated before may have written a last line after this log was opened.
status step_log::read_on() {
  result<std::uint64_t> size = file_->size();
  if (!size) return size.failure();
  if (*size <= whole_bytes_) return done{};
  if (*size - whole_bytes_ > log_limit) {
    return error{exit_code::cannot_use, fmt::format("{} grew by {} bytes that this run did not "
                                                    "write; is another program writing there?",
                                                    path_, *size - whole_bytes_)};
  }
  std::string text(*size - whole_bytes_, '\0');
  const std::span<std::byte> into = std::as_writable_bytes(std::span(text));
  if (status read = read_exactly(*file_, whole_bytes_, into); !read) return read.failure();
  result<parsed_steps> more = parse_all(text, path_, last_step());
  if (!more) return more.failure();
  records_.insert(records_.end(), more->records.begin(), more->records.end());
  whole_bytes_ += more->whole_bytes;
  return *size > whole_bytes_ ? file_->truncate(whole_bytes_) : status(done{});
}

status step_log::add(const step_record& record) {
  ensure(record.step >= 1, "steps count from 1");
  if (status known = read_on(); !known) return known.failure();
  if (record.step > last_step() + 1) {
    return error{exit_code::defect,
                 fmt::format("step {} is committed, but {} ends with step {}: the lines between "
                             "them are missing. Was the file changed by hand, or restored from a "
                             "copy? The same command resumes from the newest checkpoint",
                             record.step, path_, last_step())};
  }
  if (record.step <= last_step()) {
    const step_record& stands = records_[record.step - 1];
    if (stands.same_bits(record)) return done{};
    return error{
        exit_code::defect,
        fmt::format(
            "step {} was computed again with other bits ({}): {} says loss {}, grad_norm {}, lr "
            "{}, "
            "tokens {}, skipped {}; now loss {}, grad_norm {}, lr {}, tokens {}, skipped {}",
            record.step, difference(stands, record), path_, json_number(stands.loss),
            json_number(stands.grad_norm), json_number(stands.lr), stands.tokens, stands.skipped,
            json_number(record.loss), json_number(record.grad_norm), json_number(record.lr),
            record.tokens, record.skipped)};
  }
  const std::string text = print(record);
  if (status written = file_->append(bytes_of(text)); !written) return written.failure();
  whole_bytes_ += text.size();
  records_.push_back(record);
  return done{};
}

status step_log::sync() { return file_->sync(); }
result<bool> step_log::is_mine() const { return ends_at(*file_, whole_bytes_); }

result<event_log> event_log::open(file_system& files, const std::string& path,
                                  const clock_source& clock, std::string run_id) {
  result<std::string> text = read_if_there(files, path);
  if (!text) return text.failure();
  const std::size_t newline = text->rfind('\n');
  const std::uint64_t whole = newline == std::string::npos ? 0 : newline + 1;
  result<std::unique_ptr<file>> opened = open_repaired(files, path, whole);
  if (!opened) return opened.failure();
  event_log log;
  log.file_ = std::move(*opened);
  log.clock_ = &clock;
  log.start_ = clock.now();
  log.run_id_ = std::move(run_id);
  log.whole_bytes_ = whole;
  log.before_ = read_history(std::string_view(*text).substr(0, whole));
  for (std::size_t i = 0; i < whole; ++i) log.next_number_ += (*text)[i] == '\n' ? 1 : 0;
  return log;
}

// By the wall clock, because no other is common to two processes; where it was set back in between,
// no time has passed.
void event_log::go_on() {
  before_start_ = before_.mono;
  if (before_.wall) {
    const std::chrono::duration<double> since = clock_->wall() - *before_.wall;
    before_start_ += std::max(0.0, since.count());
  }
  start_ = clock_->now();
}

double event_log::mono() const {
  return before_start_ + std::chrono::duration<double>(clock_->now() - start_).count();
}

result<bool> event_log::is_mine() const { return ends_at(*file_, whole_bytes_); }

json_line event_log::begin(const std::string& event) {
  json_line line;
  line.text("time", iso_8601(clock_->wall()))
      .number("mono", mono())
      .text("event", event)
      .text("run", run_id_)
      .u64("seq", next_number_++);
  return line;
}

// A full disk may leave half a line, and the next event often tells of just that: it must not be
// glued to the half.
status event_log::write(json_line& line) {
  const std::string text = line.finish();
  if (status written = file_->append(bytes_of(text)); !written) {
    (void)file_->truncate(whole_bytes_);  // the first cause is what counts
    return written.failure();
  }
  whole_bytes_ += text.size();
  return done{};
}

}  // namespace troupe::actors
