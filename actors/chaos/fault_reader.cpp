#include "actors/chaos/fault_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "actors/chaos/link_rules.hpp"
#include "actors/chaos/worker_faults.hpp"

namespace troupe::actors::chaos {
namespace {

// 17, "20..40" or [17, "20..40"].
std::optional<step_range> read_range(const toml_node& node) {
  if (const auto* one = std::get_if<std::int64_t>(&node.value)) {
    if (*one < 1) return std::nullopt;
    return step_range{static_cast<std::uint64_t>(*one), static_cast<std::uint64_t>(*one)};
  }
  const std::string* text = node.as_text();
  const std::size_t dots = text != nullptr ? text->find("..") : std::string::npos;
  if (dots == std::string::npos) return std::nullopt;
  step_range r;
  const auto number = [&](std::size_t from, std::size_t to, std::uint64_t& into) {
    const auto [end, trouble] = std::from_chars(text->data() + from, text->data() + to, into);
    return trouble == std::errc{} && end == text->data() + to && into >= 1;
  };
  if (!number(0, dots, r.first) || !number(dots + 2, text->size(), r.last) || r.first > r.last) {
    return std::nullopt;
  }
  return r;
}

class fault_fields {
 public:
  fault_fields(const toml_node& table, const std::string& path, complaints& to)
      : to_(to), path_(path), from_(table, path, to) {}

  std::optional<fault> read() {
    f_.line = from_.line();
    f_.id = from_.text("id").value_or("");
    if (f_.id.empty()) from_.complain("id", "is missing: every fault has a name of its own");
    const bool known = kind();
    trigger_keys();
    f_.chance = from_.number("chance", 0, 1).value_or(1);
    if (const auto count = from_.whole("count", 1)) f_.count = *count;
    f_.each_attempt =
        from_.choice("again", {"once", "each-attempt"}).value_or("once") == "each-attempt";
    f_.must_happen = from_.boolean("must_happen").value_or(true);
    if (known) {
      target();
      lasts();
      params();
    } else {  // what it may have is not known
      for (const char* name : {"target", "lasts", "params"}) (void)from_.any(name);
    }
    from_.finish();
    if (!known || f_.id.empty()) return std::nullopt;
    return std::move(f_);
  }

 private:
  bool kind() {
    const auto name = from_.text("kind");
    if (!name) {
      if (!from_.has("kind")) from_.complain("kind", "is missing");
      return false;
    }
    const auto kind = kind_named(*name);
    if (!kind) {
      std::vector<std::string> names;
      for (const kind_row& row : kind_table()) names.emplace_back(row.name);
      from_.complain("kind",
                     fmt::format("there is no fault \"{}\"{}", *name, suggestion(*name, names)));
      return false;
    }
    f_.kind = *kind;
    return true;
  }

  void target() {
    const auto text = from_.text("target");
    const strikes what = row_of(f_.kind).what;
    if (!text) {
      if (!from_.has("target") && what != strikes::newcomer) {
        from_.complain("target", "is missing: whom does it strike?");
      }
      if (what == strikes::newcomer) f_.target.what = selector::kind::joiner;
      return;
    }
    result<selector> parsed = parse_selector(*text);
    if (!parsed) return from_.complain("target", parsed.failure().message);
    f_.target = *parsed;
    if (f_.target.names_links() && what != strikes::links) {
      from_.complain("target", fmt::format("{} strikes members, and \"{}\" names links",
                                           name_of(f_.kind), *text));
    }
    if (what == strikes::newcomer && f_.target.what != selector::kind::joiner) {
      from_.complain("target", "a join strikes nobody who is there: leave it out");
    }
  }

  void trigger_keys() {
    const std::vector<std::string> keys = {"at_step", "at_time", "after", "on", "every", "rate"};
    std::vector<std::string> there;
    for (const std::string& key : keys) {
      if (from_.has(key)) there.push_back(key);
    }
    if (there.size() != 1) {
      from_.complain(there.empty() ? "id" : there[1],
                     there.empty()
                         ? "no moment is given: at_step, at_time, after, on, every or rate"
                         : fmt::format("{} gives its moment already", there[0]));
    }
    if (from_.has("at_step")) f_.when = steps();
    if (const auto at = from_.time("at_time")) {
      f_.when = at_moment{*at};
      f_.count = 1;
    }
    if (const auto after = from_.text("after")) {
      f_.when = after_fault{*after, from_.time_or_steps("plus").value_or(duration{})};
      f_.count = 1;
    }
    if (const auto on = from_.text("on")) {
      f_.when = on_event{*on};
      f_.count = 1;
      std::vector<std::string> known = event_names();
      known.insert(known.end(), point_names().begin(), point_names().end());
      if (std::ranges::find(known, *on) == known.end()) {
        from_.complain("on",
                       fmt::format("there is no event \"{}\"{}", *on, suggestion(*on, known)));
      }
    }
    if (const auto every = from_.time_or_steps("every")) periodically(*every);
    if (const auto rate = from_.number("rate", 0, 1e9)) {
      if (*rate == 0) from_.complain("rate", "must be more than 0 an hour");
      f_.when = poisson{*rate};
    }
    only_with("at_point", "at_step");
    only_with("plus", "after");
    only_with("jitter", "every");
  }

  void only_with(const std::string& key, const std::string& needed) {
    if (from_.has(key) && !from_.has(needed)) {
      from_.complain(key, fmt::format("says something only beside {}", needed));
      (void)from_.any(key);
    }
  }

  trigger steps() {
    at_steps at;
    const toml_node* node = from_.any("at_step");
    bool good = true;
    const auto add = [&](const toml_node& one) {
      const auto range = read_range(one);
      good = good && range;
      if (range) at.steps.push_back(*range);
    };
    if (const auto* list = node->as_list()) {
      for (const toml_node& one : *list) add(one);
    } else {
      add(*node);
    }
    std::ranges::sort(at.steps, {}, &step_range::first);
    for (std::size_t i = 1; i < at.steps.size(); ++i) {
      good = good && at.steps[i - 1].last < at.steps[i].first;
    }
    if (!good || at.steps.empty()) {
      from_.complain("at_step", "takes a step from 1, a range \"20..40\", or a list of them");
    } else if (at.steps.size() == 1 && at.steps.front().first == at.steps.front().last) {
      f_.count = 1;
    }
    if (const auto text = from_.text("at_point")) {
      if (const auto point = parse_point(*text)) {
        at.point = *point;
      } else {
        from_.complain("at_point",
                       fmt::format("there is no point \"{}\"{}", *text,
                                   suggestion(text->substr(0, text->find(':')), point_names())));
      }
    }
    return at;
  }

  void periodically(const extent& every) {
    const auto jitter = from_.time_or_steps("jitter");
    const bool steps = std::holds_alternative<step_count>(every);
    periodic p{every, steps ? extent(step_count{}) : extent(duration{})};
    if (jitter && jitter->index() != every.index()) {
      from_.complain("jitter", "is a duration where every is one, else a number of steps");
    } else if (jitter) {
      p.jitter = *jitter;
    }
    if (every == extent(duration{}) || every == extent(step_count{}) || !(p.jitter < every)) {
      from_.complain("every", "must be more than 0 and more than jitter");
    }
    f_.when = p;
  }

  void lasts() {
    const toml_node* node = from_.any("lasts");
    if (node == nullptr) return;
    if (!row_of(f_.kind).lasts) {
      return from_.complain("lasts", fmt::format("{} is done at once", name_of(f_.kind)));
    }
    if (node->as_text() != nullptr && *node->as_text() == "quiet") return;
    const auto how_long = from_.time_or_steps("lasts");
    if (!how_long) return;
    if (const auto* d = std::get_if<duration>(&*how_long)) {
      f_.lasts = *d;
    } else {
      f_.lasts = std::get<step_count>(*how_long);
    }
  }

  void params() {
    const toml_node* table = from_.table("params");
    if (table == nullptr) return;
    scenario_fields given(*table, path_ + "params.", to_);
    for (const param_row& row : row_of(f_.kind).params) {
      const std::string name(row.name);
      switch (row.type) {
        case param_type::whole:
          if (const auto v = given.whole(name)) f_.params[name] = static_cast<std::int64_t>(*v);
          break;
        case param_type::number:
          if (const auto v = given.number(name, 0, 1e18)) f_.params[name] = *v;
          break;
        case param_type::text:
          if (const auto v = given.text(name)) f_.params[name] = *v;
          break;
        case param_type::boolean:
          if (const auto v = given.boolean(name)) f_.params[name] = *v;
          break;
        case param_type::duration:
          if (const auto v = given.time(name)) f_.params[name] = *v;
          break;
      }
    }
    const std::vector<std::string> signals = {"TERM", "INT", "USR1", "USR2", "HUP"};
    const auto signal = f_.params.find("signal");
    if (signal != f_.params.end() &&
        std::ranges::find(signals, std::get<std::string>(signal->second)) == signals.end()) {
      given.complain("signal", "takes TERM, INT, USR1, USR2 or HUP");
    }
    one_of(given, "actor", throwing_actors());
    one_of(given, "message", message_names());
    one_of(given, "plane", {"control", "bulk"});
    const auto fate = message_fault_of(f_.kind);
    if (fate && text_of("plane") == "bulk" &&
        !comm::is_possible(*fate, comm::message_plane::bulk)) {
      given.complain("plane", fmt::format("{} does not happen to bulk messages: their fabric is "
                                          "reliable, and each plan has lanes of its own",
                                          name_of(f_.kind)));
    }
    given.finish();
  }

  std::string text_of(const std::string& param) const {
    const auto found = f_.params.find(param);
    return found == f_.params.end() ? "" : std::get<std::string>(found->second);
  }
  void one_of(scenario_fields& given, const std::string& param,
              const std::vector<std::string>& names) const {
    const std::string name = text_of(param);
    if (name.empty() || std::ranges::find(names, name) != names.end()) return;
    given.complain(param,
                   fmt::format("there is no {} \"{}\"{}", param, name, suggestion(name, names)));
  }

  complaints& to_;
  std::string path_;
  scenario_fields from_;
  fault f_;
};

}  // namespace

std::optional<fault> read_fault(const toml_node& table, const std::string& path, complaints& to) {
  return fault_fields(table, path, to).read();
}

random_faults read_random(const toml_node& table, complaints& to) {
  scenario_fields from(table, "random.", to);
  random_faults r;
  r.from_step = from.whole("from_step", 1).value_or(1);
  r.to_step = from.whole("to_step", 1).value_or(0);
  if (r.to_step < r.from_step) from.complain("to_step", "must be given and not before from_step");
  r.per_hour = from.number("rate", 0, 1e9).value_or(0);
  if (r.per_hour == 0) from.complain("rate", "must be given: faults an hour, more than 0");
  r.min_gap = from.time("min_gap").value_or(duration{});
  r.max_open = from.whole("max_open", 1, 1000).value_or(1);
  r.swarm = from.boolean("swarm").value_or(false);
  const auto mix = from.choice("mix", {"even", "field"});
  if (const toml_node* kinds = from.table("kinds")) {
    scenario_fields weights(*kinds, "random.kinds.", to);
    for (const kind_row& row : kind_table()) {
      const auto weight = weights.number(std::string(row.name), 0, 1e9);
      if (weight && *weight > 0) r.kinds[row.kind] = *weight;
    }
    weights.finish();
    if (mix) from.complain("mix", "says the same as kinds: take one of them out");
    if (r.kinds.empty()) from.complain("kinds", "no kind has a weight above 0");
  }
  r.mix = mix.value_or("even");
  for (const std::string& role : from.texts("spare_roles").value_or(std::vector<std::string>())) {
    result<selector> s = parse_selector(role);
    if (s && !s->names_links()) {
      r.spare_roles.push_back(*s);
    } else {
      from.complain("spare_roles", fmt::format("\"{}\" names no member to spare", role));
    }
  }
  from.finish();
  return r;
}

}  // namespace troupe::actors::chaos
