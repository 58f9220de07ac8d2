#include "config/print.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <fstream>
#include <locale>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "config/check.hpp"
#include "config/known_names.hpp"
#include "config/load.hpp"
#include "config/options.hpp"

namespace troupe::config {
namespace {

using testing::HasSubstr;

class dice {
 public:
  explicit dice(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  std::string text() {
    static const std::vector<std::string> letters{
        "a",          "Z",    "0", " ",      "\"",     "\\",
        "'",          "#",    "=", "\n",     "\t",     std::string(1, '\0'),
        "\x01",       "\x7f", "[", "{name}", "\u00e4", "\u20ac",
        "\U0001F600", ".",    "/"};
    std::string s = "x";
    for (std::uint64_t i = below(8); i > 0; --i) s += letters[below(letters.size())];
    return s;
  }

  // Any value that the row takes.
  value fitting(const option& o) {
    for (;;) {
      value v = any(o);
      if (const auto f = fit(o, {v, "x"})) return *f;
    }
  }

 private:
  value any(const option& o) {
    switch (o.kind) {
      case kind::text:
        return text();
      case kind::choice:
        return std::string(o.choices[below(o.choices.size())]);
      case kind::boolean:
        return below(2) == 1;
      case kind::integer:
        return static_cast<std::int64_t>(random_() >> (1 + below(63))) - 1;
      default:
        return std::ldexp(static_cast<double>(random_()), -static_cast<int>(below(140)));
    }
  }
  std::mt19937_64 random_;
};

settings random_settings(dice& d) {
  settings s = default_settings();
  reset_sources(s, 1 + d.below(3));
  const bool scaled = d.below(2) == 1;
  for (const option& o : options()) {
    if (o.kind == kind::table || o.kind == kind::tables || o.name == "model.flavor") continue;
    if (o.section() == "model.rope_scaling" && !scaled) continue;
    const bool in_list = o.section() == "data.sources[]";
    const std::size_t entries = in_list ? s.data.sources.size() : 1;
    const bool optional = std::holds_alternative<std::monostate>(o.get(s, 0));
    if (optional && o.section() != "model.rope_scaling" && d.below(2) == 1) continue;
    for (std::size_t i = 0; i < entries; ++i) o.set(s, i, d.fitting(o));
  }
  return s;
}

using printed = std::vector<std::pair<std::string, std::string>>;
printed printed_values(const settings& s) {
  printed all;
  for (const setting& one : list_settings(s)) all.emplace_back(one.key, print_value(one.value));
  return all;
}

TEST(print, shown_settings_load_as_the_same_settings) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  dice d(seed);
  for (int i = 0; i < 300; ++i) {
    const settings s = random_settings(d);
    const std::string text = show_toml(s);
    const auto back = load_as_written({"shown.toml", text, {}, {}});
    ASSERT_TRUE(back) << back.failure().message << "\n" << text;
    ASSERT_EQ(printed_values(back->settings), printed_values(s)) << text;
  }
}

settings effective(std::vector<std::string> overrides) {
  auto r = load({"run.toml",
                 "[[data.sources]]\npath = \"a\"\n[training]\nglobal_batch_size = 8\n",
                 {},
                 std::move(overrides)});
  EXPECT_TRUE(r) << r.failure().message;
  return r ? r->settings : settings{};
}

TEST(print, the_effective_configuration_is_its_own_effective_configuration) {
  for (const char* flavor : {"", "debugmodel", "124M", "1B"}) {
    const settings s = effective({std::string("model.flavor=") + flavor});
    const auto back = load({"other_name.toml", show_toml(s), {}, {}});
    ASSERT_TRUE(back) << back.failure().message;
    EXPECT_EQ(printed_values(back->settings), printed_values(s));
    EXPECT_EQ(show_toml(back->settings), show_toml(s));
  }
}

TEST(print, origins_stand_behind_the_values_as_comments) {
  const auto r = load({"run.toml",
                       "[[data.sources]]\npath = \"a # b\"\n[training]\n"
                       "global_batch_size = 8\n",
                       {},
                       {"training.steps=500"}});
  ASSERT_TRUE(r);
  const std::string text = show_toml(r->settings, r->origins);
  EXPECT_THAT(text, HasSubstr("path = \"a # b\"  # run.toml:2\n"));
  EXPECT_THAT(text, HasSubstr("steps = 500  # command line\n"));
  const auto back = load_as_written({"run.toml", text, {}, {}});
  ASSERT_TRUE(back) << back.failure().message;
  EXPECT_EQ(printed_values(back->settings), printed_values(r->settings));
}

TEST(print, json_holds_the_same_values) {
  settings s = effective({"optimizer.lr=0.1", "training.seed=9007199254740993"});
  s.model.rope_scaling = {8, 1, 4, 8192};
  const auto json = nlohmann::json::parse(show_json(s));
  EXPECT_EQ(json["optimizer"]["lr"].get<double>(), 0.1);
  EXPECT_EQ(json["training"]["seed"].get<std::int64_t>(), 9007199254740993);
  EXPECT_EQ(json["data"]["sources"][0]["path"], "a");
  EXPECT_EQ(json["data"]["shuffle"], true);
  EXPECT_EQ(json["model"]["rope_scaling"]["factor"], 8.0);
  EXPECT_FALSE(json["lr_scheduler"].contains("decay_ratio"));
}

TEST(print, every_key_is_explained) {
  for (const option& o : options()) {
    const auto text = explain(o.name);
    ASSERT_TRUE(text) << o.name;
    EXPECT_THAT(*text, HasSubstr(o.sentence));
    EXPECT_THAT(overview(), HasSubstr(o.sentence));
  }
  EXPECT_THAT(
      *explain("training.micro_batch_size"),
      testing::AllOf(HasSubstr("sequences"), HasSubstr("default 8"), HasSubstr("never changes"),
                     HasSubstr("TROUPE_TRAINING_MICRO_BATCH_SIZE"), HasSubstr("batch_size")));
}

TEST(print, tables_and_other_names_are_explained_too) {
  EXPECT_THAT(*explain("optimizer"), HasSubstr("two or more dimensions"));
  EXPECT_THAT(*explain("block_size"), HasSubstr("training.seq_len"));
  EXPECT_THAT(*explain("checkpoint.interval"), HasSubstr("not in this version"));
  EXPECT_THAT(*explain("metrics.enable_wandb"), HasSubstr("not supported"));
  EXPECT_EQ(explain("banana"), std::nullopt);
}

TEST(print, the_reference_page_in_docs_is_in_step_with_the_table) {
  std::ifstream stream(TROUPE_SOURCE_DIR "/docs/configuration.md");
  std::ostringstream page;
  page << stream.rdbuf();
  EXPECT_TRUE(page.str() == reference_page())
      << "docs/configuration.md is not what the option table prints; write it again with\n"
         "  build/release/troupe config reference > docs/configuration.md";
}

TEST(print, the_reference_page_names_every_key) {
  const std::string page = reference_page();
  for (const option& o : options()) EXPECT_THAT(page, HasSubstr(o.sentence));
  for (const foreign_name& f : foreign_names()) EXPECT_THAT(page, HasSubstr(f.name));
}

class decimal_comma : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(print, a_locale_with_a_decimal_comma_changes_nothing) {
  const std::string text = show_toml(effective({"optimizer.lr=1.5e-3", "training.steps=123456"}));
  const std::string json = show_json(effective({"optimizer.lr=1.5e-3"}));
  const std::string page = reference_page();
  const std::locale before = std::locale::global(std::locale(std::locale(), new decimal_comma));
  // The C locale as well, where the system has such a one.
  const std::string c_before = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8"}) {
    if (std::setlocale(LC_ALL, name) != nullptr) break;
  }
  EXPECT_EQ(show_toml(effective({"optimizer.lr=1.5e-3", "training.steps=123456"})), text);
  EXPECT_EQ(show_json(effective({"optimizer.lr=1.5e-3"})), json);
  EXPECT_EQ(reference_page(), page);
  const auto back = load({"run.toml", text, {}, {}});
  EXPECT_TRUE(back && back->settings.optimizer.lr == 1.5e-3 &&
              back->settings.training.steps == 123456);
  std::locale::global(before);
  std::setlocale(LC_ALL, c_before.c_str());
}

}  // namespace
}  // namespace troupe::config
