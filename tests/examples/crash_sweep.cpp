// Members of a world of real processes, struck at named points one after the other: each case waits
// until the world is whole, looks up who has the role, orders that worker to strike itself when it
// comes by the point, does what makes it come by (another member is lost, or it is told to leave),
// and waits for the proof. crash_sweep_test.sh starts and ends the world, and compares its bits.
//
//   crash_sweep RUN_DIRECTORY ORDERS LAUNCHER_PROCESS few|all
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/chaos/order_files.hpp"
#include "actors/chaos/processes.hpp"
#include "actors/chaos/run_watcher.hpp"
#include "actors/protocol_points.hpp"
#include "config/base/clock.hpp"
#include "config/base/json.hpp"

namespace troupe::actors::chaos {
namespace {

using namespace std::chrono_literals;
using at = protocol_point;

constexpr std::size_t members = 4;
constexpr auto patience = 40s;
constexpr auto away = 2500ms;  // longer than fault_tolerance.evict_ms

// Who is struck. Primary and backup are meant of some block; a substitute is who collects when the
// coordinator is lost.
enum class role : std::uint8_t { coordinator, primary, backup, another, substitute, joiner };
constexpr const char* names_of_roles[] = {"coordinator", "primary",    "backup",
                                          "another",     "substitute", "joiner"};

// What makes the member come by the point.
enum class cause : std::uint8_t { none, loss, coordinators_loss, told_to_leave };

struct sweep_case {
  at point;
  std::uint32_t k;
  role who;
  cause by;
  fault_kind what;
  named_point named() const {
    named_point p{std::string(actors::name_of(point)), {}};
    if (counts(p.name)) p.k = k;
    return p;
  }
  std::string text() const {
    return fmt::format("{}, {}, {}", to_text(named()), names_of_roles[static_cast<int>(who)],
                       chaos::name_of(what));
  }
};

std::vector<sweep_case> all_cases() {
  std::vector<sweep_case> all;
  const auto add = [&](at point, const std::vector<role>& roles, cause by = cause::none,
                       std::uint32_t k = 1, fault_kind what = fault_kind::kill) {
    for (const role who : roles) all.push_back({point, k, who, by, what});
  };
  const std::vector<role> coordinator = {role::coordinator}, substitute = {role::substitute},
                          joiner = {role::joiner};
  const std::vector<role> everybody = {role::coordinator, role::primary, role::backup,
                                       role::another};
  for (const at point : {at::step_begin, at::microbatch_done, at::partial_sent, at::reduced,
                         at::grad_forwarded, at::grad_held, at::acked, at::voted, at::commit_seen,
                         at::applying, at::applied, at::params_sent, at::params_complete}) {
    add(point, everybody);
  }
  for (const at point : {at::votes_complete, at::decided, at::commit_sent, at::stable}) {
    add(point, coordinator);
  }
  add(at::commit_sent, coordinator, cause::none, 2);
  add(at::commit_sent, coordinator, cause::none, 3);
  add(at::microbatch_done, coordinator, cause::none, 2);
  add(at::partial_sent, everybody, cause::none, 2);
  for (const at point : {at::promised, at::adopted, at::resumed, at::copy_begin, at::copy_half}) {
    add(point, everybody, cause::loss);
  }
  add(at::suspected, coordinator, cause::loss);
  for (const at point :
       {at::collect_sent, at::collected, at::plan_written, at::published, at::verdict_sent}) {
    add(point, coordinator, cause::loss);
    add(point, substitute, cause::coordinators_loss);
  }
  add(at::collect_sent, coordinator, cause::loss, 2);
  add(at::verdict_sent, coordinator, cause::loss, 2);
  add(at::suspected, substitute, cause::coordinators_loss);
  add(at::collect_sent, substitute, cause::coordinators_loss, 2);
  add(at::verdict_sent, substitute, cause::coordinators_loss, 2);
  add(at::redundancy_restored, coordinator, cause::loss);
  for (const at point :
       {at::join_hello, at::adopted, at::step_begin, at::voted, at::commit_seen, at::copy_begin,
        at::copy_half, at::copy_verified, at::acked, at::applied, at::promised}) {
    add(point, joiner, cause::loss);
  }
  add(at::join_admitted, coordinator, cause::loss);
  add(at::notice_received, everybody, cause::told_to_leave);
  add(at::drained, everybody, cause::told_to_leave);
  // Frozen, and cut off, for longer than anybody waits.
  for (const fault_kind what : {fault_kind::stop, fault_kind::cut}) {
    for (const at point : {at::decided, at::commit_sent, at::stable, at::voted, at::commit_seen}) {
      add(point, coordinator, cause::none, 1, what);
    }
    for (const at point : {at::acked, at::grad_forwarded, at::applying, at::params_sent}) {
      add(point, {role::primary}, cause::none, 1, what);
    }
    add(at::published, coordinator, cause::loss, 1, what);
    add(at::plan_written, coordinator, cause::loss, 1, what);
    add(at::promised, {role::another}, cause::loss, 1, what);
  }
  return all;
}

// The suite's: what was thought of as the worst.
std::vector<sweep_case> few_cases() {
  constexpr fault_kind kill = fault_kind::kill;
  return {{at::commit_sent, 1, role::coordinator, cause::none, kill},
          {at::commit_sent, 2, role::coordinator, cause::none, kill},
          {at::decided, 1, role::coordinator, cause::none, kill},
          {at::stable, 1, role::coordinator, cause::none, kill},
          {at::grad_forwarded, 1, role::primary, cause::none, kill},
          {at::acked, 1, role::backup, cause::none, kill},
          {at::applying, 1, role::another, cause::none, kill},
          {at::params_sent, 1, role::primary, cause::none, kill},
          {at::plan_written, 1, role::coordinator, cause::loss, kill},
          {at::published, 1, role::substitute, cause::coordinators_loss, kill},
          {at::copy_half, 1, role::joiner, cause::loss, kill},
          {at::commit_sent, 1, role::coordinator, cause::none, fault_kind::stop}};
}

class sweep {
 public:
  sweep(std::string run, std::string orders, int launcher)
      : run_(std::move(run)),
        orders_(std::move(orders)),
        launcher_(launcher),
        watcher_(real_file_system(), run_),
        steps_(real_file_system(), join_path(run_, "steps.jsonl")) {}

  // "": it was hit.
  std::string strike(const sweep_case& c) {
    if (!until([&] { return whole(); })) return "the world is not whole: " + state();
    const protocol::plan plan = plan_now();
    const auto target = who_is(c.who, plan);
    if (!target)
      return fmt::format("nobody is {} in plan {}", names_of_roles[static_cast<int>(c.who)],
                         plan.number.value);
    const auto bystander = who_is_lost(c, *target, plan);
    const worker_order at_point{
        .id = ++orders_given_,
        .ends = false,
        .kind = c.what,
        .when = order_moment{c.named()},
        .lasts = c.what == fault_kind::cut ? std::optional<duration>(away) : std::nullopt,
        .towards = {},
        .seed = 1,
        .params = {}};
    std::string name = name_in(plan, *target);
    incarnation life = plan.find(*target)->life;
    std::optional<order_outbox> to;
    if (c.who == role::joiner) {
      // It is the bystander's next process.
      name = name_in(plan, *bystander);
      if (std::string why = lose(plan, *bystander); !why.empty()) return why;
      const bool came = until([&] {
        life = newest_life(name);
        if (life <= plan.find(*bystander)->life) return false;
        to = outbox(name, life);
        return to.has_value();
      });
      if (!came) return name + " was not started again: " + state();
    } else {
      to = outbox(name, life);
    }
    if (!to) return fmt::format("{} takes no orders in its life {}", name, life.value);
    if (status given = to->give(at_point); !given) return given.failure().message;
    const auto process = process_of(name);
    if (c.by == cause::told_to_leave) {
      if (!process) return name + " has no process";
      process->send(SIGTERM);
    } else if (c.by != cause::none && c.who != role::joiner) {
      if (std::string why = lose(plan, *bystander); !why.empty()) return why;
    }
    const bool hit = until([&] {
      const auto proofs = to->take_proofs();
      return std::ranges::any_of(proofs, [&](const proof& p) {
        return p.id == at_point.id && p.what == proof::kind::struck;
      });
    });
    if (!hit) return fmt::format("{} never came by: {}", name, state());
    if (c.what == fault_kind::stop && process) {
      pause(away);
      process->send(SIGCONT);
    }
    (void)until([&] { return plan_now().number > plan.number; });
    return "";
  }

  bool whole_again() {
    return until([&] { return whole(); });
  }
  std::string state() {
    look();
    std::string text = fmt::format("after {} steps, last one of a world of {} in plan {}",
                                   watcher_.steps(), world_, of_plan_);
    if (watcher_.has_plan()) {
      const protocol::plan p = plan_now();
      text += fmt::format("; plan {} of", p.number.value);
      for (const protocol::plan_member& m : p.members) text += " " + m.name;
      text += ": " + p.reason;
    }
    return text;
  }

 private:
  static void pause(std::chrono::milliseconds time) {
    pollfd nothing{-1, 0, 0};
    (void)poll(&nothing, 0, static_cast<int>(time.count()));
  }
  template <class Condition>
  bool until(Condition reached) {
    const time_since_start end = real_clock().now() + patience;
    while (true) {
      look();
      if (reached()) return true;
      if (real_clock().now() > end || !look_at(launcher_)) return false;
      pause(3ms);
    }
  }

  void look() {
    (void)watcher_.look(real_clock().now());
    for (const std::string& line : steps_.new_lines()) {
      const auto parsed = parse_json(line, "steps.jsonl");
      if (!parsed) continue;
      world_ = parsed->value("world", std::size_t{0});
      const std::uint32_t of = parsed->value("generation", std::uint32_t{0});
      of_this_plan_ = of == of_plan_ ? of_this_plan_ + 1 : 1;
      of_plan_ = of;
    }
  }
  protocol::plan plan_now() const {
    world_view world;
    watcher_.fill(world);
    return world.plan;
  }
  // All are there, and every block has all its copies.
  bool whole() const {
    if (!watcher_.has_plan() || world_ != members || of_this_plan_ < 3) return false;
    const protocol::plan plan = plan_now();
    return plan.number.value == of_plan_ && plan.members.size() == members &&
           std::ranges::all_of(plan.placement, [](const protocol::placed_blocks& part) {
             return part.backups.size() == 2;
           });
  }

  std::optional<member_id> who_is(role who, const protocol::plan& plan) const {
    if (who == role::coordinator) return plan.coordinator;
    if (who == role::substitute) {
      for (const protocol::plan_member& m : plan.members) {
        if (m.id != plan.coordinator) return m.id;
      }
    }
    for (const protocol::placed_blocks& part : plan.placement) {
      for (const protocol::plan_member& m : plan.members) {
        if (m.id == plan.coordinator) continue;
        const bool backs_up = std::ranges::find(part.backups, m.id) != part.backups.end();
        if (who == role::primary && part.primary == m.id) return m.id;
        if (who == role::backup && backs_up) return m.id;
        // The last one: a joiner's number is of one that was lost.
        const bool neither = part.primary != m.id && !backs_up;
        if ((who == role::another || who == role::joiner) && neither) return m.id;
      }
    }
    return std::nullopt;
  }
  // Who is lost to make the target come by.
  static std::optional<member_id> who_is_lost(const sweep_case& c, member_id target,
                                              const protocol::plan& plan) {
    if (c.by == cause::coordinators_loss) return plan.coordinator;
    if (c.who == role::joiner) return target;
    for (auto m = plan.members.rbegin(); m != plan.members.rend(); ++m) {
      if (m->id != target && m->id != plan.coordinator) return m->id;
    }
    return std::nullopt;
  }
  static std::string name_in(const protocol::plan& plan, member_id id) {
    return plan.find(id)->name;
  }

  std::string lose(const protocol::plan& plan, member_id id) {
    const auto process = process_of(name_in(plan, id));
    if (!process || !process->send(SIGKILL)) return name_in(plan, id) + " has no process";
    return "";
  }
  std::optional<held_process> process_of(const std::string& name) const {
    for (const int child : children_of(launcher_)) {
      if (worker_name(child) == name) return held_process::hold(child);
    }
    return std::nullopt;
  }
  std::optional<order_outbox> outbox(const std::string& name, incarnation life) const {
    auto opened = order_outbox::open(real_file_system(), orders_, name, life);
    if (!opened) return std::nullopt;
    return std::move(*opened);
  }
  incarnation newest_life(const std::string& name) const {
    incarnation newest{0};
    const auto entries = real_file_system().list(orders_);
    if (!entries) return newest;
    for (const directory_entry& e : *entries) {
      if (!e.name.starts_with(name + ".") || !e.name.ends_with(".bell")) continue;
      std::uint64_t life = 0;
      std::from_chars(e.name.data() + name.size() + 1, e.name.data() + e.name.size(), life);
      newest = std::max(newest, incarnation(life));
    }
    return newest;
  }

  std::string run_, orders_;
  int launcher_;
  run_watcher watcher_;
  line_follower steps_;
  std::size_t world_ = 0;
  std::uint32_t of_plan_ = 0, of_this_plan_ = 0;
  std::uint64_t orders_given_ = 0;
};

int run(const std::string& directory, const std::string& orders, int launcher, bool all) {
  sweep world(directory, orders, launcher);
  const char* wanted = std::getenv("CASE");
  const std::vector<sweep_case> every = all_cases();
  for (std::size_t i = 0; i < protocol_point_count; ++i) {
    const auto point = static_cast<protocol_point>(i);
    if (std::ranges::find(every, point, &sweep_case::point) != every.end()) continue;
    fmt::print("no case is at {}\n", actors::name_of(point));
    return 1;
  }
  std::size_t ran = 0, hit = 0;
  for (const sweep_case& c : all || wanted != nullptr ? every : few_cases()) {
    if (wanted != nullptr && c.text().find(wanted) == std::string::npos) continue;
    ++ran;
    const time_since_start begun = real_clock().now();
    const std::string missed = world.strike(c);
    if (missed.empty()) ++hit;
    if (!missed.empty() || std::getenv("VERBOSE") != nullptr) {
      fmt::print("{} ({} ms): {}\n", c.text(), (real_clock().now() - begun) / 1ms,
                 missed.empty() ? "hit" : missed);
      std::fflush(stdout);
    }
    if (!look_at(launcher)) break;
  }
  const bool whole = world.whole_again();
  fmt::print("{} cases, {} hit\n", ran, hit);
  if (!whole) fmt::print("the world is not whole: {}\n", world.state());
  return ran > 0 && hit == ran && whole ? 0 : 1;
}

}  // namespace
}  // namespace troupe::actors::chaos

int main(int count, char** words) {
  if (count != 5) return 64;
  return troupe::actors::chaos::run(words[1], words[2], std::atoi(words[3]),
                                    std::string(words[4]) == "all");
}
