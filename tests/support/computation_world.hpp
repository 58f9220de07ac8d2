// Several members' computations in one process, driven step by step without actors and without a
// transport: nodes are copied into slots, sums to backups, parameters to whoever computes. What the
// protocol does when all goes well, in the plainest order.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <vector>

#include "actors/model_computation.hpp"
#include "actors/protocol/decision.hpp"
#include "config/base/tree.hpp"

namespace troupe::tests {

// The loop: calls from all threads, carried out by the test's.
class test_loop {
 public:
  void post(std::function<void()> call) {
    std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
    wake_.notify_one();
  }
  void run_until(const std::function<bool()>& enough) {
    while (!enough()) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return !calls_.empty(); });
      const std::function<void()> call = std::move(calls_.front());
      calls_.pop_front();
      lock.unlock();
      call();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> calls_;
};

// Who computes and who holds what: virtual ranks of each member, in order; the holders go round.
struct world_plan {
  std::vector<std::uint32_t> leaves;
  std::size_t backups = 0;
  std::size_t first_holder = 0;
};

class computation_world {
 public:
  using block_id = actors::block_id;
  using record = actors::protocol::decision_record;

  computation_world(const model::description& d, const actors::trainer_settings& settings,
                    const actors::sample_sources& sources, std::size_t members, int threads)
      : settings_(settings), layout_(model::make_layout(d)) {
    for (std::size_t m = 0; m < members; ++m) {
      devices_.push_back(compute::make_cpu_executor(threads));
      members_.push_back(std::make_unique<actors::model_computation>(
          *devices_.back(), d, settings, sources,
          [this](std::function<void()> call) { loop_.post(std::move(call)); }));
    }
    for (std::uint32_t l = 0; l < layout_.size(); ++l) {
      for (std::uint32_t b = 0; b < layout_[l].blocks(); ++b) blocks_.push_back({l, b});
    }
  }

  actors::model_computation& member(std::size_t m) { return *members_[m]; }
  test_loop& loop() { return loop_; }
  const std::vector<block_id>& blocks() const { return blocks_; }
  std::size_t working() const { return plan_.leaves.size(); }  // members of the plan

  // Waits until `begin(done)` has called its completion; gives what went wrong.
  template <class Begin>
  std::exception_ptr wait(const Begin& begin) {
    std::optional<std::exception_ptr> told;
    begin([&](std::exception_ptr problem) { told = problem; });
    EXPECT_FALSE(told) << "a completion was called from within the call";
    loop_.run_until([&] { return told.has_value(); });
    return *told;
  }
  template <class Answer, class Begin>
  Answer ask(const Begin& begin) {
    std::optional<Answer> told;
    begin([&](std::exception_ptr problem, Answer answer) {
      EXPECT_FALSE(problem);
      told = std::move(answer);
    });
    EXPECT_FALSE(told) << "an answer came from within the call";
    loop_.run_until([&] { return told.has_value(); });
    return *told;
  }

  // The next plan: shares for all members, and state copied to those that hold more than before.
  void adopt(const world_plan& plan) {
    struct copy {
      std::vector<std::byte> parameters, first, second;
    };
    std::vector<copy> state;
    const bool has_state = !plan_.leaves.empty();
    for (std::size_t i = 0; has_state && i < blocks_.size(); ++i) {
      const actors::block_memory m = members_[holders(i).front()]->memory(blocks_[i]);
      const auto bytes = [](std::span<const float> v) {
        const auto b = std::as_bytes(v);
        return std::vector<std::byte>(b.begin(), b.end());
      };
      state.push_back({bytes(m.parameters), bytes(m.first_moments), bytes(m.second_moments)});
    }
    plan_ = plan;
    ASSERT_EQ(std::accumulate(plan.leaves.begin(), plan.leaves.end(), std::size_t{0}),
              settings_.batch.virtual_ranks);
    for (std::size_t m = 0; m < plan.leaves.size(); ++m) members_[m]->adopt(share(m));
    settle();
    for (std::size_t i = 0; has_state && i < blocks_.size(); ++i) {
      for (std::size_t m = 0; m < plan.leaves.size(); ++m) {
        const bool holds = std::ranges::count(holders(i), m) > 0;
        if (holds || plan.leaves[m] > 0) {
          put(state[i].parameters, members_[m]->parameters(blocks_[i]));
        }
        if (!holds) continue;
        const actors::block_memory to = members_[m]->memory(blocks_[i]);
        put(state[i].first, std::as_writable_bytes(to.first_moments));
        put(state[i].second, std::as_writable_bytes(to.second_moments));
      }
    }
  }

  void initialize() {
    for (std::size_t m = 0; m < working(); ++m) {
      EXPECT_FALSE(wait([&](auto done) { members_[m]->initialize(done); }));
    }
  }
  void load(std::uint64_t step) {
    for (std::size_t m = 0; m < working(); ++m) {
      EXPECT_FALSE(wait([&](auto done) { members_[m]->load(step, done); }));
    }
  }

  // Computes on all members, and routes every node to its primary as soon as it is complete.
  std::vector<actors::leaf_loss> compute(std::uint64_t step) {
    std::size_t finished = 0;
    std::vector<actors::leaf_loss> losses;
    for (std::size_t m = 0; m < working(); ++m) {
      const actors::member_share mine = share(m);
      const auto nodes = complete_nodes(mine.first_leaf, mine.leaves, mine.virtual_ranks);
      members_[m]->start(
          step,
          {.micro_batch_done = {},
           .nodes_ready = [this, m, nodes](std::uint32_t layer,
                                           std::uint8_t source) { send(m, nodes, layer, source); },
           .finished =
               [&](std::exception_ptr problem, std::vector<actors::leaf_loss> own) {
                 EXPECT_FALSE(problem);
                 losses.insert(losses.end(), own.begin(), own.end());
                 ++finished;
               }});
      for (std::uint32_t l = 0; l < layout_.size(); ++l) members_[m]->open(l);
    }
    loop_.run_until([&] { return finished == working(); });
    std::ranges::sort(losses, {}, &actors::leaf_loss::leaf);
    return losses;
  }

  // Sums, copies to the backups, and the record that follows.
  record reduce_and_decide(std::uint64_t step, std::uint64_t updates,
                           const std::vector<actors::leaf_loss>& losses) {
    std::vector<double> squares, sums, counts;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const block_id b = blocks_[i];
      actors::model_computation& primary = *members_[holders(i).front()];
      const auto facts = ask<actors::sum_facts>([&](auto done) { primary.reduce(b, step, done); });
      squares.push_back(facts.squares);
      for (const std::size_t m : holders(i)) {
        if (m == holders(i).front()) continue;
        put(primary.sum(b, step), members_[m]->sum(b, step));
        const auto hash = ask<hash128>([&](auto done) { members_[m]->hash_sum(b, step, done); });
        EXPECT_EQ(hash, facts.hash);
      }
    }
    for (const actors::leaf_loss& loss : losses) {
      sums.push_back(loss.loss_sum);
      counts.push_back(loss.tokens);
    }
    return actors::protocol::decide(step, updates,
                                    {tree_sum(sums), tree_sum(counts), tree_sum(squares)},
                                    {.max_norm = settings_.max_norm,
                                     .skip_nonfinite = settings_.skip_nonfinite,
                                     .lr = settings_.schedule.rate(step)});
  }

  // All holders, then everybody who computes with the blocks.
  void apply(const record& decided) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      for (const std::size_t m : holders(i)) {
        EXPECT_FALSE(wait([&](auto done) { members_[m]->apply(blocks_[i], decided, done); }));
      }
      for (std::size_t m = 0; m < working(); ++m) {
        if (plan_.leaves[m] == 0 || std::ranges::count(holders(i), m) > 0) continue;
        put(members_[holders(i).front()]->parameters(blocks_[i]),
            members_[m]->parameters(blocks_[i]));
      }
    }
  }

  record step(std::uint64_t number, std::uint64_t updates) {
    load(number);
    const std::vector<actors::leaf_loss> losses = compute(number);
    const record decided = reduce_and_decide(number, updates, losses);
    apply(decided);
    return decided;
  }

  // Block hashes in order; all holders agree.
  std::vector<actors::block_hashes> hashes() {
    std::vector<actors::block_hashes> all;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      for (const std::size_t m : holders(i)) {
        const auto found = ask<actors::block_hashes>(
            [&](auto done) { members_[m]->hash_state(blocks_[i], done); });
        if (m == holders(i).front()) all.push_back(found);
        EXPECT_EQ(found.weights, all.back().weights);
        EXPECT_EQ(found.state, all.back().state);
      }
    }
    return all;
  }

  // What the plan gives to a member.
  actors::member_share share(std::size_t member) const {
    actors::member_share mine;
    mine.virtual_ranks = static_cast<std::uint32_t>(settings_.batch.virtual_ranks);
    mine.leaves = plan_.leaves[member];
    for (std::size_t m = 0; m < member; ++m) mine.first_leaf += plan_.leaves[m];
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const std::vector<std::size_t> who = holders(i);
      if (who.front() == member) {
        mine.primary.push_back(blocks_[i]);
      } else if (std::ranges::count(who, member) > 0) {
        mine.backup.push_back(blocks_[i]);
      }
    }
    return mine;
  }

  // The primary first.
  std::vector<std::size_t> holders(std::size_t index) const {
    std::vector<std::size_t> all;
    const std::size_t count = std::min(plan_.backups + 1, working());
    for (std::size_t k = 0; k < count; ++k) {
      all.push_back((index + plan_.first_holder + k) % working());
    }
    return all;
  }

  static void put(std::span<const std::byte> from, std::span<std::byte> to) {
    ASSERT_EQ(from.size(), to.size());
    std::memcpy(to.data(), from.data(), from.size());
  }

 private:
  void send(std::size_t from, const std::vector<tree_node>& nodes, std::uint32_t layer,
            std::uint8_t source) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const block_id b = blocks_[i];
      if (b.layer != layer ||
          members_[from]->shape().layers[b.layer][b.block].sources.size() <= source) {
        continue;
      }
      const std::size_t primary = holders(i).front();
      if (primary == from) continue;
      for (const tree_node& node : nodes) {
        const actors::node_key key{b, source, node};
        put(members_[from]->node(key), members_[primary]->slot(key));
      }
    }
  }
  // Until all jobs so far are done.
  void settle() {
    for (const auto& device : devices_) device->run([](compute::ops&) {});
  }

  actors::trainer_settings settings_;
  model::model_layout layout_;
  test_loop loop_;
  std::vector<block_id> blocks_;
  world_plan plan_;
  std::vector<std::unique_ptr<compute::executor>> devices_;
  std::vector<std::unique_ptr<actors::model_computation>> members_;
};

}  // namespace troupe::tests
