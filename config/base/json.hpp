// JSON as people's files need it: strict when read, exact when written.
//
// Reading: the text must be one valid JSON value without duplicate keys; an object is then taken
// apart by `json_fields`, where a missing field, a wrong type or a field that nobody asked for is
// an error with file and path ("manifest.json: files[3].size: ..."). So a misspelt or newer field
// is never silently ignored. The first error is kept and everything read after it is a default,
// which lets the reading code stay a plain list of fields with one check at its end.
//
// Writing: fields in the order they are added; doubles with 17 significant digits whatever the
// locale; a non-finite double is null with a sibling "<name>_text". The writer is our own because
// nlohmann-json prints shortest forms, in sorted order.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/error.hpp"

namespace troupe {

// `file` is only for the message. Errors are bad_data (65) with line and column.
result<nlohmann::json> parse_json(std::string_view text, const std::string& file);

class json_fields {
 public:
  // The value must outlive the reader.
  json_fields(const nlohmann::json& object, std::string file);

  bool has(std::string_view name) const;
  std::string text(std::string_view name);
  bool boolean(std::string_view name);
  std::uint64_t u64(std::string_view name);
  std::int64_t i64(std::string_view name);
  double number(std::string_view name);  // null with "<name>_text": nan, inf or -inf
  std::vector<std::string> texts(std::string_view name);
  nlohmann::json any(std::string_view name);
  // `read(fields)` for an object, or for each object of an array.
  template <class Read>
  void object(std::string_view name, Read read) {
    if (const nlohmann::json* v = take(name)) nested(*v, step(name), read);
  }
  template <class Read>
  void each(std::string_view name, Read read) {
    const nlohmann::json* v = take(name);
    if (v == nullptr) return;
    if (!v->is_array()) return wrong(name, "an array", *v);
    for (std::size_t i = 0; i < v->size(); ++i) {
      nested((*v)[i], step(name) + "[" + std::to_string(i) + "]", read);
    }
  }
  // For the caller's own checks.
  void fail(std::string_view name, std::string_view what);
  bool failed() const { return !state_->message.empty(); }
  // The first error, if any, here or in nested objects; fields that nobody asked for are errors.
  status finish();

 private:
  struct shared_state {
    std::string file, message;
  };
  json_fields(const nlohmann::json& object, std::string path, std::shared_ptr<shared_state> state);

  template <class Read>
  void nested(const nlohmann::json& value, std::string path, Read read) {
    json_fields inner(value, std::move(path), state_);
    read(inner);
    (void)inner.finish();
  }
  const nlohmann::json* take(std::string_view name);
  std::string step(std::string_view name) const;
  void wrong(std::string_view name, std::string_view wanted, const nlohmann::json& found);

  const nlohmann::json* object_;
  std::string path_;
  std::shared_ptr<shared_state> state_;
  std::set<std::string, std::less<>> asked_;
};

// "\"text\"" with escapes; bytes that are not UTF-8 become U+FFFD instead of an invalid file.
std::string json_quoted(std::string_view text);
// 17 significant digits, '.' in every locale. Requires a finite number.
std::string json_number(double value);

// Builds one JSON object. `json_line` stands on one line, `json_page` is indented for people.
class json_writer {
 public:
  enum class style : std::uint8_t { line, page };
  explicit json_writer(style s) : style_(s) { open('{'); }

  json_writer& text(std::string_view name, std::string_view value);
  json_writer& boolean(std::string_view name, bool value);
  json_writer& u64(std::string_view name, std::uint64_t value);
  json_writer& i64(std::string_view name, std::int64_t value);
  json_writer& number(std::string_view name, double value);
  json_writer& null(std::string_view name);
  json_writer& texts(std::string_view name, const std::vector<std::string>& values);
  json_writer& raw(std::string_view name, std::string_view json);  // must be valid JSON

  json_writer& begin_object(std::string_view name);
  json_writer& begin_array(std::string_view name);
  json_writer& begin_element();  // an object inside an array
  json_writer& element(std::string_view text);
  json_writer& end();

  // Ends everything that is open; a line ends with a newline.
  std::string finish();

 private:
  void open(char bracket);
  void separate();
  void key(std::string_view name);

  style style_;
  std::string out_;
  std::vector<char> open_;  // closing brackets, innermost last
  bool first_ = true;       // in the innermost one
};

struct json_line : json_writer {
  json_line() : json_writer(style::line) {}
};
struct json_page : json_writer {
  json_page() : json_writer(style::page) {}
};

}  // namespace troupe
