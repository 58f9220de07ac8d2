#include "actors/run_history.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "config/base/json.hpp"

namespace troupe::actors {
namespace {

// One event; what is missing or of another kind is a default.
class event_fields {
 public:
  explicit event_fields(const nlohmann::json& object) : object_(object) {}

  std::uint64_t u64(const char* name) const {
    const auto at = object_.find(name);
    return at != object_.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
  }
  double number(const char* name) const {
    const auto at = object_.find(name);
    return at != object_.end() && at->is_number() ? at->get<double>() : 0;
  }
  std::string text(const char* name) const {
    const auto at = object_.find(name);
    return at != object_.end() && at->is_string() ? at->get<std::string>() : std::string();
  }
  bool boolean(const char* name) const {
    const auto at = object_.find(name);
    return at != object_.end() && at->is_boolean() && at->get<bool>();
  }
  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> all;
    const auto at = object_.find(name);
    if (at == object_.end() || !at->is_array()) return all;
    for (const nlohmann::json& one : *at) {
      if (one.is_string()) all.push_back(one.get<std::string>());
    }
    return all;
  }
  bool has(const char* name) const { return object_.contains(name); }

 private:
  const nlohmann::json& object_;
};

// As iso_8601() writes it: 2026-01-02T03:04:05.678Z.
std::optional<wall_time> parse_time(std::string_view text) {
  using namespace std::chrono;
  if (text.size() != 24) return std::nullopt;
  bool digits = true;
  const auto part = [&](std::size_t at, std::size_t length) {
    unsigned value = 0;
    const char* const end = text.data() + at + length;
    const auto [stop, trouble] = std::from_chars(text.data() + at, end, value);
    digits = digits && trouble == std::errc{} && stop == end;
    return value;
  };
  const year_month_day date(year(static_cast<int>(part(0, 4))), month(part(5, 2)), day(part(8, 2)));
  const auto of_day =
      hours(part(11, 2)) + minutes(part(14, 2)) + seconds(part(17, 2)) + milliseconds(part(20, 3));
  if (!digits || !date.ok()) return std::nullopt;
  return wall_time(sys_days(date)) + of_day;
}

recovery recovery_in(const event_fields& e) {
  recovery r;
  r.id = e.u64("recovery");
  r.from = e.u64("from");
  r.to = e.u64("to");
  r.lost = e.texts("lost");
  r.step_redone = e.boolean("step_redone");
  r.step = e.u64("step");
  r.unblock_ms = e.number("unblock_ms");
  r.recover_ms = e.number("recover_ms");
  r.reason = e.text("reason");
  return r;
}

void take_generation(run_history& h, const event_fields& e) {
  if (e.boolean("start")) {
    run_history fresh;
    fresh.mono = h.mono;
    fresh.wall = h.wall;
    fresh.validations = std::move(h.validations);
    h = std::move(fresh);
    h.started = true;
    h.first_step = e.u64("from_step");
    h.first_generation = e.u64("number");
    h.peak_flops = e.number("peak_flops");
    h.peak_source = e.text("peak_source");
  }
  const std::uint64_t computing = e.u64("computing"), from = e.u64("from_step");
  h.world_min = h.generations == 0 ? computing : std::min(h.world_min, computing);
  h.world_max = std::max(h.world_max, computing);
  ++h.generations;
  h.last_generation = e.u64("number");
  h.beginnings.push_back({from, e.u64("recorded")});
  if (!e.boolean("start") && from < h.beginnings.back().recorded) {
    h.committed_steps_lost += h.beginnings.back().recorded - from;
  }
  h.attempts_redone += e.boolean("step_redone") ? 1 : 0;
  if (!e.has("recovery")) return;
  recovery r = recovery_in(e);
  r.noticed = e.number("noticed_mono");
  h.under_way.push_back(std::move(r));
}

void take(run_history& h, const event_fields& e) {
  const std::string event = e.text("event");
  h.mono = e.number("mono");
  if (const auto time = parse_time(e.text("time"))) h.wall = time;
  if (event == "generation") {
    take_generation(h, e);
  } else if (event == "recovered") {
    const recovery r = recovery_in(e);
    std::erase_if(h.under_way, [&](const recovery& open) { return open.id == r.id; });
    h.recoveries.push_back(r);
  } else if (event == "member_lost") {
    h.losses[e.text("member")] = e.u64("recovery");
  } else if (event == "validation") {
    h.val_loss = e.number("loss");
    h.validations[e.u64("step")] = {e.number("loss"), e.u64("tokens")};
  } else if (event == "checkpoint_published") {
    h.weights_hash = e.text("weights_hash");
    h.state_hash = e.text("state_hash");
  }
}

}  // namespace

std::uint64_t run_history::steps_redone(std::uint64_t reached) const {
  std::uint64_t redone = attempts_redone;
  for (std::size_t i = 0; i < beginnings.size(); ++i) {
    const std::uint64_t end = i + 1 < beginnings.size() ? beginnings[i + 1].from_step : reached;
    const std::uint64_t again = std::min(beginnings[i].recorded, end);
    if (again > beginnings[i].from_step) redone += again - beginnings[i].from_step;
  }
  return redone;
}

run_history read_history(std::string_view events) {
  run_history h;
  std::size_t at = 0;
  for (std::size_t end; (end = events.find('\n', at)) != std::string_view::npos; at = end + 1) {
    const result<nlohmann::json> line = parse_json(events.substr(at, end - at), "events.jsonl");
    if (line && line->is_object()) take(h, event_fields(*line));
  }
  return h;
}

}  // namespace troupe::actors
