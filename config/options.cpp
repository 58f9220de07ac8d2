#include "config/options.hpp"

#include <algorithm>

namespace troupe::config {
namespace {

void set_default(const option& o, settings& s, std::size_t index) {
  if (o.standard.empty()) return;
  const auto v = fit(o, read_text(o, o.standard));
  ensure(bool(v), "the default of an option does not fit it: " + std::string(o.name));
  o.set(s, index, *v);
}

}  // namespace

const option* find_option(std::string_view name) {
  const auto all = options();
  const auto it = std::find_if(all.begin(), all.end(), [&](auto& o) { return o.name == name; });
  return it == all.end() ? nullptr : &*it;
}

const section* find_section(std::string_view name) {
  const auto all = sections();
  const auto it = std::find_if(all.begin(), all.end(), [&](auto& s) { return s.name == name; });
  return it == all.end() ? nullptr : &*it;
}

std::string environment_name(std::string_view option_name) {
  std::string name = "TROUPE_";
  for (const char c : option_name) {
    if (c == '[' || c == ']') continue;
    name += c == '.' ? '_' : (c >= 'a' && c <= 'z') ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

settings default_settings() {
  settings s{};
  for (const option& o : options()) {
    if (o.section() != "model.rope_scaling" && o.section() != "data.sources[]")
      set_default(o, s, 0);
  }
  return s;
}

void reset_sources(settings& s, std::size_t count) {
  s.data.sources.assign(count, settings::source{});
  for (const option& o : options()) {
    if (o.section() != "data.sources[]") continue;
    for (std::size_t i = 0; i < count; ++i) set_default(o, s, i);
  }
}

std::vector<setting> list_settings(const settings& s) {
  std::vector<setting> list;
  const auto add = [&](const option& o, std::size_t index, std::string key) {
    value v = o.get(s, index);
    if (!std::holds_alternative<std::monostate>(v)) {
      list.push_back({std::move(key), &o, index, std::move(v)});
    }
  };
  const auto all = options();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].kind == kind::table || all[i].kind == kind::tables) continue;
    if (all[i].section() != "data.sources[]") {
      add(all[i], 0, std::string(all[i].name));
      continue;
    }
    std::size_t end = i;
    while (end < all.size() && all[end].section() == "data.sources[]") ++end;
    for (std::size_t n = 0; n < s.data.sources.size(); ++n) {
      for (std::size_t j = i; j < end; ++j) {
        add(all[j], n, "data.sources[" + std::to_string(n) + "]." + std::string(all[j].key()));
      }
    }
    i = end - 1;
  }
  return list;
}

}  // namespace troupe::config
