#include "actors/chaos/scenario_toml.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <array>

namespace troupe::actors::chaos {
namespace {

toml_node copy(const toml::node& from) {
  toml_node node;
  node.line = from.source().begin.line;
  if (const auto* table = from.as_table()) {
    toml_node::table all;
    for (const auto& [key, inner] : *table) {
      toml_node one = copy(inner);
      // The key's line also where its value is a table that began elsewhere.
      if (const std::size_t line = key.source().begin.line; line != 0) one.line = line;
      all.emplace(std::string(key.str()), std::move(one));
    }
    node.value = std::move(all);
  } else if (const auto* list = from.as_array()) {
    toml_node::list all;
    for (const toml::node& inner : *list) all.push_back(copy(inner));
    node.value = std::move(all);
  } else if (const auto* text = from.as_string()) {
    node.value = text->get();
  } else if (const auto* whole = from.as_integer()) {
    node.value = whole->get();
  } else if (const auto* number = from.as_floating_point()) {
    node.value = number->get();
  } else if (const auto* truth = from.as_boolean()) {
    node.value = truth->get();
  } else {
    node.value = toml_node::other{};
  }
  return node;
}

}  // namespace

std::string_view toml_node::sort() const {
  constexpr std::array<std::string_view, 7> names = {
      "a whole number", "a number", "true or false", "text", "a list", "a table", "a date"};
  return names[value.index()];
}

result<toml_node> read_toml_tree(std::string_view text, const std::string& file) {
  try {
    const toml::table root = toml::parse(text);
    return copy(root);
  } catch (const toml::parse_error& e) {
    return error{exit_code::bad_config, fmt::format("{}:{}: not valid TOML: {}", file,
                                                    e.source().begin.line, e.description())};
  }
}

}  // namespace troupe::actors::chaos
