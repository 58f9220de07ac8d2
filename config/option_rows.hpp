// What the rows of the option table are written with; private to option_table.cpp and
// world_options.cpp, which hold the rows of what is trained and of the world that trains it.
#pragma once

#include <algorithm>
#include <array>
#include <type_traits>

#include "config/options.hpp"

namespace troupe::config {

using names = std::span<const std::string_view>;

// In the order of the enumerators.
inline constexpr std::array<std::string_view, 2> family_names{"llama", "gpt2"};
inline constexpr std::array<std::string_view, 4> decay_names{"linear", "cosine", "sqrt",
                                                             "constant"};
inline constexpr std::array<std::string_view, 4> format_names{"auto", "llmc", "text", "jsonl"};

template <class T>
names names_of() {
  if constexpr (std::is_same_v<T, model_family>) return family_names;
  if constexpr (std::is_same_v<T, decay_type>) return decay_names;
  if constexpr (std::is_same_v<T, source_format>) return format_names;
}

template <class T>
value from_member(const T& member) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(names_of<T>()[static_cast<std::size_t>(member)]);
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    return static_cast<std::int64_t>(member);
  } else {
    return member;
  }
}
template <class T>
value from_member(const std::optional<T>& member) {
  return member ? from_member(*member) : value();
}

template <class T>
void to_member(const value& v, T& member) {
  if constexpr (std::is_enum_v<T>) {
    const auto all = names_of<T>();
    const auto it = std::find(all.begin(), all.end(), std::get<std::string>(v));
    member = static_cast<T>(it - all.begin());
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    member = static_cast<std::uint64_t>(std::get<std::int64_t>(v));
  } else {
    member = std::get<T>(v);
  }
}
template <class T>
void to_member(const value& v, std::optional<T>& member) {
  to_member(v, member.emplace());
}

struct access {
  value (*get)(const settings&, std::size_t);
  void (*set)(settings&, std::size_t, const value&);
};

#define MEMBER(path)                                                             \
  access {                                                                       \
    [](const settings& s, std::size_t) -> value { return from_member(s.path); }, \
        [](settings& s, std::size_t, const value& v) { to_member(v, s.path); }   \
  }
#define SOURCE(member)                                   \
  access {                                               \
    [](const settings& s, std::size_t i) -> value {      \
      return from_member(s.data.sources.at(i).member);   \
    },                                                   \
        [](settings& s, std::size_t i, const value& v) { \
          to_member(v, s.data.sources.at(i).member);     \
        }                                                \
  }
#define ROPE(member)                                                                     \
  access {                                                                               \
    [](const settings& s, std::size_t) -> value {                                        \
      return s.model.rope_scaling ? from_member(s.model.rope_scaling->member) : value(); \
    },                                                                                   \
        [](settings& s, std::size_t, const value& v) {                                   \
          if (!s.model.rope_scaling) s.model.rope_scaling.emplace();                     \
          to_member(v, s.model.rope_scaling->member);                                    \
        }                                                                                \
  }

inline option text(std::string_view name, std::string_view standard, bits b,
                   std::string_view sentence, access a) {
  return {name, kind::text, standard, {}, "", sentence, scope::run, b, a.get, a.set};
}
inline option choice(std::string_view name, std::string_view standard, names choices, names later,
                     bits b, std::string_view sentence, access a) {
  return {name, kind::choice, standard, {},      "",   sentence, scope::run,
          b,    a.get,        a.set,    choices, later};
}
inline option integer(std::string_view name, std::string_view standard, bounds limits,
                      std::string_view unit, bits b, std::string_view sentence, access a) {
  return {name, kind::integer, standard, limits, unit, sentence, scope::run, b, a.get, a.set};
}
inline option number(std::string_view name, std::string_view standard, bounds limits,
                     std::string_view unit, bits b, std::string_view sentence, access a) {
  return {name, kind::number, standard, limits, unit, sentence, scope::run, b, a.get, a.set};
}
inline option boolean(std::string_view name, std::string_view standard, bits b,
                      std::string_view sentence, access a) {
  return {name, kind::boolean, standard, {}, "", sentence, scope::run, b, a.get, a.set};
}
inline option required(option o) {
  o.required = true;
  return o;
}
inline option of_member(option o) {
  o.scope = scope::member;
  return o;
}

inline constexpr double int31 = 2147483647;
inline constexpr double int53 = 9007199254740991;
inline constexpr double largest = std::numeric_limits<double>::max();
inline constexpr bounds count{1, int31};
inline constexpr bounds count_or_0{0, int31};
inline constexpr bounds long_count{1, int53};
inline constexpr bounds above_0{0, largest, true};
inline constexpr bounds not_negative{0, largest};
inline constexpr bounds share{0, 1};
inline constexpr bounds below_1{0, 1, false, true};

// The rows of [elastic], [fault_tolerance], [comm] and [metrics].
std::vector<option> world_options();

}  // namespace troupe::config
