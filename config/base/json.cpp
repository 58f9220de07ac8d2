#include "config/base/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

namespace troupe {
namespace {

using nlohmann::json;

struct duplicate_key {
  std::string name;
};

error bad(std::string message) { return {exit_code::bad_data, std::move(message)}; }

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

}  // namespace

result<json> parse_json(std::string_view text, const std::string& file) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key) {
      const auto& name = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(name).second) throw duplicate_key{name};
    }
    return true;
  };
  try {
    return json::parse(text, watch);
  } catch (const duplicate_key& d) {
    return bad(
        fmt::format("{}: the field {} appears twice in one object", file, json_quoted(d.name)));
  } catch (const json::exception& e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ...": the number is noise.
    const std::string_view what = e.what();
    const auto at = what.find("] ");
    return bad(fmt::format("{}: not valid JSON: {}", file,
                           at == std::string_view::npos ? what : what.substr(at + 2)));
  }
}

json_fields::json_fields(const json& object, std::string file)
    : json_fields(object, "", std::make_shared<shared_state>(shared_state{std::move(file), {}})) {}

json_fields::json_fields(const json& object, std::string path, std::shared_ptr<shared_state> state)
    : object_(&object), path_(std::move(path)), state_(std::move(state)) {
  if (!object.is_object()) wrong("", "an object", object);
}

bool json_fields::has(std::string_view name) const {
  return object_->is_object() && object_->contains(name);
}

const json* json_fields::take(std::string_view name) {
  if (failed()) return nullptr;
  asked_.emplace(name);
  const auto at = object_->find(name);
  if (at != object_->end()) return &*at;
  fail(name, "this field is missing");
  return nullptr;
}

std::string json_fields::step(std::string_view name) const {
  if (path_.empty() || name.empty()) return path_ + std::string(name);
  return path_ + "." + std::string(name);
}

void json_fields::fail(std::string_view name, std::string_view what) {
  if (failed()) return;
  const std::string at = step(name);
  state_->message = at.empty() ? fmt::format("{}: {}", state_->file, what)
                               : fmt::format("{}: {}: {}", state_->file, at, what);
}

void json_fields::wrong(std::string_view name, std::string_view wanted, const json& found) {
  fail(name, fmt::format("expected {}, found {}", wanted, shown(found)));
}

std::string json_fields::text(std::string_view name) {
  const json* v = take(name);
  if (v == nullptr) return {};
  if (v->is_string()) return v->get<std::string>();
  wrong(name, "a text", *v);
  return {};
}

bool json_fields::boolean(std::string_view name) {
  const json* v = take(name);
  if (v == nullptr) return false;
  if (v->is_boolean()) return v->get<bool>();
  wrong(name, "true or false", *v);
  return false;
}

std::uint64_t json_fields::u64(std::string_view name) {
  const json* v = take(name);
  if (v == nullptr) return 0;
  if (v->is_number_unsigned()) return v->get<std::uint64_t>();
  wrong(name, "a whole number from 0 to 2^64 - 1", *v);
  return 0;
}

std::int64_t json_fields::i64(std::string_view name) {
  const json* v = take(name);
  if (v == nullptr) return 0;
  if (v->is_number_unsigned() && v->get<std::uint64_t>() <= INT64_MAX) {
    return v->get<std::int64_t>();
  }
  if (v->is_number_integer() && !v->is_number_unsigned()) return v->get<std::int64_t>();
  wrong(name, "a whole number of 64 bits", *v);
  return 0;
}

double json_fields::number(std::string_view name) {
  const json* v = take(name);
  if (v == nullptr) return 0;
  if (v->is_number()) return v->get<double>();
  const std::string sibling = std::string(name) + "_text";
  if (v->is_null() && has(sibling)) {
    const std::string t = text(sibling);
    if (t == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (t == "inf") return std::numeric_limits<double>::infinity();
    if (t == "-inf") return -std::numeric_limits<double>::infinity();
    fail(sibling, "expected \"nan\", \"inf\" or \"-inf\"");
    return 0;
  }
  wrong(name, "a number", *v);
  return 0;
}

std::vector<std::string> json_fields::texts(std::string_view name) {
  const json* v = take(name);
  if (v == nullptr) return {};
  std::vector<std::string> values;
  if (v->is_array()) {
    for (const json& e : *v) {
      if (!e.is_string()) break;
      values.push_back(e.get<std::string>());
    }
    if (values.size() == v->size()) return values;
  }
  wrong(name, "an array of texts", *v);
  return {};
}

json json_fields::any(std::string_view name) {
  const json* v = take(name);
  return v == nullptr ? json() : *v;
}

status json_fields::finish() {
  if (!failed()) {
    for (const auto& [name, value] : object_->items()) {
      if (!asked_.contains(name)) fail(name, "unknown field");
    }
  }
  if (failed()) return bad(state_->message);
  return done{};
}

std::string json_quoted(std::string_view text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string json_number(double value) {
  ensure(std::isfinite(value), "a non-finite number was to be written as a JSON number");
  return fmt::format("{:.17g}", value);
}

void json_writer::open(char bracket) {
  out_ += bracket;
  open_.push_back(bracket == '{' ? '}' : ']');
  first_ = true;
}

void json_writer::separate() {
  ensure(!open_.empty(), "a JSON writer was used after its end");
  if (!first_) out_ += ',';
  first_ = false;
  if (style_ == style::page) {
    out_ += '\n';
    out_.append(2 * open_.size(), ' ');
  }
}

void json_writer::key(std::string_view name) {
  separate();
  ensure(open_.back() == '}', "a named JSON value was to be written into an array");
  out_ += json_quoted(name);
  out_ += style_ == style::page ? ": " : ":";
}

json_writer& json_writer::raw(std::string_view name, std::string_view value) {
  key(name);
  out_ += value;
  return *this;
}

json_writer& json_writer::text(std::string_view name, std::string_view value) {
  return raw(name, json_quoted(value));
}
json_writer& json_writer::boolean(std::string_view name, bool value) {
  return raw(name, value ? "true" : "false");
}
json_writer& json_writer::u64(std::string_view name, std::uint64_t value) {
  return raw(name, fmt::format("{}", value));
}
json_writer& json_writer::i64(std::string_view name, std::int64_t value) {
  return raw(name, fmt::format("{}", value));
}
json_writer& json_writer::null(std::string_view name) { return raw(name, "null"); }

json_writer& json_writer::number(std::string_view name, double value) {
  if (std::isfinite(value)) return raw(name, json_number(value));
  null(name);
  return text(std::string(name) + "_text", std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

json_writer& json_writer::texts(std::string_view name, const std::vector<std::string>& values) {
  begin_array(name);
  for (const std::string& v : values) element(v);
  return end();
}

json_writer& json_writer::begin_object(std::string_view name) {
  key(name);
  open('{');
  return *this;
}
json_writer& json_writer::begin_array(std::string_view name) {
  key(name);
  open('[');
  return *this;
}
json_writer& json_writer::begin_element() {
  separate();
  open('{');
  return *this;
}
json_writer& json_writer::element(std::string_view text) {
  separate();
  out_ += json_quoted(text);
  return *this;
}

json_writer& json_writer::end() {
  ensure(!open_.empty(), "a JSON writer was ended once too often");
  const char bracket = open_.back();
  open_.pop_back();
  if (style_ == style::page && !first_) {
    out_ += '\n';
    out_.append(2 * open_.size(), ' ');
  }
  out_ += bracket;
  first_ = false;
  return *this;
}

std::string json_writer::finish() {
  while (!open_.empty()) end();
  return std::move(out_) + "\n";
}

}  // namespace troupe
