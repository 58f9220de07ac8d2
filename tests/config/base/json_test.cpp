#include "config/base/json.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <locale>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(std::string_view text) {
  auto r = parse_json(text, "f.json");
  return r ? "accepted" : r.failure().message;
}

TEST(parse_json, refuses_what_is_not_strict_json_and_says_where) {
  EXPECT_THAT(refusal("{\"a\": 1,}"),
              HasSubstr("f.json: not valid JSON: parse error at line 1, column"));
  EXPECT_THAT(refusal("{\"a\": 1} x"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{\"a\": NaN}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{\"a\": 1e999}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{\"a\": \"\xff\"}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{\"a\": 1, \"b\": {\"a\": 2, \"c\": 1, \"c\": 2}}"),
              HasSubstr("the field \"c\" appears twice"));
  EXPECT_EQ(refusal("{\"a\": 1, \"b\": {\"a\": 2}}"), "accepted");
}

struct point {
  double x = 0;
  std::string name;
};

result<std::vector<point>> read_points(std::string_view text) {
  auto parsed = parse_json(text, "f.json");
  if (!parsed) return parsed.failure();
  json_fields f(*parsed, "f.json");
  std::vector<point> points;
  f.each("points", [&](json_fields& p) { points.push_back({p.number("x"), p.text("name")}); });
  if (auto s = f.finish(); !s) return s.failure();
  return points;
}

TEST(json_fields, name_file_path_and_reason) {
  EXPECT_TRUE(read_points(R"({"points": [{"x": 1, "name": "a"}]})"));
  const auto why = [](std::string_view text) { return read_points(text).failure().message; };
  EXPECT_EQ(why(R"({"points": [{"x": 1, "name": "a"}, {"x": "1", "name": "a"}]})"),
            "f.json: points[1].x: expected a number, found \"1\"");
  EXPECT_EQ(why(R"({"points": [{"x": 1}]})"), "f.json: points[0].name: this field is missing");
  EXPECT_EQ(why(R"({"points": [{"x": 1, "name": "a", "y": 0}]})"),
            "f.json: points[0].y: unknown field");
  EXPECT_EQ(why(R"({"points": {}})"), "f.json: points: expected an array, found {}");
  EXPECT_EQ(why(R"({"points": [], "extra": 1})"), "f.json: extra: unknown field");
  EXPECT_EQ(why("[]"), "f.json: expected an object, found []");
  EXPECT_EQ(read_points("{}").failure().code, exit_code::bad_data);
}

TEST(json_fields, refuse_numbers_of_another_kind) {
  const auto parsed = *parse_json(
      R"({"a": 18446744073709551615, "b": -9223372036854775808, "c": 18446744073709551616, "d": 1.0})",
      "f.json");
  json_fields f(parsed, "f.json");
  EXPECT_EQ(f.u64("a"), UINT64_MAX);
  EXPECT_EQ(f.i64("b"), INT64_MIN);
  EXPECT_FALSE(f.failed());
  const auto fails = [&](auto read) {
    json_fields g(parsed, "f.json");
    read(g);
    return g.failed();
  };
  EXPECT_TRUE(fails([](json_fields& g) { g.u64("b"); }));
  EXPECT_TRUE(fails([](json_fields& g) { g.u64("c"); }));
  EXPECT_TRUE(fails([](json_fields& g) { g.u64("d"); }));
  EXPECT_TRUE(fails([](json_fields& g) { g.i64("a"); }));
  EXPECT_TRUE(fails([](json_fields& g) { g.boolean("a"); }));
  EXPECT_TRUE(fails([](json_fields& g) { g.texts("a"); }));
}

TEST(json_writer, writes_a_line_that_reads_back_exactly) {
  const double tenth = 0.1, tiny = std::numeric_limits<double>::denorm_min();
  json_line line;
  line.u64("step", 3).number("loss", tenth).number("tiny", tiny).boolean("skipped", false);
  line.number("bad", std::nan("")).number("worse", -INFINITY).text("who", "a\"b\n\xff");
  line.begin_array("list").element("x").begin_element().i64("y", -1).end().end().null("none");
  const std::string text = line.finish();
  EXPECT_EQ(text,
            "{\"step\":3,\"loss\":0.10000000000000001,\"tiny\":4.9406564584124654e-324,"
            "\"skipped\":false,\"bad\":null,\"bad_text\":\"nan\",\"worse\":null,"
            "\"worse_text\":\"-inf\",\"who\":\"a\\\"b\\n\xEF\xBF\xBD\",\"list\":[\"x\",{\"y\":-1}],"
            "\"none\":null}\n");
  const auto parsed = *parse_json(text, "f.json");
  json_fields f(parsed, "f.json");
  EXPECT_EQ(f.number("loss"), tenth);
  EXPECT_EQ(f.number("tiny"), tiny);
  EXPECT_TRUE(std::isnan(f.number("bad")));
  EXPECT_EQ(f.number("worse"), -INFINITY);
  EXPECT_FALSE(f.failed());
}

TEST(json_writer, does_not_care_about_the_locale) {
  struct comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale(), new comma));
  const std::string text = json_line().number("x", 12345.5).u64("n", 1234567).finish();
  std::locale::global(before);
  EXPECT_EQ(text, "{\"x\":12345.5,\"n\":1234567}\n");
}

TEST(json_writer, indents_a_page) {
  json_page page;
  page.u64("a", 1).begin_object("b").texts("c", {"x", "y"}).end().begin_object("empty");
  EXPECT_EQ(page.finish(), R"({
  "a": 1,
  "b": {
    "c": [
      "x",
      "y"
    ]
  },
  "empty": {}
}
)");
}

}  // namespace
}  // namespace troupe
