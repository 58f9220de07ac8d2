// The other half of the monitor: what it tells of plans and members, and of recoveries from losses.
#include <fmt/format.h>

#include <algorithm>

#include "actors/monitor.hpp"

namespace troupe::actors {
namespace {

std::string names_of(const std::vector<std::string>& members) {
  std::string names;
  for (const std::string& member : members) names += (names.empty() ? "" : ", ") + member;
  return names;
}

}  // namespace

status monitor::started(std::uint64_t from_step, const world_facts& world) {
  told_of_world_ = true;
  first_step_ = counted_ = from_step;
  report_.steps = from_step;
  board_.facts().step = from_step;
  report_.generations = 0;
  report_.world_min = report_.world_max = world.computing;
  return new_generation(from_step, world, nullptr);
}

status monitor::goes_on(std::uint64_t from_step, const world_facts& world,
                        const world_change& how) {
  if (!told_of_world_) take_over(from_step);
  if (steps_.last_step() > from_step) {
    report_.committed_steps_lost += steps_.last_step() - from_step;
  }
  if (how.step_redone) ++report_.steps_redone;
  count_cause(from_step, how);
  if (status told = tell_change(from_step, world, how); !told) return told.failure();
  if (trace_) {  // no step was committed under the plan before
    if (status written = write_trace(); !written) return written.failure();
  }
  begin_trace(world, how);
  recovery r;
  r.id = r.to = world.number;
  r.from = world.number - 1;  // plans are numbered without a gap
  for (const world_change::lost_member& m : how.lost) r.lost.push_back(m.name);
  r.step_redone = how.step_redone;
  r.reason = world.reason;
  if (how.lost.empty()) return new_generation(from_step, world, &r);
  // Not known is 0: then the time begins here.
  r.noticed = how.noticed > time_since_start() ? mono_at(how.noticed) : events_.mono();
  if (how.unblocked > how.noticed) {
    r.unblock_ms = 1e3 * std::max(0.0, mono_at(how.unblocked) - r.noticed);
  }
  under_way_.push_back(r);
  board_.enter(run_state::recovering, "without " + names_of(r.lost));
  return new_generation(from_step, world, &r);
}

// Everything that another process has counted in this start.
void monitor::take_over(std::uint64_t from_step) {
  told_of_world_ = true;
  events_.go_on();
  const run_history& before = events_.before();
  first_step_ = from_step;  // the next line on the screen is this process's first
  counted_ = before.first_step;
  for (std::uint64_t s = before.first_step + 1; s <= steps_.last_step(); ++s) {
    const step_record& record = steps_.record_of(s);
    // Lines of an earlier start are counted only as far as this one has come again.
    if (record.generation < before.first_generation && s > from_step) break;
    count(record);
    if (record.skipped) ++report_.skipped_steps;
  }
  if (const std::uint64_t last = std::min(steps_.last_step(), from_step); last > 0) {
    report_.final_loss = steps_.record_of(last).loss;
    board_.facts().loss = report_.final_loss;
  }
  report_.steps = board_.facts().step = from_step;
  report_.val_loss = board_.facts().val_loss = before.val_loss;
  report_.weights_hash = before.weights_hash;
  report_.state_hash = before.state_hash;
  report_.generations = before.generations;
  report_.world_min = before.world_min;
  report_.world_max = before.world_max;
  report_.steps_redone = before.steps_redone(from_step);
  report_.committed_steps_lost = before.committed_steps_lost;
  report_.recoveries = before.recoveries;
  under_way_ = before.under_way;
  losses_told_ = before.losses;
  if (before.peak_flops > 0) {
    set_speed_facts(report_.flops_per_token, before.peak_flops, before.peak_source);
  }
}

void monitor::count_cause(std::uint64_t from_step, const world_change& how) {
  if (steps_.last_step() > from_step) {
    board_.replaced_plan(change_cause::rollback);
  } else if (!how.lost.empty()) {
    board_.replaced_plan(change_cause::lost);
  } else if (!how.joined.empty()) {
    board_.replaced_plan(change_cause::joined);
  } else if (!how.left.empty()) {
    board_.replaced_plan(change_cause::drained);
  }
}

status monitor::tell_change(std::uint64_t from_step, const world_facts& world,
                            const world_change& how) {
  for (const world_change::lost_member& m : how.lost) {
    const auto told = losses_told_.find(m.name);
    if (told != losses_told_.end() && told->second == world.number) continue;
    world_change::lost_member lost = m;
    if (lost.noticed == time_since_start()) lost.noticed = how.noticed;
    if (status written = write_loss(world.number, lost); !written) {
      return written.failure();
    }
  }
  losses_told_.clear();
  const auto tell = [&](const char* event, const char* words,
                        const std::vector<std::string>& members) -> status {
    for (const std::string& member : members) {
      screen_->event(fmt::format("{} {} at step {}; generation {}: {}", member, words, from_step,
                                 world.number, world.plan_line));
      json_line line = events_.begin(event);
      line.text("member", member)
          .u64("generation", world.number)
          .u64("step", from_step)
          .text("reason", world.reason);
      if (!how.lost.empty()) line.u64("recovery", world.number);
      if (status written = events_.write(line); !written) return written.failure();
    }
    return done{};
  };
  if (status told = tell("member_left", "left", how.left); !told) return told.failure();
  return tell("member_joined", "joined", how.joined);
}

status monitor::world_asked_for(const std::string& asked, std::uint64_t from, std::uint64_t to) {
  json_line line = events_.begin("command");
  line.text("asked", asked).u64("from", from).u64("to", to);
  return events_.write(line);
}

status monitor::new_generation(std::uint64_t from_step, const world_facts& world,
                               const recovery* change) {
  const bool start = change == nullptr;
  world_ = world;
  base_ = from_step;
  ++report_.generations;
  report_.world_min = std::min(report_.world_min, world.computing);
  report_.world_max = std::max(report_.world_max, world.computing);
  json_line line = events_.begin("generation");
  line.u64("number", world.number)
      .boolean("start", start)
      .u64("members", world.members)
      .u64("computing", world.computing)
      .u64("from_step", from_step)
      .u64("recorded", steps_.last_step());
  if (!world.plan_hash.empty()) line.text("plan", world.plan_hash);
  line.text("reason", world.reason);
  if (start && report_.peak_flops > 0) {
    line.number("peak_flops", report_.peak_flops).text("peak_source", report_.peak_source);
  }
  if (!start) line.boolean("step_redone", change->step_redone);
  if (!start && !change->lost.empty()) {
    line.u64("recovery", change->id)
        .u64("from", change->from)
        .u64("to", change->to)
        .texts("lost", change->lost)
        .number("unblock_ms", change->unblock_ms)
        .number("noticed_mono", change->noticed);
  }
  board_.facts().generation = world.number;
  board_.facts().plan = world.plan_line;
  board_.publish();
  return events_.write(line);
}

// The plan that follows is not made yet; whoever makes it has the next number.
status monitor::member_lost(const std::string& member, const std::string& how,
                            time_since_start when) {
  const std::uint64_t recovery = world_.number + 1;
  const auto [told, first] = losses_told_.try_emplace(member, recovery);
  if (!first && told->second == recovery) return done{};
  told->second = recovery;
  board_.enter(run_state::recovering, fmt::format("lost {}: {}", member, how));
  return write_loss(recovery, {member, how, when, {}});
}

// detect_ms: from its last sign of life to the notice, so no less than the time since the fault.
// Who took the coordinator's role over has had no heartbeats told, but has noticed itself.
status monitor::write_loss(std::uint64_t recovery, const world_change::lost_member& lost) {
  const auto& [member, how, when, heard_there] = lost;
  screen_->event(fmt::format("lost {}: {}", member, how));
  board_.lost_member(loss_kind_of(how));
  board_.publish();
  json_line line = events_.begin("member_lost");
  line.text("member", member)
      .text("cause", name_of(loss_kind_of(how)))
      .text("noticed", how)
      .u64("recovery", recovery)
      .u64("generation", recovery - 1);
  time_since_start last = heard_there;
  if (const auto heard = heard_.find(member); heard != heard_.end() && heard->second <= when) {
    last = std::max(last, heard->second);
  }
  if (last > time_since_start() && last <= when) {
    line.number("detect_ms", std::chrono::duration<double, std::milli>(when - last).count());
  }
  heard_.erase(member);
  return events_.write(line);
}

status monitor::write_recovered(std::uint64_t step) {
  for (recovery& r : under_way_) {
    r.to = world_.number;
    r.step = step;
    r.recover_ms = 1e3 * std::max(0.0, events_.mono() - r.noticed);
    board_.recovered(r.unblock_ms / 1e3, r.recover_ms / 1e3);
    std::string words = fmt::format(
        "the run went on without {} in generation {}: step {} is committed, {} after the loss was "
        "noticed",
        names_of(r.lost), r.to, step,
        short_duration(std::chrono::duration<double, std::milli>(r.recover_ms)));
    if (r.step_redone) words += "; the step that was under way was computed again";
    screen_->event(words);
    json_line line = events_.begin("recovered");
    put_fields(line, r);
    if (status written = events_.write(line); !written) return written.failure();
    report_.recoveries.push_back(r);
  }
  under_way_.clear();
  return done{};
}

// --- traces ---

void monitor::begin_trace(const world_facts& world, const world_change& how) {
  change_trace& t = trace_.emplace();
  t.run = directory_->run_id();
  t.number = world.number;
  t.reason = world.reason;
  const auto mono = [this](time_since_start when) {
    return when > time_since_start() ? std::max(0.0, mono_at(when)) : 0.0;
  };
  for (const world_change::lost_member& m : how.lost) {
    t.lost.push_back({m.name, m.how, mono(m.heard), mono(m.noticed)});
  }
  for (const world_change::mark& m : how.marks) t.marks.push_back({m.what, m.who, mono(m.when)});
}

void monitor::marked(const world_change::mark& what) {
  if (trace_) trace_->marks.push_back({what.what, what.who, mono_at(what.when)});
}

// For people only, so a trace that cannot be written is no trouble of the run.
status monitor::write_trace() {
  constexpr std::size_t most = 64;
  const change_trace t = std::move(*trace_);
  trace_.reset();
  const std::string folder = directory_->file("traces");
  (void)files_->make_directory(folder);
  result<std::unique_ptr<file>> to =
      files_->open(join_path(folder, file_of(t)), open_mode::truncate);
  if (!to) return done{};
  const std::string text = to_json(t);
  (void)(*to)->write_at(0, std::as_bytes(std::span(text)));
  const result<std::vector<directory_entry>> there = files_->list(folder);
  if (!there) return done{};
  std::vector<std::string> names;
  for (const directory_entry& e : *there) names.push_back(e.name);
  for (const std::string& old : surplus_traces(std::move(names), most)) {
    (void)files_->remove(join_path(folder, old));
  }
  return done{};
}

// --- waiting and slowness ---

status monitor::waits_for_members(const std::string& why) {
  screen_->event("the run waits for " + why);
  board_.enter(run_state::waiting, "for " + why);
  board_.publish();
  json_line line = events_.begin("waiting");
  line.u64("generation", world_.number)
      .u64("step", base_)
      .u64("computing", world_.computing)
      .text("reason", why);
  return events_.write(line);
}

status monitor::members_are_here(double seconds) {
  screen_->event(fmt::format("the run goes on with {} workers after a wait of {}", world_.computing,
                             short_duration(std::chrono::duration<double>(seconds))));
  board_.enter(run_state::training);
  board_.publish();
  json_line line = events_.begin("waited");
  line.u64("generation", world_.number)
      .u64("step", base_)
      .u64("computing", world_.computing)
      .number("seconds", seconds);
  return events_.write(line);
}

// One that comes and goes is told of once a minute; the metric shows it all the time.
status monitor::straggles(std::uint64_t step, const std::string& member, const straggler& how) {
  constexpr double again = 60;
  const auto [known, first] = slow_.try_emplace(member);
  const double time = events_.mono();
  if (how.over && !std::exchange(known->second.said, false)) return done{};
  if (!how.over) {
    if (!first && time - known->second.named < again) return done{};
    known->second = {time, true};
  }
  const std::string reason =
      how.over ? fmt::format("{} is as fast as the others again", member)
               : fmt::format(
                     "{} is slow: its own work takes {:.1f} times as long as the others' "
                     "({:.1f} ms a step, not {:.1f}), most of it in {}; the others wait "
                     "for it",
                     member, how.ratio, 1e3 * how.work, 1e3 * how.others, how.phase);
  screen_->event(reason);
  json_line line = events_.begin("straggler");
  line.text("member", member)
      .boolean("over", how.over)
      .u64("step", step)
      .u64("generation", world_.number)
      .text("phase", how.phase)
      .number("ratio", how.ratio)
      .number("work_ms", 1e3 * how.work)
      .number("others_ms", 1e3 * how.others)
      .text("reason", reason);
  return events_.write(line);
}

double monitor::mono_at(time_since_start when) const {
  return events_.mono() - std::chrono::duration<double>(clock_->now() - when).count();
}

}  // namespace troupe::actors
