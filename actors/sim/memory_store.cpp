#include "actors/sim/memory_store.hpp"

#include <algorithm>

#include "actors/plan_text.hpp"

namespace troupe::actors::sim {

class memory_store_view final : public run_store {
 public:
  memory_store_view(memory_store& shared, std::function<void(std::function<void()>)> post)
      : shared_(shared), post_(std::move(post)) {}

  // Virtual disks have no faults of this kind yet.
  void ask_probe(std::uint64_t, answer<done> then) override { fit(std::move(then)); }
  void answer_probe(std::uint64_t, const probed_member&, answer<done> then) override {
    fit(std::move(then));
  }
  void judge_probe(std::uint64_t, const std::vector<probed_member>&, answer<done> then) override {
    fit(std::move(then));
  }
  void find_convener(answer<comm::address> then) override {
    later([this, then = std::move(then)]() mutable {
      if (!shared_.convener) return find_convener(std::move(then));
      then(*shared_.convener);
    });
  }
  void announce(const comm::address& here, generation, answer<done> then) override {
    later([this, here, then = std::move(then)] {
      shared_.convener = here;
      then(done{});
    });
  }
  void publish_plan(const protocol::plan& wanted, answer<protocol::plan> then) override {
    later([this, wanted, then = std::move(then)] {
      protocol::plan next = wanted;
      next.number = generation(static_cast<std::uint32_t>(shared_.plans.size()));
      if (!shared_.plans.empty()) next.parent = plan_hash(print_plan(shared_.plans.back()));
      shared_.plans.push_back(next);
      then(next);
    });
  }
  void publish_next(const protocol::plan& wanted, answer<protocol::plan> then) override {
    later([this, wanted, then = std::move(then)] {
      if (wanted.number.value == shared_.plans.size()) {
        if (wanted.parent != plan_hash(print_plan(shared_.plans.back()))) {
          shared_.not_fenced = "plan " + std::to_string(wanted.number.value) +
                               " was published by somebody who did not know the one before";
        }
        shared_.plans.push_back(wanted);
      }
      then(shared_.plans.back());
    });
  }
  void newest_plan(answer<protocol::plan> then) override {
    later([this, then = std::move(then)] { then(shared_.plans.back()); });
  }
  void choose_start(answer<starting_point> then) override {
    later([this, then = std::move(then)] {
      starting_point from;
      from.finished = shared_.finished;
      if (!shared_.saves.empty()) {
        const save_facts& newest = shared_.saves.rbegin()->second.facts;
        from.step = newest.step;
        from.updates = newest.updates;
        from.tokens = newest.tokens;
      }
      then(from);
    });
  }
  void load(std::uint64_t step, const member_share& share, computation& into,
            answer<done> then) override {
    later([this, step, share, &into, then = std::move(then)] {
      const auto saved = shared_.saves.find(step);
      if (saved == shared_.saves.end()) {
        return then(error{exit_code::io, "there is no save of step " + std::to_string(step)});
      }
      for (const auto& [id, state] : saved->second.blocks) {
        const std::span<std::byte> all = into.parameters(id);
        std::ranges::copy(std::as_bytes(std::span(state.parameters)), all.begin());
        const block_memory held = into.memory(id);
        std::ranges::copy(state.first_moments, held.first_moments.begin());
        std::ranges::copy(state.second_moments, held.second_moments.begin());
      }
      then(done{});
    });
  }
  void begin_save(std::uint64_t step, answer<std::string> folder) override {
    later([step, folder = std::move(folder)] { folder("step-" + std::to_string(step)); });
  }
  void write_blocks(std::uint64_t step, const std::string& folder,
                    const std::vector<block_id>& blocks, computation& from,
                    answer<protocol::save_share> then) override {
    later([this, step, folder, blocks, &from, then = std::move(then)] {
      protocol::save_share share;
      share.step = step;
      for (const block_id id : blocks) {
        const block_memory m = from.memory(id);
        toy_state state;
        std::ranges::copy(m.parameters, state.parameters.begin());
        std::ranges::copy(m.first_moments, state.first_moments.begin());
        std::ranges::copy(m.second_moments, state.second_moments.begin());
        if (!folder.empty()) shared_.saves[step].blocks[id] = state;
        const block_hashes hashes = hashes_of(state);
        share.blocks.push_back({id, hashes.weights, hashes.state, {}, {}, {}});
      }
      then(share);
    });
  }
  void finish_save(const std::string& folder, const save_facts& facts,
                   answer<saved_hashes> then) override {
    later([this, folder, facts, then = std::move(then)] {
      if (!folder.empty()) shared_.saves[facts.step].facts = facts;
      hasher weights, state;
      for (const protocol::saved_block& b : facts.blocks) {
        weights.add(b.weights);
        state.add(b.state);
      }
      saved_hashes hashes;
      hashes.weights = weights.finish();
      hashes.state = state.finish();
      hashes.folder = folder;
      then(hashes);
    });
  }
  void abandon_save(std::uint64_t step, const std::string& folder) override {
    if (!folder.empty()) shared_.saves.erase(step);
  }

 private:
  void fit(answer<done> then) {
    later([then = std::move(then)] { then(done{}); });
  }
  void later(std::function<void()> what) {
    shared_.time_.at(shared_.clock_.now() + shared_.answer_time,
                     [alive = std::weak_ptr(alive_), this, what = std::move(what)] {
                       if (!alive.expired()) post_(what);
                     });
  }

  memory_store& shared_;
  std::function<void(std::function<void()>)> post_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

std::unique_ptr<run_store> memory_store::view(std::function<void(std::function<void()>)> post) {
  return std::make_unique<memory_store_view>(*this, std::move(post));
}

}  // namespace troupe::actors::sim
