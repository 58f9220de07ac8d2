#include "config/fingerprint.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/options.hpp"

namespace troupe::config {
namespace {

std::string value_in(const fingerprint& f, const std::string& key) {
  const auto it = std::find_if(f.begin(), f.end(), [&](auto& one) { return one.key == key; });
  return it == f.end() ? "unset" : it->value;
}

}  // namespace

fingerprint fingerprint_of(const settings& derived) {
  const bool constant = derived.lr_scheduler.decay_type == decay_type::constant;
  fingerprint f;
  for (const setting& one : list_settings(derived)) {
    if (one.option->bits != bits::yes) continue;
    const bool of_curve = one.key == "lr_scheduler.total_steps" ||
                          one.key == "lr_scheduler.decay_ratio" ||
                          one.key == "lr_scheduler.min_lr_factor";
    if (constant && of_curve) continue;
    f.push_back({one.key, print_value(one.value)});
  }
  return f;
}

hash128 hash_of(const fingerprint& f) {
  std::string text;
  for (const printed_setting& one : f) text += one.key + " = " + one.value + "\n";
  return hash_text(text);
}

std::vector<difference> differences(const fingerprint& before, const fingerprint& now) {
  std::vector<difference> list;
  const auto compare = [&](const std::string& key) {
    difference d{key, value_in(before, key), value_in(now, key), ""};
    if (d.before == d.now) return;
    if (key == "lr_scheduler.total_steps") {
      d.hint =
          fmt::format("set {} = {} to keep the curve of the rate in a longer run", key, d.before);
    }
    list.push_back(std::move(d));
  };
  for (const printed_setting& one : before) compare(one.key);
  for (const printed_setting& one : now) {
    if (value_in(before, one.key) == "unset") compare(one.key);
  }
  return list;
}

std::string describe(const std::vector<difference>& list) {
  std::string text;
  for (const difference& d : list) {
    text += fmt::format("{}{}: {} before, {} now{}{}", text.empty() ? "" : "\n", d.key, d.before,
                        d.now, d.hint.empty() ? "" : "; ", d.hint);
  }
  return text;
}

}  // namespace troupe::config
