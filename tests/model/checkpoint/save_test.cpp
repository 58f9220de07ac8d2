#include "model/checkpoint/save.hpp"

#include <stdlib.h>

#include "model/hub/safetensors.hpp"
#include "tests/model/checkpoint/fixture.hpp"

namespace troupe::checkpoint {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::vector<fault_kind> crashes{fault_kind::crash, fault_kind::crash_half_way};

TEST(save, and_load_give_the_same_bits_for_every_bit_pattern) {
  for (const auto& model : {tiny_model(), two_block_model()}) {
    memory_file_system memory;
    const run_state before(model, 120);
    const auto made = save(memory, directory, facts_at(120, model), before.views());
    ASSERT_TRUE(made) << reason(made);
    run_state after(model);
    ASSERT_FALSE(after.same_bits(before));
    const auto loaded = load(memory, folder_of(120), after.layout, after.memory());
    ASSERT_TRUE(loaded) << reason(loaded);
    EXPECT_TRUE(after.same_bits(before));
    EXPECT_EQ(loaded->about, facts_at(120, model));
    EXPECT_EQ(loaded->state_hash, made->state_hash);
    EXPECT_EQ(loaded->weights_hash, made->weights_hash);
    EXPECT_TRUE(verify(memory, folder_of(120)));
  }
}

TEST(save, works_on_the_real_file_system) {
  std::string root = testing::TempDir() + "troupe-checkpoint-XXXXXX";
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  auto& files = real_file_system();
  const run_state before(two_block_model(), 7);
  const auto made = save(files, root + "/a/b", facts_at(7, two_block_model()), before.views());
  ASSERT_TRUE(made) << reason(made);
  run_state after(two_block_model());
  const auto loaded = load(files, made->folder, after.layout, after.memory());
  EXPECT_TRUE(loaded) << reason(loaded);
  EXPECT_TRUE(after.same_bits(before));
  EXPECT_TRUE(remove_all(files, root));
}

TEST(save, puts_each_block_where_the_layout_says) {
  memory_file_system memory;
  const run_state state(two_block_model(), 3);
  const auto made = save(memory, directory, facts_at(3, two_block_model()), state.views());
  ASSERT_TRUE(made) << reason(made);
  EXPECT_THAT(
      names_in(memory, made->folder),
      ElementsAre("embedding.first_moments.safetensors", "embedding.parameters.safetensors",
                  "embedding.second_moments.safetensors", "head.first_moments.safetensors",
                  "head.parameters.safetensors", "head.second_moments.safetensors",
                  "layer-0000.first_moments.safetensors", "layer-0000.parameters.safetensors",
                  "layer-0000.second_moments.safetensors", "manifest.json"));
  const std::string path = made->folder + "/embedding.second_moments.safetensors";
  auto in = *memory.open(path, open_mode::read);
  const auto header = *model::read_safetensors_header(*in);
  EXPECT_EQ(header.data_start, 4096u);
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_THAT(
      header.tensors,
      ElementsAre(
          model::tensor_entry{
              "transformer.wte.weight", model::tensor_type::f32, {69'995, 4}, 0, 1'119'920},
          model::tensor_entry{
              "transformer.wpe.weight", model::tensor_type::f32, {6, 4}, 1'119'920, 1'120'016}));
  float first_of_second_block = 0;
  ASSERT_TRUE(read_exactly(*in, 4096 + (1 << 20),
                           std::as_writable_bytes(std::span(&first_of_second_block, 1))));
  EXPECT_EQ(std::memcmp(&first_of_second_block, &state.values[2][0][1 << 18], 4), 0);
  std::uint64_t bytes = 0;
  for (const auto& name : names_in(memory, made->folder)) {
    bytes += content(memory, join_path(made->folder, name)).size();
  }
  EXPECT_EQ(made->bytes, bytes);
}

TEST(save, leaves_nothing_but_whole_checkpoints_in_the_directory) {
  memory_file_system memory;
  ASSERT_TRUE(save_step(memory, 10));
  ASSERT_TRUE(save_step(memory, 20));
  EXPECT_THAT(names_in(memory, directory), ElementsAre("step-00000010", "step-00000020"));
}

TEST(save, of_a_step_that_is_there_already_writes_nothing) {
  memory_file_system memory;
  ASSERT_TRUE(save_step(memory, 10));
  faulty_file_system twin(memory);
  const auto again = save_step(twin, 10);
  ASSERT_TRUE(again) << reason(again);
  EXPECT_TRUE(again->was_there);
  EXPECT_THAT(twin.operations(), Each(Not(HasSubstr("write "))));
}

TEST(save, refuses_to_replace_whole_checkpoints_of_other_bits) {
  memory_file_system memory;
  ASSERT_TRUE(save_step(memory, 10));
  const run_state other(tiny_model(), 99);
  const auto made = save(memory, directory, facts_at(10), other.views());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.failure().code, exit_code::cannot_use);
  EXPECT_THAT(reason(made), HasSubstr("already holds a whole checkpoint with other bits"));
  EXPECT_TRUE(verify(memory, folder_of(10)));
}

TEST(save, replaces_a_damaged_checkpoint_of_the_same_step) {
  memory_file_system memory;
  ASSERT_TRUE(save_step(memory, 10));
  const std::string path = folder_of(10) + "/head.parameters.safetensors";
  std::string bytes = content(memory, path);
  bytes.back() ^= 1;
  put(memory, path, bytes);
  ASSERT_FALSE(verify(memory, folder_of(10)));
  const auto made = save_step(memory, 10);
  ASSERT_TRUE(made) << reason(made);
  EXPECT_FALSE(made->was_there);
  EXPECT_TRUE(verify(memory, folder_of(10)));
  EXPECT_THAT(names_in(memory, directory), ElementsAre("step-00000010"));
}

// What must hold after any trouble during the save of step 20, with step 10 saved before.
void expect_old_or_new(memory_file_system& memory, bool told_success) {
  const auto old = verify(memory, folder_of(10));
  ASSERT_TRUE(old) << reason(old);
  const auto all = list(memory, directory);
  ASSERT_TRUE(all);
  for (const listed& e : *all) {
    EXPECT_NE(e.state, condition::damaged) << e.why;  // published, but not whole: never
    if (e.state == condition::whole) {
      EXPECT_TRUE(verify(memory, e.folder)) << reason(verify(memory, e.folder));
    }
  }
  if (told_success) {
    EXPECT_THAT(whole_steps(memory), ElementsAre(10, 20));
  }
  if (*memory.exists(folder_of(20))) {
    for (const auto& name : names_in(memory, folder_of(20))) {
      if (name.find(temporary_mark) != std::string::npos) continue;
      EXPECT_FALSE(content(memory, join_path(folder_of(20), name)).empty()) << name;
    }
  }
  // Resuming works, and the next save of the step is as good as a first one.
  run_state state(tiny_model());
  const auto from = resume(memory, directory, {}, state.layout, state.memory(),
                           [](const manifest&) { return done{}; });
  ASSERT_TRUE(from) << reason(from);
  EXPECT_TRUE(state.same_bits(run_state(tiny_model(), from->from->about.step)));
  const auto again = save_step(memory, 20);
  ASSERT_TRUE(again) << reason(again);
  EXPECT_TRUE(verify(memory, folder_of(20)));
  EXPECT_THAT(names_in(memory, directory), ElementsAre("step-00000010", "step-00000020"));
}

TEST(save, crashed_at_any_operation_leaves_the_old_or_the_new_checkpoint_whole) {
  std::size_t cases = 0;
  bool saw_unfinished = false, saw_new = false;
  for (const fault_kind kind : crashes) {
    bool reached_the_end = false;
    for (std::size_t k = 1; !reached_the_end; ++k) {
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        memory_file_system memory;
        ASSERT_TRUE(save_step(memory, 10));
        faulty_file_system twin(memory);
        twin.inject({.at = k, .kind = kind});
        const bool told_success = bool(save_step(twin, 20));
        SCOPED_TRACE(fmt::format("kind {} operation {} ({}) seed {}", static_cast<int>(kind), k,
                                 twin.operations().back(), seed));
        reached_the_end = !twin.crashed();
        memory.power_loss(seed);
        const auto whole = whole_steps(memory);
        (whole.size() == 1 ? saw_unfinished : saw_new) = true;
        expect_old_or_new(memory, told_success);
        if (testing::Test::HasFailure()) return;
        ++cases;
      }
    }
  }
  EXPECT_GT(cases, 600u);
  EXPECT_TRUE(saw_unfinished && saw_new);
}

TEST(save, crashed_twice_at_the_same_step_never_mixes_old_and_new_files) {
  bool was_published = false;
  for (std::size_t k = 5; !was_published; k += 3) {
    SCOPED_TRACE(fmt::format("operation {}", k));
    memory_file_system memory;
    ASSERT_TRUE(save_step(memory, 10));
    for (const std::uint64_t number : {77, 88}) {  // each try with other bits
      faulty_file_system twin(memory);
      twin.inject({.at = k, .kind = fault_kind::crash_half_way});
      const run_state state(tiny_model(), number);
      ASSERT_FALSE(save(twin, directory, facts_at(20), state.views()));
      memory.power_loss(1);
      was_published = *memory.exists(folder_of(20) + "/manifest.json");
      if (was_published) break;
    }
    if (was_published) break;
    ASSERT_TRUE(save_step(memory, 20));
    run_state state(tiny_model());
    ASSERT_TRUE(load(memory, folder_of(20), state.layout, state.memory()));
    EXPECT_TRUE(state.same_bits(run_state(tiny_model(), 20)));
  }
}

TEST(save, that_fails_at_any_operation_removes_what_it_wrote) {
  for (const int number : {ENOSPC, EIO, EDQUOT}) {
    bool reached_the_end = false;
    for (std::size_t k = 1; !reached_the_end; ++k) {
      memory_file_system memory;
      ASSERT_TRUE(save_step(memory, 10));
      faulty_file_system twin(memory);
      twin.inject({.at = k, .kind = fault_kind::fail_half_way, .error_number = number});
      const auto made = save_step(twin, 20);
      reached_the_end = !twin.all_injected();
      SCOPED_TRACE(fmt::format("errno {} operation {} ({})", number, k, twin.operations().back()));
      if (!made) {
        EXPECT_EQ(made.failure().code, exit_code::io);
        EXPECT_THAT(reason(made), HasSubstr("the checkpoint of step 20 was not saved: "));
        EXPECT_THAT(reason(made), HasSubstr(directory));
        // Either nothing is left, or, where only the last sync failed, a whole checkpoint.
        for (const auto& name : names_in(memory, directory)) {
          EXPECT_THAT(name, testing::AnyOf("step-00000010", "step-00000020"));
        }
        if (*memory.exists(folder_of(20))) {
          EXPECT_THAT(whole_steps(memory), ElementsAre(10, 20));
        }
      }
      expect_old_or_new(memory, bool(made));
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(save, on_a_full_disk_names_path_bytes_needed_and_bytes_free) {
  memory_file_system memory;
  const auto first = save_step(memory, 11);
  ASSERT_TRUE(first);
  memory.set_capacity(memory.used_bytes() + first->bytes / 2);
  const auto made = save_step(memory, 12);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.failure().code, exit_code::io);
  EXPECT_THAT(reason(made),
              HasSubstr(fmt::format("cannot write {}: No space left on device; {} bytes "
                                    "needed; {} bytes free; free some space",
                                    folder_of(12), first->bytes, first->bytes / 2)));
  EXPECT_THAT(names_in(memory, directory), ElementsAre("step-00000011"));
  memory.set_capacity(memory.used_bytes() + 2 * first->bytes);
  EXPECT_TRUE(save_step(memory, 12));
}

// The free space may vanish between the check and the writes.
TEST(save, that_runs_out_of_space_at_any_write_keeps_the_older_one) {
  bool reached_the_end = false;
  for (std::size_t k = 1; !reached_the_end; ++k) {
    SCOPED_TRACE(fmt::format("write {}", k));
    memory_file_system memory;
    ASSERT_TRUE(save_step(memory, 10));
    faulty_file_system twin(memory);
    twin.inject({file_operation::write, "*", k, 1000, fault_kind::fail_half_way, ENOSPC});
    const auto made = save_step(twin, 20);
    reached_the_end = !twin.all_injected();
    ASSERT_EQ(bool(made), reached_the_end);
    if (reached_the_end) break;
    EXPECT_THAT(reason(made), HasSubstr("No space left on device"));
    EXPECT_THAT(names_in(memory, directory), ElementsAre("step-00000010"));
    expect_old_or_new(memory, false);
  }
}

TEST(remove_leftovers, removes_interrupted_saves_and_nothing_else) {
  memory_file_system memory;
  ASSERT_TRUE(save_step(memory, 10));
  faulty_file_system twin(memory);
  twin.inject({file_operation::sync, "*head*", 1, 1, fault_kind::crash});
  ASSERT_FALSE(save_step(twin, 20));
  ASSERT_TRUE(make_directories(memory, directory + "/step-00000030"));
  ASSERT_TRUE(make_directories(memory, directory + "/notes"));
  const auto removed = remove_leftovers(memory, directory);
  ASSERT_TRUE(removed);
  EXPECT_THAT(*removed, ElementsAre("step-00000020.partial-0", "step-00000030"));
  EXPECT_THAT(names_in(memory, directory), ElementsAre("notes", "step-00000010"));
  EXPECT_THAT(*remove_leftovers(memory, "/nowhere"), IsEmpty());
}

}  // namespace
}  // namespace troupe::checkpoint
