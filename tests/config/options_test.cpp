#include "config/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "config/known_names.hpp"

namespace troupe::config {
namespace {

using testing::HasSubstr;

bool holds_one_value(const option& o) { return o.kind != kind::table && o.kind != kind::tables; }

settings with_all_parts() {
  settings s = default_settings();
  reset_sources(s, 1);
  s.model.rope_scaling = {8, 1, 4, 8192};
  return s;
}

TEST(options, every_default_parses_and_lies_in_its_bounds) {
  for (const option& o : options()) {
    if (o.standard.empty() || !holds_one_value(o)) continue;
    const auto v = fit(o, read_text(o, o.standard));
    EXPECT_TRUE(v) << o.name << ": " << (v ? "" : v.failure().message);
  }
}

TEST(options, every_default_is_what_default_settings_hold) {
  const settings s = with_all_parts();
  for (const option& o : options()) {
    if (o.standard.empty() || !holds_one_value(o)) continue;
    const auto v = fit(o, read_text(o, o.standard));
    ASSERT_TRUE(v);
    EXPECT_EQ(print_value(o.get(s, 0)), print_value(*v)) << o.name;
  }
}

// Two rows that share a member would show here: setting one would move the other.
TEST(options, every_row_writes_its_own_member_and_no_other) {
  for (const option& changed : options()) {
    if (!holds_one_value(changed) || changed.name == "model.rope_scaling.rope_type") continue;
    const settings before = with_all_parts();
    settings after = before;
    value v;
    switch (changed.kind) {
      case kind::text:
        v = std::string("something else");
        break;
      case kind::choice:
        v = std::string(changed.choices.back());
        break;
      case kind::integer:
        v = std::int64_t{77};
        break;
      case kind::number:
        v = 0.4375;
        break;
      default:
        v = changed.get(before, 0) != value(true);
        break;
    }
    changed.set(after, 0, v);
    EXPECT_EQ(print_value(changed.get(after, 0)), print_value(v)) << changed.name;
    for (const option& other : options()) {
      if (&other == &changed) continue;
      EXPECT_EQ(print_value(other.get(after, 0)), print_value(other.get(before, 0)))
          << changed.name << " moves " << other.name;
    }
  }
}

TEST(options, names_are_unique_and_so_are_their_environment_names) {
  std::set<std::string> names, variables;
  for (const option& o : options()) {
    EXPECT_TRUE(names.insert(std::string(o.name)).second) << o.name;
    EXPECT_TRUE(variables.insert(environment_name(o.name)).second) << o.name;
  }
  for (const std::string_view name : absent_names()) {
    EXPECT_TRUE(names.insert(std::string(name)).second) << name;
    EXPECT_TRUE(variables.insert(environment_name(name)).second) << name;
  }
  for (const unsupported_name& u : unsupported_names()) {
    EXPECT_TRUE(names.insert(std::string(u.name)).second) << u.name;
  }
}

TEST(options, every_row_has_a_table_and_a_sentence) {
  for (const option& o : options()) {
    EXPECT_NE(find_section(o.section()), nullptr) << o.name;
    EXPECT_TRUE(o.sentence.ends_with('.')) << o.name;
  }
}

TEST(options, settings_are_listed_in_table_order_with_the_entries_of_a_list_together) {
  settings s = with_all_parts();
  reset_sources(s, 2);
  std::vector<std::string> keys;
  for (const setting& one : list_settings(s)) {
    if (one.key.starts_with("data.sources")) keys.push_back(one.key);
  }
  EXPECT_THAT(keys, testing::ElementsAre("data.sources[0].path", "data.sources[0].name",
                                         "data.sources[0].format", "data.sources[0].text_key",
                                         "data.sources[1].path", "data.sources[1].name",
                                         "data.sources[1].format", "data.sources[1].text_key"));
}

TEST(known_names, every_foreign_name_is_told_ours_with_and_without_a_table) {
  for (const foreign_name& f : foreign_names()) {
    EXPECT_THAT(explain_unknown(f.name), HasSubstr(f.ours)) << f.name;
    if (f.name.find('.') != std::string_view::npos) continue;
    for (const std::string table : {"training.", "model.", "train.", "data.sources[3]."}) {
      EXPECT_THAT(explain_unknown(table + std::string(f.name)), HasSubstr(f.ours)) << f.name;
    }
  }
}

TEST(known_names, every_foreign_name_leads_to_a_name_that_we_know) {
  std::set<std::string_view> ours;
  for (const option& o : options()) ours.insert(o.name);
  for (const std::string_view name : absent_names()) ours.insert(name);
  for (const unsupported_name& u : unsupported_names()) ours.insert(u.name);
  for (const foreign_name& f : foreign_names()) {
    EXPECT_TRUE(ours.contains(f.ours) || f.ours.starts_with("`--")) << f.name;
  }
}

TEST(known_names, dashes_and_capitals_of_flags_make_no_difference) {
  EXPECT_THAT(explain_unknown("train-iters"), HasSubstr("training.steps"));
  EXPECT_THAT(explain_unknown("Block-Size"), HasSubstr("training.seq_len"));
}

TEST(known_names, what_has_no_code_yet_is_known_and_refused) {
  for (const std::string_view name : absent_names()) {
    EXPECT_THAT(explain_unknown(name), HasSubstr("not in this version")) << name;
  }
  EXPECT_THAT(explain_unknown("data.sources[2].weight"), HasSubstr("not in this version"));
  EXPECT_THAT(explain_unknown("training.save_interval"),
              testing::AllOf(HasSubstr("checkpoint.interval"), HasSubstr("not in this version")));
}

TEST(known_names, what_will_not_come_says_how_to_get_there) {
  EXPECT_THAT(explain_unknown("parallelism.data_parallel_degree"),
              testing::AllOf(HasSubstr("not supported"), HasSubstr("--workers")));
  EXPECT_THAT(explain_unknown("metrics.enable_wandb"),
              testing::AllOf(HasSubstr("not supported"), HasSubstr("steps.jsonl")));
  EXPECT_THAT(explain_unknown("parallelism.context_parallel_degree"), HasSubstr("not supported"));
  EXPECT_THAT(explain_unknown("parallelism.expert_parallel_degree"), HasSubstr("not supported"));
}

TEST(known_names, a_right_key_in_a_wrong_table_is_told_its_place) {
  EXPECT_EQ(explain_unknown("training.lr"), "misplaced key; its place is optimizer.lr");
  EXPECT_THAT(explain_unknown("training.warmup_steps"), HasSubstr("lr_scheduler.warmup_steps"));
  EXPECT_THAT(explain_unknown("steps"), HasSubstr("training.steps or validation.steps"));
  EXPECT_THAT(explain_unknown("training.keep_latest_k"),
              testing::AllOf(HasSubstr("misplaced"), HasSubstr("checkpoint.keep_latest_k"),
                             HasSubstr("not in this version")));
}

TEST(known_names, a_mistyped_key_is_told_the_nearest_of_its_own_table_first) {
  EXPECT_EQ(explain_unknown("training.stepps"), "unknown key; the nearest is training.steps");
  EXPECT_EQ(explain_unknown("validation.stepps"), "unknown key; the nearest is validation.steps");
  EXPECT_EQ(explain_unknown("data.sources[1].pth"),
            "unknown key; the nearest is data.sources[].path");
  EXPECT_EQ(explain_unknown("trainning.steps"),
            "unknown table [trainning]; the nearest is training.steps");
}

TEST(known_names, a_key_near_to_nothing_is_told_what_there_is) {
  EXPECT_THAT(explain_unknown("compute.banana"), HasSubstr("[compute] has backend threads"));
  EXPECT_THAT(explain_unknown("banana.split_it"), HasSubstr("the tables are job model"));
}

}  // namespace
}  // namespace troupe::config
