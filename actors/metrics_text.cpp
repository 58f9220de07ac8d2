#include "actors/metrics_text.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace troupe::actors {
namespace {

using label = std::pair<std::string_view, std::string_view>;
using labels = std::initializer_list<label>;

std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\\' || (c == '"' && quotes)) {
      out += {'\\', c};
    } else {
      out += c;
    }
  }
  return out;
}

std::string value_text(double v) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", v);
}

double unix_seconds(wall_time t) {
  return std::chrono::duration<double>(t.time_since_epoch()).count();
}

class exposition {
 public:
  exposition& family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(help, false), name, type);
    return *this;
  }
  exposition& sample(double value, labels l = {}) { return line(name_, value_text(value), l); }
  exposition& count(std::uint64_t value, labels l = {}) {
    return line(name_, fmt::format("{}", value), l);
  }
  exposition& buckets(const histogram& h, std::string_view part_name, std::string_view part) {
    const auto one = [&](const std::string& bound, std::uint64_t n) {
      const std::string name = name_ + "_bucket";
      if (part.empty()) {
        line(name, fmt::format("{}", n), {{"le", bound}});
      } else {
        line(name, fmt::format("{}", n), {{part_name, part}, {"le", bound}});
      }
    };
    for (std::size_t i = 0; i < histogram::bounds.size(); ++i) {
      one(value_text(histogram::bounds[i]), h.up_to(i));
    }
    one("+Inf", h.count());
    const auto total = [&](std::string_view ending, const std::string& value) {
      const std::string name = name_ + std::string(ending);
      if (part.empty()) {
        line(name, value, {});
      } else {
        line(name, value, {{part_name, part}});
      }
    };
    total("_sum", value_text(h.sum()));
    total("_count", fmt::format("{}", h.count()));
    return *this;
  }
  exposition& gauge(std::string_view name, std::string_view help, const std::optional<double>& v) {
    return v ? family(name, "gauge", help).sample(*v) : *this;
  }
  exposition& counter(std::string_view name, std::string_view help, std::uint64_t v) {
    return family(name, "counter", help).count(v);
  }
  std::string take() { return std::move(text_); }

 private:
  exposition& line(std::string_view name, const std::string& value, labels l) {
    text_ += name;
    char before = '{';
    for (const auto& [key, content] : l) {
      text_ += fmt::format("{}{}=\"{}\"", before, key, escaped(content, true));
      before = ',';
    }
    if (l.size() > 0) text_ += '}';
    text_ += " " + value + "\n";
    return *this;
  }

  std::string text_, name_;
};

void add_info(exposition& e, const world_status& s) {
  e.family("troupe_build_info", "gauge", "What this program is.")
      .count(1, {{"version", s.version}, {"commit", s.commit}, {"backends", s.backends}});
  e.family("troupe_run_info", "gauge", "What is trained.")
      .count(1, {{"run", s.run}, {"model", s.model}, {"config_digest", s.config_digest}});
}

void add_training(exposition& e, const world_status& s) {
  const world_counters& c = s.counters;
  e.counter("troupe_train_steps_total", "Committed steps in this coordinator's life.", c.steps);
  e.gauge("troupe_train_step", "Number of the newest committed step.", static_cast<double>(s.step));
  e.gauge("troupe_train_last_commit_timestamp_seconds",
          "When the newest step was committed: the one to alert on.",
          s.last_commit ? std::optional(unix_seconds(*s.last_commit)) : std::nullopt);
  e.counter("troupe_train_tokens_total", "Counted target tokens of committed steps.", c.tokens);
  e.gauge("troupe_train_loss", "Loss of the newest committed step, nats a token.", s.loss);
  e.gauge("troupe_validation_loss", "Loss of the newest validation, nats a token.", s.val_loss);
  e.gauge("troupe_train_grad_norm", "Norm of the gradient before clipping.", s.grad_norm);
  e.gauge("troupe_train_learning_rate", "Learning rate of the newest committed step.", s.lr);
  e.counter("troupe_train_skipped_steps_total", "Steps skipped because they were not finite.",
            c.skipped_steps);
  e.counter("troupe_train_redone_steps_total", "Steps computed again.", c.redone_steps);
  e.family("troupe_step_duration_seconds", "histogram", "Time from commit to commit.")
      .buckets(c.step_seconds, "", "");
  e.family("troupe_step_phase_seconds_total", "counter",
           "Where the time of steps goes; wait is apart from work.");
  for (std::size_t i = 0; i < step_phase_names.size(); ++i) {
    e.sample(c.phase_seconds.values[i], {{"phase", step_phase_names[i]}});
  }
  e.gauge("troupe_model_flops_utilization_ratio", "Model FLOP/s over the peak of all members.",
          s.utilization);
  e.gauge("troupe_model_flops_per_token", "The formula's value that the utilization uses.",
          s.flops_per_token > 0 ? std::optional(s.flops_per_token) : std::nullopt);
}

void add_world(exposition& e, const world_status& s) {
  e.family("troupe_world_members", "gauge", "Members by state.");
  for (const member_state state :
       {member_state::active, member_state::joining, member_state::draining, member_state::spare}) {
    e.count(s.members_in(state), {{"state", name_of(state)}});
  }
  e.gauge("troupe_world_generation", "Number of the plan in force.",
          static_cast<double>(s.generation));
  const world_counters& c = s.counters;
  e.family("troupe_generations_total", "counter", "Plans that replaced another one, by cause.");
  for (std::size_t i = 0; i < change_cause_names.size(); ++i) {
    e.count(c.generations.values[i], {{"cause", change_cause_names[i]}});
  }
  e.family("troupe_member_losses_total", "counter", "Members lost, by how it was noticed.");
  for (std::size_t i = 0; i < loss_kind_names.size(); ++i) {
    e.count(c.losses.values[i], {{"kind", loss_kind_names[i]}});
  }
  e.family("troupe_recovery_duration_seconds", "histogram",
           "From the notice of a loss to the first new commit.")
      .buckets(c.recovery_seconds, "", "");
  e.family("troupe_unblock_duration_seconds", "histogram",
           "From the notice of a loss to the last survivor's release.")
      .buckets(c.unblock_seconds, "", "");
  if (s.members.empty()) return;
  const auto slot = [](const member_status& m) { return fmt::format("{}", m.id); };
  e.family("troupe_member_up", "gauge", "1 while the member in this slot is there.");
  for (const member_status& m : s.members) {
    e.count(m.state == member_state::lost ? 0 : 1, {{"member", slot(m)}});
  }
  e.family("troupe_member_busy_ratio", "gauge", "Own work over the time of steps.");
  for (const member_status& m : s.members) {
    if (m.busy_ratio && m.state != member_state::lost) {
      e.sample(*m.busy_ratio, {{"member", slot(m)}});
    }
  }
  e.family("troupe_member_slowdown_ratio", "gauge",
           "Own work of the newest steps over the other members' median.");
  for (const member_status& m : s.members) {
    if (m.slowdown && m.state != member_state::lost) {
      e.sample(*m.slowdown, {{"member", slot(m)}});
    }
  }
  e.family("troupe_member_restarts_total", "counter", "New lives in this slot.");
  for (const member_status& m : s.members) e.count(m.restarts, {{"member", slot(m)}});
  e.family("troupe_device_memory_bytes", "gauge", "Memory of the member's device by use.");
  for (const member_status& m : s.members) {
    if (m.state == member_state::lost) continue;
    for (std::size_t i = 0; i < memory_kind_names.size(); ++i) {
      e.count(m.memory_bytes.values[i], {{"member", slot(m)}, {"kind", memory_kind_names[i]}});
    }
  }
}

void add_comm_and_checkpoints(exposition& e, const world_status& s) {
  const world_counters& c = s.counters;
  e.family("troupe_comm_sent_bytes_total", "counter", "Payload and framing sent, by lane.");
  for (std::size_t i = 0; i < lane_names.size(); ++i) {
    e.count(c.sent_bytes.values[i], {{"lane", lane_names[i]}});
  }
  e.counter("troupe_checkpoint_attempts_total", "Checkpoints begun.", c.checkpoint_attempts);
  e.counter("troupe_checkpoint_failures_total", "Checkpoints that failed.", c.checkpoint_failures);
  e.family("troupe_checkpoint_duration_seconds", "histogram", "Time of a checkpoint by part.");
  for (std::size_t i = 0; i < checkpoint_part_names.size(); ++i) {
    e.buckets(c.checkpoint_seconds.values[i], "part", checkpoint_part_names[i]);
  }
  if (!s.checkpoint) return;
  e.gauge("troupe_checkpoint_size_bytes", "Size of the newest checkpoint.",
          static_cast<double>(s.checkpoint->bytes));
  e.gauge("troupe_checkpoint_last_success_timestamp_seconds", "When it was published.",
          unix_seconds(s.checkpoint->published));
  e.gauge("troupe_checkpoint_last_step", "The step that it holds.",
          static_cast<double>(s.checkpoint->step));
}

void add_process(exposition& e, const process_facts& p) {
  e.family("process_cpu_seconds_total", "counter", "User and system time of this process.")
      .sample(p.cpu_seconds);
  e.gauge("process_resident_memory_bytes", "Resident memory of this process.",
          static_cast<double>(p.resident_bytes));
  e.gauge("process_start_time_seconds", "When this process started.", p.start_seconds);
  e.gauge("process_open_fds", "Open file descriptors.", static_cast<double>(p.open_files));
}

}  // namespace

std::string metrics_text(const world_status& s, const process_facts& process) {
  exposition e;
  add_info(e, s);
  add_training(e, s);
  add_world(e, s);
  add_comm_and_checkpoints(e, s);
  add_process(e, process);
  return e.take();
}

}  // namespace troupe::actors
