// Many members' arithmetic gives the bits of one: every step is compared with actors::trainer.
#include "actors/model_computation.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "model/checkpoint/state_hash.hpp"
#include "tests/support/computation_world.hpp"
#include "tests/support/share_runs.hpp"
#include "tests/support/tiny_model.hpp"

namespace troupe::actors {
namespace {

using tests::computation_world;
using tests::world_plan;

// The lone worker that all worlds are compared with.
struct reference {
  reference(const model::description& d, const run_shape& shape)
      : shape_(shape), d_(d), device(compute::make_cpu_executor(1)) {
    t = std::make_unique<trainer>(*device, d, settings_of(shape));
    t->initialize();
  }
  protocol::decision_record step(std::uint64_t number) {
    const tests::token_batch batch = batch_of(shape_, d_, number);
    const auto record = *t->step(number, updates, batch.tokens, batch.targets);
    updates = record.updates;
    return record;
  }
  std::vector<block_hashes> hashes() {
    std::vector<block_hashes> all;
    for (std::size_t l = 0; l < t->layout().size(); ++l) {
      const auto cut = [&](compute::buffer& of, std::size_t b) -> std::span<const float> {
        return of.part(b * model::block_elements, t->layout()[l].block_size(b)).host<float>();
      };
      model::layer_state& s = t->state().layers[l];
      for (std::size_t b = 0; b < t->layout()[l].blocks(); ++b) {
        all.push_back({checkpoint::block_weights_hash(cut(s.parameters, b)),
                       checkpoint::block_state_hash({cut(s.parameters, b), cut(s.first_moment, b),
                                                     cut(s.second_moment, b)})});
      }
    }
    return all;
  }
  float& some_parameter() { return t->state().layers[1].parameters.all().host<float>()[3]; }

  run_shape shape_;
  model::description d_;
  std::unique_ptr<compute::executor> device;
  std::unique_ptr<trainer> t;
  std::uint64_t updates = 0;
};

void expect_same_state(computation_world& world, reference& lone) {
  const std::vector<block_hashes> expected = lone.hashes(), found = world.hashes();
  ASSERT_EQ(found.size(), expected.size());
  std::vector<hash128> weights[2], states[2];
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(found[i].weights, expected[i].weights) << "block " << i;
    EXPECT_EQ(found[i].state, expected[i].state) << "block " << i;
  }
}

struct place {
  int threads = 1;
  std::size_t members = 0;  // in the process; at least those of the plan
};

void expect_same_bits(const model::description& d, const run_shape& shape, const world_plan& plan,
                      const place& where = {}) {
  SCOPED_TRACE(testing::Message() << "members " << testing::PrintToString(plan.leaves)
                                  << ", backups " << plan.backups << ", micro-batch "
                                  << shape.micro_batch);
  reference lone(d, shape);
  computation_world world(d, settings_of(shape), sources_of(shape, d),
                          std::max(where.members, plan.leaves.size()), where.threads);
  world.adopt(plan);
  world.initialize();
  expect_same_state(world, lone);
  std::uint64_t updates = 0;
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const protocol::decision_record expected = lone.step(step);
    const protocol::decision_record found = world.step(step, updates);
    ASSERT_EQ(found, expected) << "step " << step << ": loss " << found.loss << " and "
                               << expected.loss;
    EXPECT_EQ(found.skip, step == empty_step);
    updates = found.updates;
    expect_same_state(world, lone);
    if (testing::Test::HasFailure()) return;
  }
}

std::vector<model::description> all_models(double dropout) {
  std::vector<model::description> all;
  for (model::description d : {tests::tiny_gpt2(), tests::tiny_llama()}) {
    for (const bool tied : {true, false}) {
      d.tied = tied;
      d.dropout = dropout;
      all.push_back(d);
    }
  }
  return all;
}

TEST(model_computation, gives_the_bits_of_a_lone_worker_for_any_number_of_members) {
  for (const double dropout : {0.0, 0.1}) {
    for (const model::description& d : all_models(dropout)) {
      for (const std::size_t backups : {0, 1, 2}) {
        expect_same_bits(d, {}, {.leaves = {7}, .backups = backups});
        expect_same_bits(d, {}, {.leaves = {3, 4}, .backups = backups});
        expect_same_bits(d, {}, {.leaves = {2, 4, 1}, .backups = backups, .first_holder = 1});
        expect_same_bits(d, {}, {.leaves = {1, 3, 1, 2}, .backups = backups});
        expect_same_bits(d, {}, {.leaves = {1, 1, 1, 1, 1, 1, 1}, .backups = backups});
        if (HasFailure()) return;
      }
    }
  }
}

TEST(model_computation, gives_the_same_bits_for_every_micro_batch_and_number_of_threads) {
  for (const model::description& d : all_models(0.1)) {
    for (const std::size_t micro_batch : {1, 3, 5, 12}) {
      for (const int threads : {1, 2}) {
        expect_same_bits(d, {.global_batch = 12, .virtual_ranks = 6, .micro_batch = micro_batch},
                         {.leaves = {3, 1, 2}, .backups = 1}, {.threads = threads});
        if (HasFailure()) return;
      }
    }
  }
}

TEST(model_computation, gives_the_same_bits_for_a_power_of_two_of_virtual_ranks_and_for_one) {
  for (const model::description& d : all_models(0)) {
    expect_same_bits(d, {.global_batch = 8, .virtual_ranks = 8}, {.leaves = {3, 5}, .backups = 1});
    expect_same_bits(d, {.global_batch = 8, .virtual_ranks = 4},
                     {.leaves = {1, 2, 1}, .backups = 1});
    expect_same_bits(d, {.global_batch = 3, .virtual_ranks = 1}, {.leaves = {1}, .backups = 0});
  }
}

TEST(model_computation, gives_the_same_bits_where_spares_hold_blocks_and_compute_nothing) {
  for (const model::description& d : all_models(0.1)) {
    for (const std::size_t backups : {0, 1}) {
      expect_same_bits(d, {}, {.leaves = {7, 0}, .backups = backups, .first_holder = 1});
      expect_same_bits(d, {}, {.leaves = {0, 4, 0, 3}, .backups = backups});
    }
  }
}

// The token table spans a block and a part of the next one, which the positions share.
TEST(model_computation, gives_the_same_bits_where_a_tied_table_spans_blocks) {
  for (model::description d : {tests::tiny_gpt2(), tests::tiny_llama()}) {
    d.tied = true;
    d.vocabulary = 7001;
    const run_shape shape{.global_batch = 3, .virtual_ranks = 3, .seq_len = 5};
    for (const world_plan& plan :
         {world_plan{{3}, 0}, world_plan{{1, 2}, 0}, world_plan{{1, 1, 1}, 1}}) {
      expect_same_bits(d, shape, plan);
    }
    computation_world world(d, settings_of(shape), sources_of(shape, d), 1, 1);
    const std::vector<block_shape>& table = world.member(0).shape().layers[0];
    ASSERT_EQ(table.size(), 2u);
    EXPECT_EQ(table[0].sources, (std::vector<std::uint32_t>{1u << 18, 1u << 18}));
    const auto rest = static_cast<std::uint32_t>(7001 * d.width - (1u << 18));
    EXPECT_EQ(table[1].sources[1], rest);
    EXPECT_EQ(table[1].elements > rest, d.family == model::family::gpt2);
  }
}

TEST(model_computation, skips_a_step_whose_gradient_is_not_finite) {
  const model::description d = tests::tiny_llama();
  const run_shape shape;
  reference lone(d, shape);
  computation_world world(d, settings_of(shape), sources_of(shape, d), 3, 1);
  world.adopt({.leaves = {2, 3, 2}, .backups = 1});
  world.initialize();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto set = [&](float value) {
    lone.some_parameter() = value;
    for (std::size_t m = 0; m < 3; ++m) {
      const std::span<std::byte> bytes = world.member(m).parameters({1, 0});
      std::memcpy(bytes.data() + 3 * sizeof(float), &value, sizeof value);
    }
  };
  lone.step(1);
  const std::uint64_t updates = world.step(1, 0).updates;
  const float healthy = lone.some_parameter();
  set(nan);
  const protocol::decision_record skipped = world.step(3, updates);
  EXPECT_TRUE(skipped.skip);
  EXPECT_EQ(skipped.why_skipped, lone.step(3).why_skipped);
  expect_same_state(world, lone);
  set(healthy);
  EXPECT_EQ(world.step(4, updates), lone.step(4));
  expect_same_state(world, lone);
}

TEST(model_computation, measures_validation_with_the_bits_of_a_lone_worker) {
  const run_shape shape;
  for (const model::description& d : all_models(0.1)) {
    reference lone(d, shape);
    const sample_sources sources = sources_of(shape, d);
    model::evaluation evaluation(lone.t->network(), shape.seq_len);
    const validation_result expected =
        *validate(evaluation, lone.t->state(), shape.seq_len, sources.validation_windows,
                  shape.virtual_ranks, sources.validation);
    for (const std::vector<std::uint32_t>& leaves :
         {std::vector<std::uint32_t>{7}, {3, 0, 4}, {1, 1, 1, 1, 1, 1, 1}}) {
      computation_world world(d, settings_of(shape), sources, leaves.size(), 1);
      world.adopt({.leaves = leaves});
      world.initialize();
      std::vector<leaf_loss> all;
      for (std::size_t m = 0; m < leaves.size(); ++m) {
        const auto own =
            world.ask<std::vector<leaf_loss>>([&](auto done) { world.member(m).evaluate(done); });
        EXPECT_EQ(own.size(), leaves[m]);
        all.insert(all.end(), own.begin(), own.end());
      }
      EXPECT_EQ(add_shares(all).loss, expected.loss);
      EXPECT_EQ(add_shares(all).tokens, expected.tokens);
    }
  }
}

TEST(model_computation, a_step_cancelled_anywhere_can_be_done_again_with_the_same_bits) {
  const run_shape shape{.micro_batch = 3};
  const model::description d = all_models(0.1)[0];
  reference lone(d, shape);
  lone.step(1);
  const std::size_t layers = lone.t->layout().size();
  std::size_t cancelled = 0;
  // Points: so many layers opened; then so many nodes_ready seen.
  for (std::size_t point = 0; point <= 2 * layers; ++point) {
    computation_world world(d, settings_of(shape), sources_of(shape, d), 2, 1);
    world.adopt({.leaves = {3, 4}, .backups = 1});
    world.initialize();
    world.load(1);
    computation& first = world.member(0);
    bool over = false;
    std::size_t ready = 0;
    first.start(1, {.micro_batch_done = {},
                    .nodes_ready =
                        [&](std::uint32_t, std::uint8_t) {
                          if (++ready + layers == point + 1) first.cancel();
                        },
                    .finished =
                        [&](std::exception_ptr problem, const std::vector<leaf_loss>&) {
                          over = true;
                          if (problem) ++cancelled;
                          EXPECT_TRUE(problem || point > layers);
                        }});
    for (std::uint32_t l = 0; l < std::min(point, layers); ++l) first.open(l);
    if (point < layers) first.cancel();
    EXPECT_FALSE(over);
    world.loop().run_until([&] { return over; });
    EXPECT_EQ(world.step(1, 0).grad_norm > 0, true);
    expect_same_state(world, lone);
  }
  EXPECT_GE(cancelled, layers + 3);
}

TEST(model_computation, a_step_can_be_started_again_while_the_cancelled_one_still_ends) {
  const run_shape shape;
  const model::description d = all_models(0.1)[0];
  reference lone(d, shape);
  lone.step(1);
  computation_world world(d, settings_of(shape), sources_of(shape, d), 3, 2);
  world.adopt({.leaves = {7, 0, 0}, .backups = 1});
  world.initialize();
  std::size_t ended = 0, failed = 0;
  for (int i = 0; i < 5; ++i) {
    world.load(1);
    world.member(0).start(1, {.micro_batch_done = {},
                              .nodes_ready = [](std::uint32_t, std::uint8_t) {},
                              .finished =
                                  [&](std::exception_ptr problem, const std::vector<leaf_loss>&) {
                                    ++ended;
                                    failed += problem != nullptr;
                                  }});
    for (std::uint32_t l = 0; l < 3; ++l) world.member(0).open(l);
    if (i % 3 != 1) world.member(0).cancel();  // or the next plan does it
    const bool other = i % 2 == 0;             // another run of virtual ranks in the same memory
    world.adopt({.leaves = other ? std::vector<std::uint32_t>{3, 4, 0}
                                 : std::vector<std::uint32_t>{7, 0, 0},
                 .backups = 1});
  }
  world.step(1, 0);
  EXPECT_EQ(ended, 5u);
  EXPECT_EQ(failed, 5u);
  expect_same_state(world, lone);
}

TEST(model_computation, keeps_the_bits_through_changes_of_plan) {
  const run_shape shape;
  for (const model::description& d : all_models(0.1)) {
    reference lone(d, shape);
    computation_world world(d, settings_of(shape), sources_of(shape, d), 7, 1);
    std::uint64_t updates = 0, step = 0;
    for (const world_plan& plan :
         {world_plan{{2, 3, 2}, 1}, world_plan{{7}, 0}, world_plan{{3, 4}, 1, 1},
          world_plan{{0, 7, 0}, 2}, world_plan{{1, 1, 1, 1, 1, 1, 1}, 1},
          world_plan{{4, 0, 3}, 1}}) {
      world.adopt(plan);
      if (step == 0) world.initialize();
      for (int i = 0; i < 2; ++i) {
        ++step;
        const protocol::decision_record found = world.step(step, updates);
        ASSERT_EQ(found, lone.step(step));
        updates = found.updates;
      }
      expect_same_state(world, lone);
    }
  }
}

// A node of the step before, left in its slot, must never stand in for one that has not arrived.
TEST(model_computation_death_test, refuses_to_sum_a_block_before_all_its_nodes_have_arrived) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const run_shape shape;
  const model::description d = tests::tiny_llama();
  const auto reduce_too_early = [&] {
    computation_world world(d, settings_of(shape), sources_of(shape, d), 3, 1);
    world.adopt({.leaves = {2, 3, 2}});
    world.initialize();
    world.step(1, 0);
    world.member(0).reduce({0, 0}, 2, [](std::exception_ptr, const sum_facts&) {});
  };
  EXPECT_EXIT(reduce_too_early(), testing::ExitedWithCode(70), "before all its gradients");
}

// Decided, but not yet applied when the plan changes: the sum outlives the tree that it lay in.
TEST(model_computation, rolls_forward_from_a_sum_of_the_plan_before) {
  const run_shape shape;
  for (const model::description& d : all_models(0)) {
    for (const std::vector<std::uint32_t>& before : {std::vector<std::uint32_t>{7}, {3, 4}}) {
      reference lone(d, shape);
      lone.step(1);
      computation_world world(d, settings_of(shape), sources_of(shape, d), 2, 1);
      const std::size_t backups = before.size() - 1;
      world.adopt({.leaves = before, .backups = backups});
      world.initialize();
      world.load(1);
      const auto losses = world.compute(1);
      const protocol::decision_record decided = world.reduce_and_decide(1, 0, losses);
      // The first member goes on alone with other ranks, or as a spare beside the second one.
      const std::vector<std::uint32_t> after =
          before.size() == 1 ? std::vector<std::uint32_t>{0, 7} : std::vector<std::uint32_t>{7};
      world.adopt({.leaves = after, .backups = 0, .first_holder = 0});
      for (std::size_t i = 0; i < world.blocks().size(); ++i) {
        if (before.size() == 1 && world.holders(i).front() != 0) continue;
        EXPECT_FALSE(world.wait(
            [&](auto done) { world.member(0).apply(world.blocks()[i], decided, done); }));
        const auto hashes = world.ask<block_hashes>(
            [&](auto done) { world.member(0).hash_state(world.blocks()[i], done); });
        EXPECT_EQ(hashes.state, lone.hashes()[i].state);
      }
    }
  }
}

// An abort or an acknowledgement must not wait for a step; the next step's samples need not either.
TEST(model_computation, answers_about_blocks_and_reads_ahead_while_a_step_is_computed) {
  const run_shape shape{.micro_batch = 1};
  const model::description d = tests::tiny_gpt2();
  computation_world world(d, settings_of(shape), sources_of(shape, d), 1, 1);
  world.adopt({.leaves = {7}});
  world.initialize();
  world.load(1);
  computation& c = world.member(0);
  std::vector<std::string> order;
  c.start(1, {.micro_batch_done = {},
              .nodes_ready = [](std::uint32_t, std::uint8_t) {},
              .finished =
                  [&](std::exception_ptr problem, const std::vector<leaf_loss>&) {
                    EXPECT_FALSE(problem);
                    order.push_back("finished");
                  }});
  for (std::uint32_t l = 0; l < c.shape().layers.size(); ++l) c.open(l);
  c.hash_state({1, 0}, [&](std::exception_ptr, const block_hashes&) { order.push_back("hash"); });
  world.loop().run_until([&] { return order.size() == 2; });
  EXPECT_EQ(order, (std::vector<std::string>{"hash", "finished"}));

  bool loaded = false, finished = false;
  world.load(2);
  c.start(2, {.micro_batch_done = {},
              .nodes_ready = [](std::uint32_t, std::uint8_t) {},
              .finished = [&](std::exception_ptr, const auto&) { finished = true; }});
  c.load(3, [&](std::exception_ptr problem) { loaded = !problem; });
  world.loop().run_until([&] { return loaded; });  // although no layer is open
  EXPECT_FALSE(finished);
  for (std::uint32_t l = 0; l < c.shape().layers.size(); ++l) c.open(l);
  world.loop().run_until([&] { return finished; });
}

TEST(model_computation, tells_why_samples_could_not_be_read) {
  const run_shape shape;
  const model::description d = tests::tiny_llama();
  sample_sources sources = sources_of(shape, d);
  sources.training = sources.validation = [](std::uint64_t at, auto, auto) -> status {
    return error{exit_code::bad_data, "no sample at " + std::to_string(at)};
  };
  computation_world world(d, settings_of(shape), sources, 1, 1);
  world.adopt({.leaves = {7}});
  const auto expect_told = [](std::exception_ptr problem, const std::string& why) {
    ASSERT_TRUE(problem);
    try {
      std::rethrow_exception(problem);
    } catch (const unreadable_samples& told) {
      EXPECT_EQ(told.cause.code, exit_code::bad_data);
      EXPECT_EQ(told.cause.message, why);
    }
  };
  expect_told(world.wait([&](auto done) { world.member(0).load(3, done); }), "no sample at 14");
  expect_told(world.wait([&](auto done) {
    world.member(0).evaluate([done](std::exception_ptr problem, const auto&) { done(problem); });
  }),
              "no sample at 0");
}

TEST(model_computation, has_no_place_for_what_strangers_name) {
  const run_shape shape;
  const model::description d = tests::tiny_llama();
  computation_world world(d, settings_of(shape), sources_of(shape, d), 3, 1);
  world.adopt({.leaves = {3, 4, 0}, .backups = 0});
  model_computation& first = world.member(0);
  model_computation& spare = world.member(2);
  std::size_t slots = 0, sums = 0;
  for (const block_id block : world.blocks()) {
    const bool primary = !first.slot({block, 0, {4, 3}}).empty();
    slots += primary ? 1 : 0;
    EXPECT_EQ(!first.sum(block, 1).empty(), primary);
    sums += !spare.sum(block, 1).empty() ? 1 : 0;
    EXPECT_FALSE(first.parameters(block).empty());
    EXPECT_TRUE(first.slot({block, 0, {0, 2}}).empty()) << "its own node";
    EXPECT_TRUE(first.slot({block, 0, {4, 2}}).empty() || primary);
    for (const tree_node node : {tree_node{1, 2}, tree_node{3, 2}, tree_node{0, 8}, tree_node{7, 1},
                                 tree_node{4, 0}, tree_node{~0u, ~0u}}) {
      EXPECT_TRUE(first.slot({block, 0, node}).empty()) << node.first << "+" << node.leaves;
    }
    EXPECT_TRUE(first.slot({block, 2, {4, 3}}).empty()) << "no block has three sources";
  }
  EXPECT_GT(slots, 0u);
  EXPECT_LT(slots, world.blocks().size());
  EXPECT_GT(sums, 0u);
  for (const block_id block : {block_id{0, ~0u}, block_id{~0u, 0}, block_id{~0u, ~0u}}) {
    for (model_computation* member : {&first, &spare}) {
      EXPECT_TRUE(member->slot({block, 0, {4, 3}}).empty());
      EXPECT_TRUE(member->sum(block, 1).empty());
      EXPECT_TRUE(member->parameters(block).empty());
    }
  }
}

TEST(model_computation, counts_its_seconds_by_kind) {
  const run_shape shape;
  const model::description d = tests::tiny_llama();
  computation_world world(d, settings_of(shape), sources_of(shape, d), 2, 1);
  world.adopt({.leaves = {3, 4}, .backups = 1});
  world.initialize();
  (void)world.member(0).take_seconds();
  world.step(1, 0);
  const work_seconds spent = world.member(0).take_seconds();
  for (const double seconds :
       {spent.data, spent.forward, spent.backward, spent.reduce, spent.apply}) {
    EXPECT_GT(seconds, 0);
    EXPECT_LT(seconds, 60);
  }
  EXPECT_EQ(world.member(0).take_seconds().forward, 0);
  EXPECT_GT(world.member(0).activation_bytes(), 0u);
  EXPECT_EQ(world.member(0).numerics_class(), "cpu-chain");
}

}  // namespace
}  // namespace troupe::actors
