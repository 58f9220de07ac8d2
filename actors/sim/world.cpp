#include "actors/sim/world.hpp"

#include <algorithm>
#include <utility>

#include "actors/stopwatch.hpp"
#include "config/base/error.hpp"
#include "config/base/mixing.hpp"

namespace troupe::actors::sim {
namespace {

comm::secret the_secret() {
  std::array<std::byte, comm::secret::size> bytes{};
  bytes.fill(std::byte{7});
  return comm::secret(bytes);
}

constexpr const char* run_id = "simulated";

}  // namespace

// Passes on what living members come by: one that was killed in the middle of a handler still runs
// to the handler's end, and what it had in its mailboxes when it is torn down.
class world::living_points final : public world_watcher {
 public:
  living_points(world_watcher& to, const std::vector<std::unique_ptr<one>>& members)
      : to_(to), members_(members) {}
  bool all_gone = false;

  void reached(member_id who, protocol_point at, std::uint64_t step,
               std::optional<member_id> to) override {
    if (lives(who)) to_.reached(who, at, step, to);
  }
  void plan_adopted(member_id who, const protocol::plan& p) override {
    if (lives(who)) to_.plan_adopted(who, p);
  }
  void node_taken(member_id who, std::uint64_t step, const node_key& key) override {
    if (lives(who)) to_.node_taken(who, step, key);
  }
  void sum_held_by_backup(member_id who, std::uint64_t step, block_id block,
                          const hash128& hash) override {
    if (lives(who)) to_.sum_held_by_backup(who, step, block, hash);
  }
  void voted(member_id who, const protocol::vote& v) override {
    if (lives(who)) to_.voted(who, v);
  }
  void record_seen(member_id who, const protocol::record_notice& n) override {
    if (lives(who)) to_.record_seen(who, n);
  }
  void block_applied(member_id who, block_id block, std::uint64_t version) override {
    if (lives(who)) to_.block_applied(who, block, version);
  }
  void layer_opened(member_id who, std::uint64_t step, std::uint32_t layer) override {
    if (lives(who)) to_.layer_opened(who, step, layer);
  }
  void copy_verified(member_id who, block_id block, std::uint64_t version) override {
    if (lives(who)) to_.copy_verified(who, block, version);
  }
  void promised(member_id who, generation next) override {
    if (lives(who)) to_.promised(who, next);
  }
  void committed(member_id who, std::uint64_t step) override {
    if (lives(who)) to_.committed(who, step);
  }
  void layer_computed(member_id who, std::uint64_t step, std::uint32_t layer) override {
    if (lives(who)) to_.layer_computed(who, step, layer);
  }

 private:
  bool lives(member_id who) const { return !all_gone && !members_[who.value]->killed; }

  world_watcher& to_;
  const std::vector<std::unique_ptr<one>>& members_;
};

reference_settings toy_reference_settings() {
  return {.max_norm = 1.0, .skip_nonfinite = true, .rate = [](std::uint64_t step) {
            return 0.01f / static_cast<float>(1 + step % 7);
          }};
}

world_parts usual_parts() {
  world_parts parts;
  parts.computation = [](member_id, const toy_shape& toy, timeline& time, const clock_source& clock,
                         const toy_speed& speed, std::function<void(std::function<void()>)> post,
                         std::function<void(std::uint64_t, std::uint32_t)> computed) {
    return std::make_unique<toy_computation>(toy, time, clock, speed, std::move(post),
                                             std::move(computed));
  };
  return parts;
}

world::world(const world_settings& settings, world_watcher& watcher, const world_parts& parts)
    : settings_(settings),
      network_(settings.seed, settings.network),
      store_(time_, clock_),
      random_(settings.seed ^ 0x5eed),
      parts_(parts),
      points_(std::make_unique<living_points>(watcher, members_)) {
  for (std::uint32_t i = 0; i < settings.members; ++i) {
    members_.push_back(std::make_unique<one>());
    start_member(i, incarnation(1), false);
  }
  plan_resets();
}

// A process begins in this slot.
void world::start_member(std::size_t i, incarnation life, bool joins) {
  using namespace std::chrono_literals;
  // Between one and two units, anew each time: members drift against each other.
  const auto about = [this](std::chrono::nanoseconds unit) {
    return [this, unit] {
      return unit + std::chrono::nanoseconds(next_mixed(random_) %
                                             static_cast<std::uint64_t>(unit.count()));
    };
  };
  const toy_speed speed{about(200us * settings_.slowness), about(10us * settings_.slowness),
                        about(50us)};
  const member_id id(static_cast<std::uint32_t>(i));
  one& m = *members_[i];
  m.life = life;
  m.killed = m.frozen = m.exits = false;
  const std::string host = "host-" + std::to_string(i / settings_.members_per_host);
  comm::simulated_network::process process = network_.add_process(host);
  m.process = process.id;
  m.transport = std::move(process.transport);
  if (parts_.transport) m.transport = parts_.transport(id, std::move(m.transport));
  if (of_process_.size() <= process.id.value) of_process_.resize(process.id.value + 1);
  of_process_[process.id.value] = i;
  worker_settings worker;
  worker.me.run_id = run_id;
  worker.me.slot = "worker-" + std::to_string(i);
  worker.me.wish = id;
  worker.me.life = life;
  worker.me.address = comm::to_text(m.transport->control().local_address());
  worker.me.host = worker.me.domain = host;
  worker.me.numerics_class = "toy";
  worker.convenes = i == 0 && !joins;
  worker.joins = joins;
  worker.expected = settings_.members;
  worker.convener = member_id(0);
  worker.virtual_ranks = settings_.toy.virtual_ranks;
  worker.backups = settings_.backups;
  // Both ways to come in are to be seen.
  if (settings_.seed % 2 == 0) worker.link_first = std::chrono::milliseconds(10);
  const reference_settings in_force = toy_reference_settings();
  coordinator_settings coordination;
  coordination.steps = settings_.steps;
  coordination.max_norm = in_force.max_norm;
  coordination.skip_nonfinite = in_force.skip_nonfinite;
  coordination.max_skipped_steps = 10;
  coordination.validation_freq = settings_.validation_freq;
  coordination.rate = in_force.rate;
  introductions_settings gate{.me = worker.me, .key = the_secret()};
  gate.patience = settings_.patience;
  parts_.adjust(id, worker, gate);
  gate.me = worker.me;
  gate.number = [this] {
    comm::nonce n;
    for (std::byte& b : n) b = static_cast<std::byte>(next_mixed(random_));
    return n;
  };
  // What the device and the store finish for an earlier process in this slot goes nowhere.
  const auto post = [this, i, life](std::function<void()> work) {
    one& of = *members_[i];
    if (!of.killed && of.life == life && of.body) of.body->driver().post(std::move(work));
  };
  m.records = std::make_unique<memory_recorder>(id, post, store_, worker.suspect,
                                                [&m] { return !m.killed; });
  m.view = store_.view(post);
  m.body = std::make_unique<member>(
      member_settings{clock_, *m.transport, *points_, worker, coordination, gate}, [&](loop& on) {
        on.on_post([this, i] { mark(i); });
        auto device = parts_.computation(id, settings_.toy, time_, clock_, speed, post,
                                         [this, id](std::uint64_t step, std::uint32_t layer) {
                                           points_->layer_computed(id, step, layer);
                                         });
        m.device = device.get();
        return member_outside{*m.view, *m.records, std::move(device)};
      });
  m.body->start();
  mark(i);
}

void world::revive(std::size_t i) {
  one& m = *members_[i];
  ensure(!lives(i), "a process was started in the slot of one that lives");
  kill(i, std::nullopt);
  m.body.reset();  // first the member, which uses the rest
  m.transport.reset();
  m.view.reset();
  start_member(i, incarnation(m.life.value + 1), true);
}

std::size_t world::add_member() {
  const std::size_t i = members_.size();
  members_.push_back(std::make_unique<one>());
  start_member(i, incarnation(1), true);
  return i;
}

void world::freeze(std::size_t i) {
  one& m = *members_[i];
  if (m.killed || m.frozen) return;
  m.frozen = true;
  m.body->driver().leave();
  network_.stop(m.process);
  set_timer(i);
}

void world::thaw(std::size_t i) {
  one& m = *members_[i];
  if (m.killed || !m.frozen) return;
  m.frozen = false;
  network_.continue_process(m.process);
  set_timer(i);
  mark(i);
}

void world::plan_resets() {
  if (settings_.members < 2) return;
  const auto within = static_cast<std::uint64_t>(settings_.resets_within.count());
  for (std::uint32_t i = 0; i < settings_.resets; ++i) {
    const time_since_start when(next_mixed(random_) % (within + 1));
    const std::size_t a = next_mixed(random_) % settings_.members;
    // Mostly with the coordinator, whom everybody talks to.
    const std::size_t other = next_mixed(random_) % (2 * std::uint64_t{settings_.members});
    const std::size_t b = other < settings_.members ? other : 0;
    if (a == b) continue;
    time_.at(when,
             [this, a, b] { network_.reset_links(members_[a]->process, members_[b]->process); });
  }
}

world::~world() {
  points_->all_gone = true;
  // Members first, each with its transport; the store's and network's views end with them.
  for (auto& m : members_) {
    m->body.reset();
    m->transport.reset();
  }
}

void world::mark(std::size_t i) {
  one& m = *members_[i];
  if (m.dirty || m.killed || m.frozen) return;
  m.dirty = true;
  dirty_.push_back(i);
}

void world::note(std::uint64_t what) {
  fingerprint_ = (fingerprint_ ^ what) * 0x100000001b3ULL;
  fingerprint_ ^= fingerprint_ >> 29;
}

void world::set_timer(std::size_t i) {
  one& m = *members_[i];
  const std::optional<time_since_start> due =
      m.killed || m.frozen ? std::nullopt : m.body->next_timer();
  if (due == m.timer) return;
  if (m.timer) timers_.erase({*m.timer, i});
  m.timer = due;
  if (due) timers_.insert({*due, i});
}

// A process whose member has ended exits: its port refuses.
void world::exit_soon(std::size_t i) {
  one& m = *members_[i];
  if (std::exchange(m.exits, true)) return;
  m.links_at_end = network_.open_links(m.process);
  time_.at(clock_.now() + std::chrono::milliseconds(2),
           [this, process = m.process] { network_.kill(process, std::chrono::milliseconds(1)); });
}

void world::run_dirty() {
  while (!dirty_.empty()) {
    std::vector<std::size_t> now_dirty;
    now_dirty.swap(dirty_);
    for (const std::size_t i : now_dirty) {
      one& m = *members_[i];
      m.dirty = false;
      if (m.killed || m.frozen) continue;
      note(i + 1);
      note(static_cast<std::uint64_t>(clock_.now().count()));
      ++turns_;
      const double begun = settings_.measure ? thread_cpu_seconds() : 0;
      while (!m.killed && !m.frozen && m.body->turn()) {
      }
      if (settings_.measure) m.cpu_seconds += thread_cpu_seconds() - begun;
      set_timer(i);
      if (!m.killed && m.body->ended()) exit_soon(i);
    }
    for (const comm::process_id p : network_.take_ready()) mark(of_process_[p.value]);
  }
}

bool world::step_on() {
  run_dirty();
  std::optional<time_since_start> next = network_.next_event();
  const auto sooner = [&next](std::optional<time_since_start> other) {
    if (other && (!next || *other < *next)) next = other;
  };
  sooner(time_.next());
  if (!timers_.empty()) sooner(timers_.begin()->first);
  if (!next) return false;
  const time_since_start to = std::max(*next, clock_.now());
  clock_.advance(to - clock_.now());
  network_.advance_to(to);
  time_.run_until(to);
  for (auto it = timers_.begin(); it != timers_.end() && it->first <= to; ++it) mark(it->second);
  for (const comm::process_id p : network_.take_ready()) mark(of_process_[p.value]);
  return true;
}

void world::run(time_since_start at_most) {
  const auto all_ended = [this] {
    return std::ranges::all_of(members_,
                               [](const auto& m) { return m->killed || m->body->ended(); });
  };
  while (!all_ended() && clock_.now() <= at_most) {
    if (!step_on()) break;
  }
}

void world::stop(std::size_t i, const std::string& why) {
  members_[i]->body->ask_to_stop(why, false);
  mark(i);
}

void world::drain(std::size_t i, const std::string& why) {
  members_[i]->body->ask_to_leave(why);
  mark(i);
}

void world::kill(std::size_t i, std::optional<std::chrono::nanoseconds> noticed_after) {
  one& m = *members_[i];
  if (m.killed) return;
  network_.kill(m.process, noticed_after);
  m.killed = true;
  m.body->driver().leave();
  set_timer(i);
}

bool world::somebody_finished() const {
  if (store_.plans.empty()) {
    return std::ranges::all_of(members_, [](const auto& m) {
      return !m->killed && m->body->ended() && m->body->ended()->code == exit_code::ok;
    });
  }
  return std::ranges::any_of(store_.plans.back().members, [this](const protocol::plan_member& in) {
    const one& m = *members_[in.id.value];
    const std::optional<ending>& how = m.body->ended();
    return !m.killed && m.life == in.life && how &&
           (how->code == exit_code::ok || how->code == exit_code::interrupted);
  });
}

bool world::newest_plan_is_covered(const std::function<bool(std::size_t)>& there) const {
  const protocol::plan& plan = store_.plans.back();
  const auto stays = [&](member_id id) { return lives(*plan.find(id)) && there(id.value); };
  return std::ranges::all_of(plan.placement, [&](const protocol::placed_blocks& part) {
    return stays(part.primary) || std::ranges::any_of(part.backups, stays);
  });
}

bool world::over() const {
  if (!somebody_finished()) return false;
  if (store_.plans.empty()) return true;
  return std::ranges::all_of(store_.plans.back().members, [this](const protocol::plan_member& m) {
    const one& member = *members_[m.id.value];
    return member.killed || member.life != m.life || member.body->ended();
  });
}

std::string world::trouble() const {
  for (const auto& m : members_) {
    const std::optional<ending>& how = m->body->ended();
    if (!m->killed && how && how->our_own && how->code == exit_code::defect) return how->why;
  }
  if (somebody_finished()) return over() ? "" : "a member stands still";
  for (const bool own : {true, false}) {
    for (const auto& m : members_) {
      const std::optional<ending>& how = m->body->ended();
      if (!m->killed && how && how->our_own == own) return how->why;
    }
  }
  return "the world stands still";
}

}  // namespace troupe::actors::sim
