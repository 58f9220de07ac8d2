#include "config/value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "config/base/nearest.hpp"
#include "config/options.hpp"

namespace troupe::config {
namespace {

template <class T>
std::optional<T> parse(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  T number{};
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (trouble != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_quoted(std::string_view text) {
  return text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
         text.back() == text.front();
}

value guess(std::string_view text) {
  if (const auto whole = parse<std::int64_t>(text)) return *whole;
  if (const auto number = parse<double>(text)) return *number;
  if (text == "true" || text == "false") return text == "true";
  if (is_quoted(text)) return std::string(text.substr(1, text.size() - 2));
  return std::string(text);
}

error complaint(std::string message) { return {exit_code::bad_config, std::move(message)}; }

std::string list(std::span<const std::string_view> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += print_quoted(names[i]);
  }
  return text;
}

// What is wrong with a number, naming only the bound that it breaks.
std::optional<std::string> trouble_with(const bounds& b, double d, std::string_view spelling) {
  if (!std::isfinite(d)) return fmt::format("{} is not a finite number", spelling);
  const bool low = b.above_least ? d > b.least : d >= b.least;
  const bool high = b.below_most ? d < b.most : d <= b.most;
  if (low && high) return std::nullopt;
  const bounds broken = low ? bounds{.most = b.most, .below_most = b.below_most}
                            : bounds{.least = b.least, .above_least = b.above_least};
  return fmt::format("{} is out of bounds, it must be {}", spelling, describe_bounds(broken));
}

result<value> fit_integer(const option& o, const written& w) {
  if (const auto* whole = std::get_if<std::int64_t>(&w.value)) {
    const auto trouble = trouble_with(o.bounds, static_cast<double>(*whole), w.spelling);
    if (trouble) return complaint(*trouble);
    return value(*whole);
  }
  if (const auto* number = std::get_if<double>(&w.value)) {
    const bool whole = std::abs(*number) < 1e15 && *number == std::floor(*number);
    return complaint(fmt::format(
        "{} is a float, but this key takes a whole number without point or exponent{}", w.spelling,
        whole ? fmt::format("; write {}", static_cast<std::int64_t>(*number)) : ""));
  }
  const auto* text = std::get_if<std::string>(&w.value);
  if (text && parse<double>(*text)) {
    return complaint(fmt::format(
        "{} is text in quotes, but this key takes a whole number; write it without quotes",
        w.spelling));
  }
  return complaint(fmt::format("{} is not a whole number", w.spelling));
}

result<value> fit_number(const option& o, const written& w) {
  std::optional<double> number;
  if (const auto* d = std::get_if<double>(&w.value)) number = *d;
  if (const auto* i = std::get_if<std::int64_t>(&w.value)) number = static_cast<double>(*i);
  if (number) {
    if (const auto trouble = trouble_with(o.bounds, *number, w.spelling)) {
      return complaint(*trouble);
    }
    return value(*number + 0.0);  // -0 is 0
  }
  const auto* text = std::get_if<std::string>(&w.value);
  if (text && parse<double>(*text)) {
    return complaint(
        fmt::format("{} is text in quotes, but this key takes a number; write {} without quotes",
                    w.spelling, *text));
  }
  return complaint(fmt::format("{} is not a number", w.spelling));
}

result<value> fit_boolean(const written& w) {
  if (const auto* b = std::get_if<bool>(&w.value)) return value(*b);
  return complaint(
      fmt::format("{} is not true or false; write one of the two, without quotes", w.spelling));
}

result<value> fit_text(const option& o, const written& w) {
  const auto* text = std::get_if<std::string>(&w.value);
  if (!text) {
    return complaint(
        fmt::format("{} is not text; put it in quotes: \"{}\"", w.spelling, w.spelling));
  }
  if (o.required && text->empty()) return complaint("must not be empty");
  if (o.kind == kind::text) return value(*text);
  if (std::find(o.choices.begin(), o.choices.end(), *text) != o.choices.end()) return value(*text);
  if (std::find(o.later.begin(), o.later.end(), *text) != o.later.end()) {
    return complaint(fmt::format("{} is not in this version; it takes {}", print_quoted(*text),
                                 list(o.choices)));
  }
  const std::vector<std::string> names(o.choices.begin(), o.choices.end());
  const auto near = nearest(*text, names);
  return complaint(fmt::format("{} is none of its values, it takes {}{}", print_quoted(*text),
                               list(o.choices),
                               near ? fmt::format("; did you mean \"{}\"?", *near) : ""));
}

}  // namespace

written read_text(const option& o, std::string_view text) {
  if (o.kind == kind::text || o.kind == kind::choice) {
    if (is_quoted(text)) return {std::string(text.substr(1, text.size() - 2)), std::string(text)};
    return {std::string(text), print_quoted(text)};
  }
  const std::string_view trimmed = trim(text);
  return {guess(trimmed), trimmed.empty() ? "nothing" : std::string(trimmed)};
}

result<value> fit(const option& o, const written& w) {
  switch (o.kind) {
    case kind::integer:
      return fit_integer(o, w);
    case kind::number:
      return fit_number(o, w);
    case kind::boolean:
      return fit_boolean(w);
    case kind::text:
    case kind::choice:
      return fit_text(o, w);
    case kind::table:
    case kind::tables:
      break;
  }
  return complaint(fmt::format("{} is not a table", w.spelling));
}

std::string describe_bounds(const bounds& b) {
  const auto number = [](double d) { return fmt::format("{}", d); };
  const std::string least = (b.above_least ? "above " : "at least ") + number(b.least);
  const std::string most = (b.below_most ? "below " : "at most ") + number(b.most);
  if (std::isinf(b.most)) return std::isinf(b.least) ? "" : least;
  return std::isinf(b.least) ? most : least + " and " + most;
}

std::string print_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (code < 0x20 || code == 0x7F) {
      quoted += fmt::format("\\u{:04X}", code);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string print_value(const value& v) {
  if (const auto* b = std::get_if<bool>(&v)) return *b ? "true" : "false";
  if (const auto* i = std::get_if<std::int64_t>(&v)) return fmt::format("{}", *i);
  if (const auto* s = std::get_if<std::string>(&v)) return print_quoted(*s);
  const auto* d = std::get_if<double>(&v);
  if (!d) return "";
  std::string text = fmt::format("{}", *d);
  // People write 1e-8, the shortest printed form is 1e-08; a float without a point or exponent
  // would read as a whole number elsewhere.
  const std::size_t e = text.find('e');
  if (e == std::string::npos) return text.find('.') == std::string::npos ? text + ".0" : text;
  const std::size_t digits = text.find_first_not_of("+-0", e + 1);
  return text.substr(0, e + 1) + (text[e + 1] == '-' ? "-" : "") + text.substr(digits);
}

}  // namespace troupe::config
