// The tests of the tests: each rule lets a right example pass and catches a wrong one.
#include "tests/tidy/rules.hpp"

#include <gmock/gmock.h>

namespace troupe::tidy {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

auto finding_at(const std::string& path, std::size_t line, const std::string& words) {
  return AllOf(Field(&finding::path, path), Field(&finding::line, line),
               Field(&finding::message, HasSubstr(words)));
}

TEST(code_only, blanks_comments_and_literals_and_keeps_lines) {
  EXPECT_EQ(code_only("a; // exp(\nb"), "a;        \nb");
  EXPECT_EQ(code_only("a /* x\ny */ b"), "a     \n     b");
  EXPECT_EQ(code_only(R"(f("pow(\"") + g)"), R"(f("      ") + g)");
  EXPECT_EQ(code_only("n = 1'000'000; x"), "n = 1'000'000; x");
  EXPECT_EQ(code_only("c = '\"'; x"), "c = ' '; x");
  EXPECT_EQ(code_only("r = R\"t(a\"b)t\"; x"), "r = R\"     )t\"; x");
}

TEST(include_directions, let_a_folder_use_what_is_below) {
  EXPECT_THAT(
      include_directions({{"model/a.cpp", "#include \"compute/b.hpp\"\n#include <vector>\n"},
                          {"compute/b.hpp", ""}}),
      IsEmpty());
}
TEST(include_directions, catch_a_look_upwards) {
  EXPECT_THAT(
      include_directions({{"compute/b.hpp", "\n#include \"model/a.hpp\"\n"}, {"model/a.hpp", ""}}),
      ElementsAre(finding_at("compute/b.hpp", 2, "compute must not use model")));
}
TEST(include_directions, keep_the_config_table_out_of_the_model) {
  EXPECT_THAT(include_directions({{"model/a.cpp", "#include \"config/settings.hpp\"\n"},
                                  {"config/settings.hpp", ""}}),
              ElementsAre(finding_at("model/a.cpp", 1, "model must not use config")));
}
TEST(include_directions, keep_the_protocol_pure) {
  EXPECT_THAT(include_directions({{"actors/protocol/a.cpp", "#include \"compute/ops.hpp\"\n"},
                                  {"compute/ops.hpp", ""}}),
              ElementsAre(finding_at("actors/protocol/a.cpp", 1, "must not use")));
}
TEST(include_directions, catch_a_path_that_does_not_start_at_the_root) {
  EXPECT_THAT(include_directions({{"model/a.cpp", "#include \"b.hpp\"\n"}, {"model/b.hpp", ""}}),
              ElementsAre(finding_at("model/a.cpp", 1, "no file of the tree")));
}
TEST(include_directions, catch_a_folder_that_has_no_row) {
  EXPECT_THAT(
      include_directions({{"extra/a.cpp", "#include \"compute/b.hpp\"\n"}, {"compute/b.hpp", ""}}),
      ElementsAre(finding_at("extra/a.cpp", 1, "no row")));
}

TEST(library_homes, catch_a_library_abroad) {
  EXPECT_THAT(library_homes({{"config/load_toml.cpp", "#include <toml++/toml.h>\n"}}), IsEmpty());
  EXPECT_THAT(library_homes({{"model/a.cpp", "#include <toml++/toml.h>\n"}}),
              ElementsAre(finding_at("model/a.cpp", 1, "at home in config/load")));
  EXPECT_THAT(library_homes({{"model/a.cpp", "#include <hwy/highway.h>\n"}}),
              ElementsAre(finding_at("model/a.cpp", 1, "compute/cpu/")));
}

TEST(folder_promises, want_a_row_a_folder_and_a_folder_a_row) {
  const std::string page =
      "| folder | promise |\n|---|---|\n| `docs/` | pages |\n| `model/` | what is trained |\n";
  EXPECT_THAT(folder_promises({{"docs/architecture.md", page}, {"model/a.cpp", ""}}), IsEmpty());
  EXPECT_THAT(
      folder_promises({{"docs/architecture.md", page}, {"model/a.cpp", ""}, {"comm/b.cpp", ""}}),
      ElementsAre(finding_at("docs/architecture.md", 0, "comm/")));
  EXPECT_THAT(folder_promises({{"docs/architecture.md", page}}),
              ElementsAre(finding_at("docs/architecture.md", 4, "model/")));
  EXPECT_THAT(folder_promises({{"model/a.cpp", ""}}),
              ElementsAre(finding_at("docs/architecture.md", 0, "missing")));
}

TEST(registered_tests, catch_a_forgotten_one) {
  const std::string list = "troupe_test(model/a_test.cpp USES x)\n";
  EXPECT_THAT(registered_tests({{"tests/CMakeLists.txt", list}, {"tests/model/a_test.cpp", ""}}),
              IsEmpty());
  EXPECT_THAT(registered_tests({{"tests/CMakeLists.txt", list}, {"tests/b_test.cpp", ""}}),
              ElementsAre(finding_at("tests/b_test.cpp", 0, "forgotten")));
  // Part of another name is not the name.
  EXPECT_THAT(registered_tests({{"tests/CMakeLists.txt", "troupe_test(x/model/a_test.cpp)"},
                                {"tests/model/a_test.cpp", ""}}),
              ElementsAre(finding_at("tests/model/a_test.cpp", 0, "forgotten")));
}

TEST(registered_tests, understand_a_loop_over_names) {
  const std::string list =
      "foreach(name a b)\n  troupe_test(model/${name}_test.cpp USES x)\nendforeach()\n";
  EXPECT_THAT(registered_tests({{"tests/CMakeLists.txt", list}, {"tests/model/a_test.cpp", ""}}),
              IsEmpty());
  EXPECT_THAT(registered_tests({{"tests/CMakeLists.txt", list}, {"tests/model/c_test.cpp", ""}}),
              ElementsAre(finding_at("tests/model/c_test.cpp", 0, "forgotten")));
}

TEST(compiled_sources, catch_a_file_that_no_list_names) {
  EXPECT_THAT(compiled_sources({{"model/CMakeLists.txt", "SOURCES a.cpp"}, {"model/a.cpp", ""}}),
              IsEmpty());
  EXPECT_THAT(compiled_sources({{"model/CMakeLists.txt", "SOURCES aa.cpp"}, {"model/a.cpp", ""}}),
              ElementsAre(finding_at("model/a.cpp", 0, "not compiled")));
}

TEST(mirrored_tests, want_a_test_or_a_reason) {
  const std::string list =
      "# source, test, why\nmodel/a.cpp tests/model/b_test.cpp one behaviour\n";
  EXPECT_THAT(mirrored_tests({{"model/a.cpp", ""}, {"tests/model/a_test.cpp", ""}}), IsEmpty());
  EXPECT_THAT(mirrored_tests({{"model/a.cpp", ""}}),
              ElementsAre(finding_at("model/a.cpp", 0, "has no tests/model/a_test.cpp")));
  EXPECT_THAT(mirrored_tests({{"model/a.cpp", ""},
                              {"tests/model/b_test.cpp", ""},
                              {"tests/tidy/tested_elsewhere.txt", list}}),
              IsEmpty());
}
TEST(mirrored_tests, catch_lines_that_are_not_true_any_more) {
  const std::string list = "model/a.cpp tests/model/b_test.cpp reason\n";
  EXPECT_THAT(mirrored_tests({{"model/a.cpp", ""}, {"tests/tidy/tested_elsewhere.txt", list}}),
              ElementsAre(finding_at("tests/tidy/tested_elsewhere.txt", 1,
                                     "tests/model/b_test.cpp does not exist")));
  EXPECT_THAT(
      mirrored_tests({{"tests/model/b_test.cpp", ""}, {"tests/tidy/tested_elsewhere.txt", list}}),
      ElementsAre(finding_at("tests/tidy/tested_elsewhere.txt", 1, "model/a.cpp does not exist")));
  EXPECT_THAT(mirrored_tests({{"model/a.cpp", ""},
                              {"tests/model/a_test.cpp", ""},
                              {"tests/model/b_test.cpp", ""},
                              {"tests/tidy/tested_elsewhere.txt", list}}),
              ElementsAre(finding_at("tests/tidy/tested_elsewhere.txt", 1, "remove the line")));
  EXPECT_THAT(
      mirrored_tests({{"tests/tidy/tested_elsewhere.txt", "model/a.cpp tests/model/b_test.cpp\n"}}),
      ElementsAre(finding_at("tests/tidy/tested_elsewhere.txt", 1, "why")));
}

struct call {
  std::string path, code;
};
class forbidden_call : public testing::TestWithParam<call> {};
TEST_P(forbidden_call, is_caught) {
  const auto& [path, code] = GetParam();
  EXPECT_THAT(forbidden_calls({{path, "\n" + code + "\n"}}), ElementsAre(finding_at(path, 2, "`")));
}
INSTANTIATE_TEST_SUITE_P(
    each, forbidden_call,
    testing::Values(
        call{"compute/a.cpp", "y = std::exp(x);"}, call{"compute/a.cpp", "y = expf(x);"},
        call{"model/a.hpp", "return pow(a, b);"}, call{"compute/a.hpp", "return ::log(a);"},
        call{"actors/trainer.cpp", "x = std::cos(y);"},
        call{"compute/cpu/a.hpp", "std::normal_distribution<float> d;"},
        call{"model/a.cpp", "std::mt19937_64 engine;"}, call{"config/a.cpp", "n = rand();"},
        call{"model/a.cpp", "s = std::reduce(a, b);"},
        call{"model/a.cpp", "auto t = std::chrono::steady_clock::now();"},
        call{"actors/worker.cpp", "if (clock.wall() > deadline) end();"},
        call{"actors/protocol/a.hpp", "std::unordered_map<int, int> m;"},
        call{"actors/a.cpp", "setlocale(LC_ALL, p);"}, call{"config/a.cpp", "d = std::stod(text);"},
        call{"config/a.cpp", "d = strtod(text, &end);"},
        call{"actors/a.cpp", "std::snprintf(b, n, f, x);"}));

TEST(forbidden_calls, leave_our_own_functions_comments_and_other_folders_alone) {
  EXPECT_THAT(
      forbidden_calls({{"compute/a.cpp",
                        "y = math::exp(x); z = m.log(1); // std::exp(x)\nauto s = std::sqrt(x);\n"},
                       {"tests/compute/a_test.cpp", "y = std::exp(x);\n"},
                       {"actors/text.cpp", "double mean_exp(double x);\n"}}),
      IsEmpty());
}

TEST(leftovers, catch_what_should_not_have_stayed) {
  EXPECT_THAT(leftovers({{"a.cpp", "int a;\n"}}), IsEmpty());
  EXPECT_THAT(leftovers({{"a.cpp", "\tint a;\n"}}), ElementsAre(finding_at("a.cpp", 1, "tab")));
  EXPECT_THAT(leftovers({{"a.md", "word \n"}}), ElementsAre(finding_at("a.md", 1, "blank")));
  EXPECT_THAT(leftovers({{"a.cpp", "// TODO later\n"}}),
              ElementsAre(finding_at("a.cpp", 1, "note")));
  EXPECT_THAT(leftovers({{"a.cpp", "std::cerr << \"DEBUG\" << x;\n"}}),
              ElementsAre(finding_at("a.cpp", 1, "debugging")));
  EXPECT_THAT(leftovers({{"a.cpp", "#if 0\n"}}), ElementsAre(finding_at("a.cpp", 1, "debugging")));
  EXPECT_THAT(leftovers({{"a.hpp", "int a;"}}), ElementsAre(finding_at("a.hpp", 1, "newline")));
  std::string longest;
  for (int i = 0; i < 500; ++i) longest += "int a;\n";
  EXPECT_THAT(leftovers({{"a.cpp", longest}}), IsEmpty());
  EXPECT_THAT(leftovers({{"a.cpp", longest + "int b;\n"}}),
              ElementsAre(finding_at("a.cpp", 0, "501 lines")));
}

TEST(run_examples, catch_one_that_nothing_runs) {
  const source_tree tree = {{"tests/CMakeLists.txt", "COMMAND examples/a.sh"},
                            {"examples/a.sh", "troupe train examples/a.toml"},
                            {"examples/a.toml", ""}};
  EXPECT_THAT(run_examples(tree), IsEmpty());
  source_tree more = tree;
  more["examples/b.toml"] = "";
  EXPECT_THAT(run_examples(more), ElementsAre(finding_at("examples/b.toml", 0, "nothing runs")));
}

TEST(self_contained_pages, catch_what_a_reader_cannot_follow) {
  const source_tree right = {
      {"docs/a.md", "See [b](b.md), [c](../README.md#first), `model/tree.hpp`, /usr/share/x.\n"},
      {"docs/b.md", ""},
      {"README.md", "[all](https://example.org)\n"},
      {"model/tree.hpp", ""}};
  EXPECT_THAT(self_contained_pages(right), IsEmpty());
  EXPECT_THAT(self_contained_pages({{"docs/a.md", "[b](b.md)\n"}}),
              ElementsAre(finding_at("docs/a.md", 1, "b.md")));
  EXPECT_THAT(self_contained_pages({{"docs/a.md", "`model/tree.hpp`\n"}}),
              ElementsAre(finding_at("docs/a.md", 1, "model/tree.hpp")));
  EXPECT_THAT(self_contained_pages({{"docs/a.md", "in /home/me/notes.txt\n"}}),
              ElementsAre(finding_at("docs/a.md", 1, "/home/me/notes.txt")));
  EXPECT_THAT(self_contained_pages({{"docs/a.md", "[b](../../notes/b.md)\n"}}),
              testing::Contains(finding_at("docs/a.md", 1, "not in the repository")));
}

}  // namespace
}  // namespace troupe::tidy
