#include "actors/world_status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "actors/text.hpp"
#include "config/base/json.hpp"

namespace troupe::actors {
namespace {

double seconds_between(wall_time from, wall_time to) {
  return std::max(0.0, std::chrono::duration<double>(to - from).count());
}

std::string ago(wall_time then, wall_time now) {
  return short_duration(std::chrono::duration<double>(seconds_between(then, now)));
}

void put(json_writer& to, std::string_view name, const std::optional<double>& value) {
  if (value) {
    to.number(name, *value);
  } else {
    to.null(name);
  }
}

void put(json_writer& to, std::string_view name, const std::optional<wall_time>& value) {
  if (value) {
    to.text(name, iso_8601(*value));
  } else {
    to.null(name);
  }
}

template <class Values, class Names>
void put_each(json_writer& to, std::string_view name, const Values& values, const Names& names) {
  to.begin_object(name);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if constexpr (std::is_same_v<std::decay_t<decltype(values[i])>, double>) {
      to.number(names[i], values[i]);
    } else {
      to.u64(names[i], values[i]);
    }
  }
  to.end();
}

std::optional<double> eta_seconds(const world_status& s) {
  if (s.step_seconds <= 0 || s.step > s.steps) return std::nullopt;
  return s.step_seconds * static_cast<double>(s.steps - s.step);
}

void put_member(json_writer& to, const member_status& m, wall_time now) {
  to.begin_element()
      .u64("id", m.id)
      .text("name", m.name)
      .text("host", m.host)
      .text("state", name_of(m.state))
      .text("since", iso_8601(m.since));
  if (m.phase) {
    to.text("phase", name_of(*m.phase));
  } else {
    to.null("phase");
  }
  to.u64("step", m.step).i64("threads", m.threads);
  put(to, "heartbeat_age_seconds",
      m.heard ? std::optional(seconds_between(*m.heard, now)) : std::nullopt);
  put(to, "busy_ratio", m.busy_ratio);
  put(to, "slowdown", m.slowdown);
  put_each(to, "memory_bytes", m.memory_bytes.values, memory_kind_names);
  to.u64("restarts", m.restarts).end();
}

using row = std::vector<std::string>;

// Columns as wide as their widest cell.
std::string columns(const std::vector<row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const row& r : rows) {
    for (std::size_t i = 0; i < r.size(); ++i) widths[i] = std::max(widths[i], r[i].size());
  }
  std::string text;
  for (const row& r : rows) {
    std::string line;
    for (std::size_t i = 0; i < r.size(); ++i) line += fmt::format("  {:<{}}", r[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

row cells(const member_status& m, wall_time now) {
  std::uint64_t memory = 0;
  for (const std::uint64_t bytes : m.memory_bytes.values) memory += bytes;
  return {fmt::format("{}", m.id),
          m.name,
          m.host,
          std::string(name_of(m.state)),
          ago(m.since, now),
          m.phase ? std::string(name_of(*m.phase)) : "-",
          fmt::format("{}", m.step),
          fmt::format("{}", m.threads),
          m.heard ? ago(*m.heard, now) : "-",
          m.busy_ratio ? fmt::format("{:.0f}%", 100 * *m.busy_ratio) : "-",
          short_bytes(static_cast<double>(memory)),
          fmt::format("{}", m.restarts)};
}

std::string training_line(const world_status& s) {
  std::string line = fmt::format("step {}/{}", s.step, s.steps);
  if (s.loss) line += fmt::format("  loss {:.4f}", *s.loss);
  if (s.val_loss) line += fmt::format("  val_loss {:.4f}", *s.val_loss);
  if (s.grad_norm) line += fmt::format("  grad_norm {:.3f}", *s.grad_norm);
  if (s.lr) line += fmt::format("  lr {:.2e}", *s.lr);
  line += fmt::format("  tok/s {}", short_count(s.tokens_per_second));
  if (s.utilization) line += fmt::format("  mfu {:.1f}%", 100 * *s.utilization);
  if (const auto eta = eta_seconds(s)) {
    line += fmt::format("  eta {}", short_duration(std::chrono::duration<double>(*eta)));
  }
  return line;
}

}  // namespace

std::string_view name_of(run_state s) { return run_state_names[static_cast<std::size_t>(s)]; }
std::string_view name_of(member_state s) { return member_state_names[static_cast<std::size_t>(s)]; }
std::string_view name_of(protocol::phase p) { return phase_names[static_cast<std::size_t>(p)]; }

std::uint64_t world_status::members_in(member_state s) const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(members, [s](const member_status& m) { return m.state == s; }));
}

std::string to_json(const world_status& s, wall_time now) {
  json_page page;
  page.text("run", s.run)
      .text("run_id", s.run_id)
      .text("version", s.version)
      .text("time", iso_8601(now))
      .text("state", name_of(s.state))
      .text("since", iso_8601(s.since))
      .text("note", s.note)
      .boolean("healthy", healthy(s, now))
      .u64("generation", s.generation)
      .text("plan", s.plan)
      .u64("step", s.step)
      .u64("steps", s.steps);
  put(page, "loss", s.loss);
  put(page, "val_loss", s.val_loss);
  put(page, "grad_norm", s.grad_norm);
  put(page, "lr", s.lr);
  page.number("tokens_per_second", s.tokens_per_second).number("step_seconds", s.step_seconds);
  put(page, "model_flops_utilization", s.utilization);
  put(page, "eta_seconds", eta_seconds(s));
  put(page, "last_commit", s.last_commit);
  page.begin_array("members");
  for (const member_status& m : s.members) put_member(page, m, now);
  page.end();
  if (s.checkpoint) {
    page.begin_object("checkpoint")
        .u64("step", s.checkpoint->step)
        .u64("bytes", s.checkpoint->bytes)
        .text("published", iso_8601(s.checkpoint->published))
        .end();
  } else {
    page.null("checkpoint");
  }
  const world_counters& c = s.counters;
  put_each(page, "sent_bytes", c.sent_bytes.values, lane_names);
  put_each(page, "phase_seconds", c.phase_seconds.values, step_phase_names);
  put_each(page, "replaced_plans", c.generations.values, change_cause_names);
  put_each(page, "losses", c.losses.values, loss_kind_names);
  page.begin_object("counters")
      .u64("steps", c.steps)
      .u64("tokens", c.tokens)
      .u64("skipped_steps", c.skipped_steps)
      .u64("redone_steps", c.redone_steps)
      .u64("checkpoint_attempts", c.checkpoint_attempts)
      .u64("checkpoint_failures", c.checkpoint_failures)
      .u64("recoveries", c.recovery_seconds.count())
      .end();
  return page.finish();
}

std::string to_text(const world_status& s, wall_time now) {
  std::string text =
      fmt::format("{} ({})  {} since {}", s.run, s.run_id, name_of(s.state), ago(s.since, now));
  if (!s.note.empty()) text += fmt::format(": {}", s.note);
  text += fmt::format("\n{}\n", training_line(s));
  text += fmt::format("generation {}: {}\n", s.generation, s.plan);
  text += s.last_commit ? fmt::format("last commit {} ago", ago(*s.last_commit, now))
                        : std::string("no commit yet");
  text += s.checkpoint ? fmt::format("  checkpoint of step {}, {}, {} ago", s.checkpoint->step,
                                     short_bytes(static_cast<double>(s.checkpoint->bytes)),
                                     ago(s.checkpoint->published, now))
                       : std::string("  no checkpoint yet");
  std::uint64_t sent = 0;
  for (const std::uint64_t bytes : s.counters.sent_bytes.values) sent += bytes;
  if (sent > 0) {
    text += "  sent";
    for (std::size_t i = 0; i < lane_names.size(); ++i) {
      const std::uint64_t bytes = s.counters.sent_bytes.values[i];
      if (bytes == 0) continue;
      text += fmt::format(" {} {}", lane_names[i], short_bytes(static_cast<double>(bytes)));
    }
  }
  text += "\n";
  if (s.members.empty()) return text;
  std::vector<row> rows{{"id", "name", "host", "state", "since", "phase", "step", "threads",
                         "heard", "busy", "memory", "restarts"}};
  for (const member_status& m : s.members) rows.push_back(cells(m, now));
  return text + "\n" + columns(rows);
}

bool healthy(const world_status& s, wall_time now) {
  if (s.state == run_state::finished) return true;
  const wall_time last = std::max(s.last_commit.value_or(s.since), wall_time{});
  return seconds_between(last, now) <= std::max(s.stall_seconds, 10 * s.step_seconds);
}

}  // namespace troupe::actors
