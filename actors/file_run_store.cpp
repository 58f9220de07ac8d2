#include "actors/file_run_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "actors/checkpoint_blocks.hpp"
#include "actors/run_address.hpp"
#include "comm/handshake.hpp"
#include "model/checkpoint/folder.hpp"
#include "model/checkpoint/load.hpp"
#include "model/checkpoint/save.hpp"

namespace troupe::actors {
namespace {

// The order of a manifest's kinds: parameters, first moments, second moments.
protocol::saved_block to_message(const checkpoint::block_record& r) {
  return {{r.layer, r.block}, r.kinds[0], r.state, r.kinds[0], r.kinds[1], r.kinds[2]};
}
checkpoint::block_record from_message(const protocol::saved_block& b) {
  return {b.block.layer, b.block.block, {b.parameters, b.first_moments, b.second_moments}, b.state};
}

// A member without the directory could never publish a plan; this version has no use for one.
status all_share(const probe_verdict& verdict) {
  if (verdict.refused) return *verdict.refused;
  if (verdict.warnings.empty()) return done{};
  return error{
      exit_code::cannot_use,
      verdict.warnings.front() + "; choose a directory that all members share with --run-dir"};
}

}  // namespace

file_run_store::file_run_store(file_system& files, const run_directory& directory,
                               const model::model_layout& layout, helper_thread& worker,
                               post_function post, file_store_settings settings)
    : files_(files),
      directory_(directory),
      layout_(layout),
      worker_(worker),
      post_(std::move(post)),
      settings_(std::move(settings)) {}

template <class T>
void file_run_store::ask(std::function<result<T>()> work, answer<T> then) {
  worker_.add([back = post_.to_loop(), work = std::move(work), then = std::move(then)] {
    back([answered = work(), then] { then(answered); });
  });
}

result<plan_chain*> file_run_store::chain() {
  if (!chain_) {
    result<plan_chain> opened = plan_chain::open(files_, directory_.path(), directory_.run_id());
    if (!opened) return opened.failure();
    chain_.emplace(std::move(*opened));
  }
  return &*chain_;
}

void file_run_store::ask_probe(std::uint64_t probe, answer<done> then) {
  ask<done>([this, probe] { return ask_probe_now(fmt::format("{}", probe)); }, std::move(then));
}

status file_run_store::ask_probe_now(const std::string& probe) {
  if (status removed = remove_probes(files_, directory_.path()); !removed) return removed;
  question_.clear();
  for (const std::byte b : comm::fresh_nonce()) question_ += fmt::format("{:02x}", b);
  return actors::ask_probe(files_, directory_.path(), probe, question_);
}

void file_run_store::answer_probe(std::uint64_t probe, const probed_member& me, answer<done> then) {
  ask<done>(
      [this, probe, me] {
        return actors::answer_probe(files_, directory_.path(), fmt::format("{}", probe), me);
      },
      std::move(then));
}

void file_run_store::judge_probe(std::uint64_t probe, const std::vector<probed_member>& members,
                                 answer<done> then) {
  answer_probe(probe, members.front(), [this, probe, members, then](const result<done>& mine) {
    if (!mine) return then(mine.failure());
    judge_when_answered(fmt::format("{}", probe), members,
                        real_clock().now() + settings_.probe_patience, then);
  });
}

void file_run_store::judge_when_answered(const std::string& probe,
                                         const std::vector<probed_member>& members,
                                         time_since_start until, answer<done> then) {
  ask<std::optional<done>>(
      [this, probe, members, until]() -> result<std::optional<done>> {
        const probe_facts facts = read_probe(files_, directory_.path(), probe, question_, members);
        const bool complete = std::ranges::all_of(
            facts.answers, [](const std::optional<probe_answer>& a) { return a.has_value(); });
        if (!complete && real_clock().now() < until) {
          std::this_thread::sleep_for(settings_.ask_again);
          return std::optional<done>();
        }
        const status ended = end_probe(files_, directory_.path(), probe);
        const status fit = all_share(judge(facts));
        if (!fit) return fit.failure();
        if (!ended) return ended.failure();
        return std::optional(done{});
      },
      [this, probe, members, until, then](const result<std::optional<done>>& judged) {
        if (!judged) return then(judged.failure());
        if (!*judged) return judge_when_answered(probe, members, until, then);
        then(done{});
      });
}

void file_run_store::find_convener(answer<comm::address> then) {
  ask<std::optional<comm::address>>(
      [this]() -> result<std::optional<comm::address>> {
        result<std::optional<run_address>> told = read_address(files_, directory_.path());
        if (!told) return told.failure();
        if (!*told || (*told)->run_id != directory_.run_id()) {
          std::this_thread::sleep_for(settings_.ask_again);
          return std::optional<comm::address>();
        }
        return std::optional(comm::address{(*told)->host, (*told)->port});
      },
      [this, then](result<std::optional<comm::address>> found) {
        if (!found) return then(found.failure());
        if (!*found) return find_convener(then);
        then(**found);
      });
}

// Who convenes announces itself before there is a plan: the address is of the one that it will
// make.
void file_run_store::announce(const comm::address& here, generation plan, answer<done> then) {
  ask<done>(
      [this, here, plan]() -> status {
        result<plan_chain*> plans = chain();
        if (!plans) return plans.failure();
        const generation number = plan == generation() ? (*plans)->next_number() : plan;
        const std::uint16_t http_port = settings_.http_port ? settings_.http_port() : 0;
        result<bool> told = publish_address(files_, directory_.path(),
                                            {.run_id = directory_.run_id(),
                                             .plan = number,
                                             .host = here.host,
                                             .port = here.port,
                                             .http_port = http_port});
        if (!told) return told.failure();
        return done{};
      },
      std::move(then));
}

void file_run_store::publish_plan(const protocol::plan& wanted, answer<protocol::plan> then) {
  ask<protocol::plan>(
      [this, next = wanted]() mutable -> result<protocol::plan> {
        result<plan_chain*> plans = chain();
        if (!plans) return plans.failure();
        next.number = (*plans)->next_number();
        next.parent = (*plans)->head_hash();
        result<plan_chain::outcome> published = (*plans)->publish(next);
        if (!published) return published.failure();
        if (*published == plan_chain::outcome::lost) {
          return error{exit_code::cannot_use,
                       fmt::format("{}: somebody else published plan {} first; is another start of "
                                   "this run under way?",
                                   directory_.path(), next.number.value)};
        }
        return next;
      },
      std::move(then));
}

void file_run_store::publish_next(const protocol::plan& wanted, answer<protocol::plan> then) {
  ask<protocol::plan>(
      [this, wanted]() -> result<protocol::plan> {
        result<plan_chain*> opened = chain();
        if (!opened) return opened.failure();
        plan_chain& plans = **opened;
        if (result<bool> newer = plans.refresh(); !newer) return newer.failure();
        if (plans.next_number() == wanted.number && plans.head_hash() == wanted.parent) {
          result<plan_chain::outcome> published = plans.publish(wanted);
          if (!published) return published.failure();
        }
        return plans.head()->plan;
      },
      std::move(then));
}

void file_run_store::newest_plan(answer<protocol::plan> then) {
  ask<protocol::plan>(
      [this]() -> result<protocol::plan> {
        result<plan_chain*> opened = chain();
        if (!opened) return opened.failure();
        if (result<bool> newer = (*opened)->refresh(); !newer) return newer.failure();
        ensure((*opened)->head().has_value(), "the newest plan was asked for before the first");
        return (*opened)->head()->plan;
      },
      std::move(then));
}

void file_run_store::choose_start(answer<starting_point> then) {
  post_.to_loop()([from = settings_.start, then] { then(from); });
}

void file_run_store::load(std::uint64_t step, const member_share& share, computation& into,
                          answer<done> then) {
  // Nothing else touches the computation's memory until this is answered.
  ask<done>(
      [this, step, share, &into]() -> status {
        const std::string folder = join_path(settings_.checkpoints, checkpoint::folder_name(step));
        result<checkpoint::manifest> loaded =
            checkpoint::load(files_, folder, layout_, places_in(into, share));
        if (!loaded) return loaded.failure();
        return done{};
      },
      std::move(then));
}

checkpoint::save_place file_run_store::place(std::uint64_t step, const std::string& attempt) const {
  return {settings_.checkpoints, step, attempt};
}

void file_run_store::begin_save(std::uint64_t step, answer<std::string> folder) {
  ask<std::string>(
      [this, step]() -> result<std::string> {
        result<plan_chain*> plans = chain();
        if (!plans) return plans.failure();
        const std::string attempt = fmt::format("plan-{}", (*plans)->next_number().value);
        save_facts facts;
        facts.step = step;
        auto begun = checkpoint::begin_save(files_, place(step, attempt), settings_.about(facts));
        if (!begun) return begun.failure();
        there_ = *std::move(begun);
        return there_ ? std::string() : attempt;
      },
      std::move(folder));
}

void file_run_store::write_blocks(std::uint64_t step, const std::string& folder,
                                  const std::vector<block_id>& blocks, computation& from,
                                  answer<protocol::save_share> then) {
  ask<protocol::save_share>(
      [this, step, folder, blocks, &from]() -> result<protocol::save_share> {
        protocol::save_share share;
        const std::vector<checkpoint::block_to_write> values = blocks_to_write(from, blocks);
        for (const checkpoint::block_to_write& value : values) {
          const bool finite = std::ranges::all_of(value.values.parameters,
                                                  [](float p) { return std::isfinite(p); });
          if (!finite && share.not_finite_in.empty()) {
            share.not_finite_in = layout_[value.layer].name;
          }
        }
        if (folder.empty()) {
          for (const auto& value : values) {
            share.blocks.push_back(to_message(checkpoint::record_of(value)));
          }
          return share;
        }
        auto written = checkpoint::write_blocks(files_, place(step, folder), layout_, values);
        if (!written) return written.failure();
        for (const checkpoint::block_record& r : *written) share.blocks.push_back(to_message(r));
        return share;
      },
      std::move(then));
}

void file_run_store::finish_save(const std::string& folder, const save_facts& facts,
                                 answer<saved_hashes> then) {
  ask<saved_hashes>([this, folder, facts] { return finish(folder, facts); }, std::move(then));
}

result<saved_hashes> file_run_store::finish(const std::string& folder, const save_facts& facts) {
  std::vector<checkpoint::block_record> records;
  for (const protocol::saved_block& b : facts.blocks) records.push_back(from_message(b));
  const checkpoint::facts about = settings_.about(facts);
  if (!folder.empty()) {
    auto saved = checkpoint::finish_save(files_, place(facts.step, folder), about, records);
    if (!saved) return saved.failure();
    return saved_hashes{saved->weights_hash, saved->state_hash, saved->folder, saved->bytes, false};
  }
  auto now = checkpoint::make_manifest(about, records);
  if (!now) return now.failure();
  if (!there_) return saved_hashes{now->weights_hash, now->state_hash, "", 0, false};
  auto same = checkpoint::same_checkpoint(place(facts.step, ""), *there_, *now);
  if (!same) return same.failure();
  return saved_hashes{same->weights_hash, same->state_hash, same->folder, same->bytes, true};
}

void file_run_store::abandon_save(std::uint64_t step, const std::string& folder) {
  if (folder.empty()) return;
  worker_.add([this, step, folder] {
    (void)checkpoint::abandon_save(files_, place(step, folder));  // the cause is told already
  });
}

}  // namespace troupe::actors
