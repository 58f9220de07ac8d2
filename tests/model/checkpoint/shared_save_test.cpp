#include "model/checkpoint/shared_save.hpp"

#include <stdlib.h>

#include <thread>

#include "tests/model/checkpoint/fixture.hpp"

namespace troupe::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Every block of the state, given round to `writers`.
std::vector<std::vector<block_to_write>> spread(const run_state& state, std::size_t writers) {
  std::vector<std::vector<block_to_write>> parts(writers);
  std::size_t next = 0;
  for (const block_to_write& b : cut_into_blocks(state.layout, state.views())) {
    parts[next++ % writers].push_back(b);
  }
  return parts;
}

result<saved> save_together(file_system& files, const save_place& place, const facts& about,
                            const run_state& state, std::size_t writers) {
  auto begun = begin_save(files, place, about);
  if (!begun) return begun.failure();
  std::vector<block_record> all;
  const auto parts = spread(state, writers);
  for (std::size_t w = writers; w-- > 0;) {  // the order of writers is nobody's business
    auto written = write_blocks(files, place, state.layout, parts[w]);
    if (!written) return written.failure();
    all.insert(all.end(), written->begin(), written->end());
  }
  return finish_save(files, place, about, all);
}

TEST(shared_save, gives_the_same_bytes_for_every_number_of_writers) {
  const run_state state(two_block_model(), 120);
  const facts about = facts_at(120, two_block_model());
  memory_file_system alone;
  const auto expected = save(alone, directory, about, state.views());
  ASSERT_TRUE(expected) << reason(expected);
  for (std::size_t writers = 1; writers <= 5; ++writers) {
    memory_file_system memory;
    const save_place place{directory, 120, "plan-7"};
    const auto made = save_together(memory, place, about, state, writers);
    ASSERT_TRUE(made) << reason(made);
    EXPECT_EQ(made->state_hash, expected->state_hash);
    EXPECT_EQ(made->weights_hash, expected->weights_hash);
    EXPECT_EQ(made->bytes, expected->bytes);
    EXPECT_EQ(made->folder, expected->folder);
    ASSERT_EQ(names_in(memory, made->folder), names_in(alone, made->folder));
    for (const std::string& name : names_in(alone, made->folder)) {
      ASSERT_EQ(content(memory, join_path(made->folder, name)),
                content(alone, join_path(made->folder, name)))
          << name << " by " << writers;
    }
    memory.power_loss(1);
    EXPECT_TRUE(verify(memory, made->folder));
    EXPECT_THAT(names_in(memory, directory), ElementsAre("step-00000120"));
  }
}

TEST(shared_save, can_be_written_by_threads_on_the_real_file_system) {
  std::string root = testing::TempDir() + "troupe-shared-save-XXXXXX";
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  file_system& files = real_file_system();
  const run_state state(two_block_model(), 7);
  const facts about = facts_at(7, two_block_model());
  const save_place place{root + "/a/b", 7};
  ASSERT_TRUE(begin_save(files, place, about));
  const auto parts = spread(state, 4);
  std::vector<std::vector<block_record>> told(4);
  std::vector<std::thread> writers;
  for (std::size_t w = 0; w < 4; ++w) {
    writers.emplace_back([&, w] {
      auto written = write_blocks(files, place, state.layout, parts[w]);
      if (written) told[w] = *std::move(written);
    });
  }
  std::vector<block_record> all;
  for (std::size_t w = 0; w < 4; ++w) {
    writers[w].join();
    all.insert(all.end(), told[w].begin(), told[w].end());
  }
  const auto made = finish_save(files, place, about, all);
  ASSERT_TRUE(made) << reason(made);
  EXPECT_TRUE(verify(files, made->folder));
  EXPECT_TRUE(remove_all(files, root));
}

TEST(shared_save, is_not_finished_while_a_block_is_missing_told_twice_or_unknown) {
  memory_file_system memory;
  const run_state state(two_block_model(), 5);
  const facts about = facts_at(5, two_block_model());
  const save_place place{directory, 5};
  ASSERT_TRUE(begin_save(memory, place, about));
  const auto all = write_blocks(memory, place, state.layout, spread(state, 1)[0]);
  ASSERT_TRUE(all);
  ASSERT_THAT(*all, SizeIs(4));
  for (std::size_t i = 0; i < all->size(); ++i) {
    std::vector<block_record> missing = *all, twice = *all;
    missing.erase(missing.begin() + static_cast<std::ptrdiff_t>(i));
    twice.push_back((*all)[i]);
    EXPECT_FALSE(finish_save(memory, place, about, missing));
    EXPECT_FALSE(finish_save(memory, place, about, twice));
  }
  std::vector<block_record> unknown = *all;
  unknown.push_back({2, 1, {}, {}});
  EXPECT_FALSE(finish_save(memory, place, about, unknown));
  EXPECT_THAT(whole_steps(memory), IsEmpty());
  EXPECT_TRUE(finish_save(memory, place, about, *all));
  EXPECT_TRUE(verify(memory, folder_of(5)));
}

TEST(shared_save, notices_a_last_block_that_was_told_but_never_written) {
  memory_file_system memory;
  const run_state state(two_block_model(), 5);
  const facts about = facts_at(5, two_block_model());
  const save_place place{directory, 5};
  ASSERT_TRUE(begin_save(memory, place, about));
  const auto blocks = spread(state, 1)[0];
  std::vector<block_record> told =
      *write_blocks(memory, place, state.layout, std::span(blocks).first(blocks.size() - 1));
  told.push_back(record_of(blocks.back()));
  const auto made = finish_save(memory, place, about, told);
  ASSERT_FALSE(made);
  EXPECT_THAT(reason(made), HasSubstr("head.parameters.safetensors has 0 bytes instead of"));
  EXPECT_TRUE(abandon_save(memory, place));
  EXPECT_THAT(names_in(memory, directory), IsEmpty());
}

TEST(shared_save, of_a_step_that_is_there_begins_nothing_and_compares) {
  memory_file_system memory;
  ASSERT_TRUE(save_step(memory, 10));
  const save_place place{directory, 10, "plan-3"};
  const auto there = begin_save(memory, place, facts_at(10));
  ASSERT_TRUE(there);
  ASSERT_TRUE(*there);
  EXPECT_THAT(names_in(memory, directory), ElementsAre("step-00000010"));
  const auto now = [](std::uint64_t number) {
    const run_state state(tiny_model(), number);
    return make_manifest(facts_at(10), state.layout, state.views());
  };
  const auto same = same_checkpoint(place, **there, now(10));
  ASSERT_TRUE(same);
  EXPECT_TRUE(same->was_there);
  EXPECT_EQ(same->state_hash, (*there)->state_hash);
  const auto other = same_checkpoint(place, **there, now(11));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.failure().code, exit_code::cannot_use);
}

// A later coordinator begins the step again; the files of the earlier attempt go, and a writer that
// still works for it does no harm.
TEST(shared_save, begun_again_removes_what_an_earlier_attempt_has_left) {
  memory_file_system memory;
  const run_state state(two_block_model(), 5);
  const facts about = facts_at(5, two_block_model());
  const save_place old{directory, 5, "plan-3"}, now{directory, 5, "plan-4"};
  ASSERT_TRUE(begin_save(memory, old, about));
  const auto parts = spread(state, 2);
  ASSERT_TRUE(write_blocks(memory, old, state.layout, parts[0]));
  ASSERT_TRUE(begin_save(memory, now, about));
  EXPECT_THAT(names_in(memory, directory), ElementsAre("step-00000005.partial-plan-4"));
  EXPECT_FALSE(write_blocks(memory, old, state.layout, parts[1]));
  std::vector<block_record> all;
  for (const auto& part : parts) {
    const auto written = write_blocks(memory, now, state.layout, part);
    all.insert(all.end(), written->begin(), written->end());
  }
  const auto made = finish_save(memory, now, about, all);
  ASSERT_TRUE(made) << reason(made);
  EXPECT_TRUE(verify(memory, folder_of(5)));
}

// One writer of two meets the trouble; the save is abandoned, and the next one is as good as new.
TEST(shared_save, survives_trouble_of_one_writer_at_any_operation) {
  for (const fault_kind kind : {fault_kind::fail_half_way, fault_kind::crash_half_way}) {
    bool reached_the_end = false;
    for (std::size_t k = 1; !reached_the_end; ++k) {
      SCOPED_TRACE(fmt::format("kind {} operation {}", static_cast<int>(kind), k));
      memory_file_system memory;
      ASSERT_TRUE(save_step(memory, 10));
      const run_state state(tiny_model(), 20);
      const save_place place{directory, 20};
      ASSERT_TRUE(begin_save(memory, place, facts_at(20)));
      const auto parts = spread(state, 2);
      ASSERT_TRUE(write_blocks(memory, place, state.layout, parts[1]));
      faulty_file_system twin(memory);
      twin.inject({.at = k, .kind = kind, .error_number = ENOSPC});
      const auto written = write_blocks(twin, place, state.layout, parts[0]);
      reached_the_end = !twin.all_injected();
      // A crash behind the last operation is no trouble for this save.
      ASSERT_TRUE(!written || reached_the_end || kind == fault_kind::crash_half_way);
      ASSERT_TRUE(abandon_save(memory, place));
      EXPECT_THAT(names_in(memory, directory), ElementsAre("step-00000010"));
      const auto again = save_together(memory, {directory, 20, "again"}, facts_at(20), state, 2);
      ASSERT_TRUE(again) << reason(again);
      memory.power_loss(k);
      EXPECT_TRUE(verify(memory, folder_of(10)));
      EXPECT_TRUE(verify(memory, folder_of(20)));
    }
  }
}

}  // namespace
}  // namespace troupe::checkpoint
