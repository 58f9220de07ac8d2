// Copies of blocks, from a holder to another member. The blocks' arithmetic is seen through whole
// steps in model_computation_test.
#include "actors/held_blocks.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>

#include "tests/support/computation_world.hpp"
#include "tests/support/share_runs.hpp"
#include "tests/support/tiny_model.hpp"

namespace troupe::actors {
namespace {

using tests::computation_world;

// Copies block i to a member that does not hold it, and gives the bytes that were sent.
computation::state_copy copied(computation_world& world, std::size_t i, std::size_t to) {
  const block_id block = world.blocks()[i];
  const std::size_t from = world.holders(i).front();
  auto copy = world.ask<computation::state_copy>(
      [&](auto done) { world.member(from).copy_state(block, done); });
  EXPECT_EQ(copy.bytes->size(), world.member(from).state_bytes(block));
  world.member(to).make_room(block);
  EXPECT_FALSE(world.wait(
      [&](auto done) { world.member(to).take_state(block, copy.bytes, copy.hash, done); }));
  return copy;
}

// On one that computes, and on a spare, which has no parameters before.
TEST(held_blocks, that_were_copied_have_the_same_bits_and_keep_up_from_there) {
  const run_shape shape;
  for (const model::description& d : {tests::tiny_gpt2(), tests::tiny_llama()}) {
    for (const std::vector<std::uint32_t>& leaves :
         {std::vector<std::uint32_t>{3, 4}, std::vector<std::uint32_t>{7, 0}}) {
      computation_world world(d, settings_of(shape), sources_of(shape, d), 2, 1);
      world.adopt({.leaves = leaves});
      world.initialize();
      const std::uint64_t updates = world.step(1, 0).updates;
      const auto hash_at = [&](std::size_t m, std::size_t i) {
        return world
            .ask<block_hashes>(
                [&](auto done) { world.member(m).hash_state(world.blocks()[i], done); })
            .state;
      };
      std::vector<std::size_t> sent;
      for (std::size_t i = 0; i < world.blocks().size(); ++i) {
        if (world.holders(i).front() == 1) continue;
        copied(world, i, 1);
        EXPECT_EQ(hash_at(1, i), hash_at(0, i)) << "block " << i;
        sent.push_back(i);
      }
      ASSERT_FALSE(sent.empty());
      world.load(3);
      const auto losses = world.compute(3);
      const protocol::decision_record decided = world.reduce_and_decide(3, updates, losses);
      for (const std::size_t i : sent) {
        const block_id block = world.blocks()[i];
        const hash128 before = hash_at(1, i);
        computation_world::put(world.member(0).sum(block, 3), world.member(1).sum(block, 3));
        EXPECT_FALSE(world.wait([&](auto done) { world.member(1).apply(block, decided, done); }));
        EXPECT_FALSE(world.wait([&](auto done) { world.member(0).apply(block, decided, done); }));
        EXPECT_EQ(hash_at(1, i), hash_at(0, i)) << "block " << i;
        EXPECT_NE(hash_at(1, i), before);
      }
    }
  }
}

// H-21: a copy is of the version at which it was asked for, whatever is asked after it.
TEST(held_blocks, are_copied_at_one_version_though_an_update_follows_at_once) {
  const run_shape shape;
  const model::description d = tests::tiny_llama();
  computation_world world(d, settings_of(shape), sources_of(shape, d), 1, 1);
  world.adopt({.leaves = {7}});
  world.initialize();
  world.load(1);
  const auto losses = world.compute(1);
  const protocol::decision_record decided = world.reduce_and_decide(1, 0, losses);
  const block_id block = world.blocks()[0];
  const auto before = world.ask<computation::state_copy>(
      [&](auto done) { world.member(0).copy_state(block, done); });
  std::optional<hash128> during;
  world.member(0).copy_state(
      block, [&](computation::trouble, const computation::state_copy& c) { during = c.hash; });
  EXPECT_FALSE(world.wait([&](auto done) { world.member(0).apply(block, decided, done); }));
  ASSERT_TRUE(during);
  EXPECT_EQ(*during, before.hash);
  const auto after = world.ask<computation::state_copy>(
      [&](auto done) { world.member(0).copy_state(block, done); });
  EXPECT_NE(after.hash, before.hash);
}

TEST(held_blocks, refuse_a_copy_with_a_changed_byte_or_of_another_size) {
  const run_shape shape;
  const model::description d = tests::tiny_llama();
  for (const std::vector<std::uint32_t>& leaves :
       {std::vector<std::uint32_t>{3, 4}, std::vector<std::uint32_t>{7, 0}}) {
    computation_world world(d, settings_of(shape), sources_of(shape, d), 2, 1);
    world.adopt({.leaves = leaves});
    world.initialize();
    world.step(1, 0);
    const block_id block = world.blocks()[0];
    ASSERT_EQ(world.holders(0).front(), 0u);
    const auto copy = world.ask<computation::state_copy>(
        [&](auto done) { world.member(0).copy_state(block, done); });
    world.member(1).make_room(block);
    const auto take = [&](std::vector<std::byte> bytes) -> std::string {
      const auto shared = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
      const auto trouble = world.wait(
          [&](auto done) { world.member(1).take_state(block, shared, copy.hash, done); });
      if (!trouble) return "it was taken";
      try {
        std::rethrow_exception(trouble);
      } catch (const std::runtime_error& e) {
        return e.what();
      }
    };
    const std::size_t size = copy.bytes->size();
    for (const std::size_t at : {std::size_t{0}, size / 3 + 5, 2 * size / 3 + 1, size - 1}) {
      std::vector<std::byte> changed = *copy.bytes;
      changed[at] ^= std::byte{1};
      EXPECT_NE(take(changed).find("bits were changed"), std::string::npos) << at;
    }
    std::vector<std::byte> cut = *copy.bytes;
    cut.resize(size - sizeof(float));
    EXPECT_NE(take(cut), "it was taken");
    EXPECT_NE(take({}), "it was taken");
    EXPECT_EQ(take(*copy.bytes), "it was taken") << "asked for again, it is whole";
  }
}

}  // namespace
}  // namespace troupe::actors
