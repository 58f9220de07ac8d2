#include "config/base/file.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <stdlib.h>

#include "config/base/faulty_file.hpp"
#include "config/base/memory_file.hpp"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// One conformance suite for every implementation: the real one, memory, and the twin without
// faults.
class every_file_system : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "real") {
      std::string name = testing::TempDir() + "troupe-file-XXXXXX";
      ASSERT_NE(::mkdtemp(name.data()), nullptr);
      root = name;
    } else {
      ASSERT_TRUE(make_directories(memory, "/some/place"));
      root = "/some/place";
    }
  }
  void TearDown() override { EXPECT_TRUE(remove_all(fs(), root)); }

  file_system& fs() {
    if (GetParam() == "real") return real_file_system();
    if (GetParam() == "twin") return twin;
    return memory;
  }
  std::string at(std::string_view name) { return join_path(root, name); }
  std::string content(std::string_view name) {
    auto text = read_file(fs(), at(name), 1 << 20);
    return text ? *text : text.failure().message;
  }
  std::vector<std::string> names(std::string_view directory) {
    std::vector<std::string> found;
    const auto entries = fs().list(at(directory));
    for (const auto& e : *entries) found.push_back(e.name);
    return found;
  }

  memory_file_system memory;
  faulty_file_system twin{memory};
  std::string root;
};

INSTANTIATE_TEST_SUITE_P(all, every_file_system, testing::Values("real", "memory", "twin"),
                         [](const auto& i) { return i.param; });

TEST_P(every_file_system, reads_what_was_written_and_stops_at_the_end) {
  auto out = *fs().open(at("a"), open_mode::create);
  ASSERT_TRUE(out->write_at(3, bytes("def")));
  ASSERT_TRUE(out->write_at(0, bytes("abc")));
  ASSERT_TRUE(out->sync());
  EXPECT_EQ(*out->size(), 6u);
  std::string got(10, '.');
  auto count = out->read_at(2, std::as_writable_bytes(std::span(got)));
  ASSERT_TRUE(count);
  EXPECT_EQ(got.substr(0, *count), "cdef");
  auto exact = read_exactly(*out, 2, std::as_writable_bytes(std::span(got)));
  ASSERT_FALSE(exact);
  EXPECT_THAT(exact.failure().message, HasSubstr("ends at byte 6"));
}

TEST_P(every_file_system, modes_mean_what_they_say) {
  EXPECT_FALSE(fs().open(at("a"), open_mode::read));
  EXPECT_FALSE(fs().open(at("a"), open_mode::update));
  EXPECT_TRUE((*fs().open(at("a"), open_mode::create))->write_at(0, bytes("one")));
  EXPECT_FALSE(fs().open(at("a"), open_mode::create));
  EXPECT_TRUE((*fs().open(at("a"), open_mode::update))->write_at(1, bytes("N")));
  EXPECT_EQ(content("a"), "oNe");
  EXPECT_TRUE((*fs().open(at("a"), open_mode::append))->append(bytes(" two")));
  EXPECT_EQ(content("a"), "oNe two");
  EXPECT_FALSE((*fs().open(at("a"), open_mode::read))->write_at(0, bytes("x")));
  EXPECT_TRUE((*fs().open(at("a"), open_mode::append))->truncate(3));
  EXPECT_EQ(content("a"), "oNe");
  (void)*fs().open(at("a"), open_mode::truncate);
  EXPECT_EQ(content("a"), "");
  EXPECT_FALSE(fs().open(root, open_mode::read));
}

TEST_P(every_file_system, links_never_replace_and_renames_do) {
  ASSERT_TRUE(replace(fs(), at("a"), "first"));
  ASSERT_TRUE(replace(fs(), at("b"), "second"));
  EXPECT_EQ(*fs().link(at("a"), at("b")), false);
  EXPECT_EQ(*fs().link(at("a"), at("c")), true);
  EXPECT_EQ(content("b"), "second");
  EXPECT_EQ(content("c"), "first");
  ASSERT_TRUE(fs().rename(at("a"), at("b")));
  EXPECT_EQ(content("b"), "first");
  EXPECT_THAT(names(""), ElementsAre("b", "c"));
  EXPECT_FALSE(fs().rename(at("gone"), at("b")));
  EXPECT_FALSE(fs().link(at("gone"), at("d")));
}

TEST_P(every_file_system, directories_are_made_listed_in_order_and_removed_with_all) {
  ASSERT_TRUE(make_directories(fs(), at("x/y/z")));
  ASSERT_TRUE(make_directories(fs(), at("x/y/z")));
  ASSERT_TRUE(replace(fs(), at("x/b"), ""));
  ASSERT_TRUE(replace(fs(), at("x/a"), ""));
  EXPECT_THAT(*fs().list(at("x")),
              ElementsAre(directory_entry{"a", false}, directory_entry{"b", false},
                          directory_entry{"y", true}));
  EXPECT_EQ(*fs().make_directory(at("x")), false);
  EXPECT_FALSE(fs().make_directory(at("x/a")));
  EXPECT_FALSE(fs().remove(at("x")));
  EXPECT_FALSE(fs().rename(at("x/y"), at("x/a")));
  EXPECT_EQ(*fs().exists(at("x/y/z")), true);
  ASSERT_TRUE(remove_all(fs(), at("x")));
  EXPECT_EQ(*fs().exists(at("x")), false);
  EXPECT_TRUE(remove_all(fs(), at("x")));
  EXPECT_FALSE(fs().list(at("x")));
}

TEST_P(every_file_system, publish_is_write_once_and_leaves_no_temporary_name) {
  EXPECT_EQ(*publish(fs(), at("plan"), "mine"), publish_outcome::published);
  EXPECT_EQ(*publish(fs(), at("plan"), "yours"), publish_outcome::taken);
  EXPECT_EQ(content("plan"), "mine");
  ASSERT_TRUE(replace(fs(), at("plan"), "new"));
  EXPECT_EQ(content("plan"), "new");
  EXPECT_THAT(names(""), ElementsAre("plan"));
}

TEST_P(every_file_system, keeps_a_private_file_for_its_owner) {
  EXPECT_EQ(*publish_private(fs(), at("a"), "mine"), publish_outcome::published);
  EXPECT_EQ(*publish_private(fs(), at("a"), "yours"), publish_outcome::taken);
  EXPECT_EQ(content("a"), "mine");
  EXPECT_THAT(names(""), ElementsAre("a"));
  EXPECT_TRUE(*(*fs().open(at("a"), open_mode::read))->only_for_owner());
  EXPECT_FALSE(fs().open(at("a"), open_mode::create_private));
  EXPECT_EQ(*publish(fs(), at("b"), "for all"), publish_outcome::published);
  EXPECT_FALSE(*(*fs().open(at("b"), open_mode::read))->only_for_owner());
}

TEST_P(every_file_system, read_file_refuses_more_than_expected) {
  ASSERT_TRUE(replace(fs(), at("a"), "12345"));
  EXPECT_EQ(content("a"), "12345");
  auto text = read_file(fs(), at("a"), 4);
  ASSERT_FALSE(text);
  EXPECT_THAT(text.failure().message, HasSubstr("has 5 bytes; at most 4"));
}

TEST(paths, are_joined_and_taken_apart) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(parent_path("a/b/"), "a");
  EXPECT_EQ(parent_path("b"), ".");
  EXPECT_EQ(parent_path("/b"), "/");
  EXPECT_EQ(parent_path("/"), "/");
  EXPECT_EQ(base_name("a/b/"), "b");
}

TEST(file_errors, name_path_reason_and_space) {
  memory_file_system memory;
  memory.set_capacity(10);
  auto out = *memory.open("/full", open_mode::create);
  auto s = out->write_at(4, bytes("0123456789"));
  ASSERT_FALSE(s);
  EXPECT_EQ(s.failure().code, exit_code::io);
  EXPECT_THAT(s.failure().message, HasSubstr("cannot write /full: No space left on device; "
                                             "4 bytes needed; 0 bytes free; free some space"));
  EXPECT_EQ(*out->size(), 10u);
  EXPECT_EQ(to_error({"open", "x", EROFS}).code, exit_code::cannot_use);
  EXPECT_EQ(to_error({"open", "x", EIO}).code, exit_code::io);
}

TEST(power_loss, forgets_contents_and_names_that_were_not_synced) {
  memory_file_system memory;
  ASSERT_TRUE(make_directories(memory, "/run"));
  auto a = *memory.open("/run/a", open_mode::create);
  ASSERT_TRUE(a->write_at(0, bytes("kept")));
  ASSERT_TRUE(a->sync());
  ASSERT_TRUE(memory.sync_directory("/run"));
  ASSERT_TRUE(a->write_at(0, bytes("lost content")));
  auto b = *memory.open("/run/b", open_mode::create);
  ASSERT_TRUE(b->write_at(0, bytes("synced content, unsynced name")));
  ASSERT_TRUE(b->sync());
  memory.power_loss(0);
  EXPECT_THAT(*memory.list("/run"), ElementsAre(directory_entry{"a", false}));
  EXPECT_EQ(*read_file(memory, "/run/a", 100), "kept");
}

TEST(power_loss, keeps_everything_when_only_the_process_dies) {
  memory_file_system memory;
  auto a = *memory.open("/a", open_mode::create);
  ASSERT_TRUE(a->write_at(0, bytes("written")));
  memory.power_loss(1);
  EXPECT_EQ(*read_file(memory, "/a", 100), "written");
}

TEST(power_loss, tears_unsynced_pages_and_never_synced_ones) {
  bool saw_torn = false, saw_lost = false, saw_kept = false;
  for (std::uint64_t seed = 2; seed < 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    memory_file_system memory;
    auto a = *memory.open("/a", open_mode::create);
    ASSERT_TRUE(a->write_at(0, bytes(std::string(8192, 'o'))));
    ASSERT_TRUE(a->sync());
    ASSERT_TRUE(memory.sync_directory("/"));
    ASSERT_TRUE(a->write_at(4096, bytes(std::string(4096, 'n'))));
    memory.power_loss(seed);
    const std::string left = *read_file(memory, "/a", 1 << 20);
    ASSERT_EQ(left.size(), 8192u);
    EXPECT_EQ(left.substr(0, 4096), std::string(4096, 'o'));
    const auto news = std::count(left.begin() + 4096, left.end(), 'n');
    const auto olds = std::count(left.begin() + 4096, left.end(), 'o');
    EXPECT_EQ(news + olds, 4096);
    (news == 0 ? saw_lost : olds == 0 ? saw_kept : saw_torn) = true;
  }
  EXPECT_TRUE(saw_torn && saw_lost && saw_kept);
}

TEST(faulty_file_system, fails_the_chosen_operation_only_and_says_that_it_was_staged) {
  memory_file_system memory;
  faulty_file_system twin(memory);
  twin.inject({file_operation::write, "*/b", 2, 1, fault_kind::fail_half_way, ENOSPC});
  auto a = *twin.open("/a", open_mode::create);
  auto b = *twin.open("/b", open_mode::create);
  EXPECT_TRUE(a->write_at(0, bytes("1234")));
  EXPECT_TRUE(a->write_at(0, bytes("1234")));
  EXPECT_TRUE(b->write_at(0, bytes("1234")));
  EXPECT_FALSE(twin.all_injected());
  auto s = b->write_at(4, bytes("5678"));
  ASSERT_FALSE(s);
  EXPECT_THAT(s.failure().message, HasSubstr("No space left"));
  EXPECT_THAT(s.failure().message, HasSubstr("(injected)"));
  EXPECT_TRUE(twin.all_injected());
  EXPECT_EQ(*b->size(), 6u);
  EXPECT_TRUE(b->write_at(4, bytes("5678")));
}

TEST(faulty_file_system, lets_nothing_through_after_a_crash) {
  memory_file_system memory;
  faulty_file_system twin(memory);
  ASSERT_TRUE(replace(twin, "/a", "old"));
  const std::size_t before = twin.operations().size();
  twin.inject({file_operation::rename, "*", 1, 1, fault_kind::crash});
  EXPECT_FALSE(replace(twin, "/a", "new"));
  EXPECT_TRUE(twin.crashed());
  EXPECT_FALSE(twin.exists("/a"));
  EXPECT_FALSE(twin.remove("/a"));
  EXPECT_EQ(*read_file(memory, "/a", 100), "old");
  EXPECT_EQ(twin.operations().size(), before + 4);  // create, write, sync, the fatal rename
}

// The promises of publish and replace, wherever the machine dies.
TEST(durable_publishing, shows_old_or_new_content_after_a_crash_anywhere) {
  for (const fault_kind kind : {fault_kind::crash, fault_kind::crash_half_way}) {
    for (std::size_t k = 1;; ++k) {
      bool finished = false;
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        SCOPED_TRACE(fmt::format("kind {} operation {} seed {}", int(kind), k, seed));
        memory_file_system memory;
        ASSERT_TRUE(make_directories(memory, "/run"));
        ASSERT_TRUE(replace(memory, "/run/address", "old"));
        faulty_file_system twin(memory);
        twin.inject({.at = k, .kind = kind});
        const bool told_published = bool(publish(twin, "/run/plan", "plan"));
        const bool told_replaced = told_published && bool(replace(twin, "/run/address", "new"));
        finished = !twin.crashed();
        memory.power_loss(seed);
        const std::string address = *read_file(memory, "/run/address", 100);
        const bool published = *memory.exists("/run/plan");
        if (told_published) {
          EXPECT_TRUE(published);
        }
        if (told_replaced) {
          EXPECT_EQ(address, "new");
        }
        EXPECT_TRUE(address == "old" || address == "new") << address;
        if (published) {
          EXPECT_EQ(*read_file(memory, "/run/plan", 100), "plan");
        }
      }
      if (finished) break;
      ASSERT_LT(k, 100u);
    }
  }
}

}  // namespace
}  // namespace troupe
