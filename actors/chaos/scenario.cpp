#include "actors/chaos/scenario.hpp"

#include <fmt/format.h>

#include <array>

#include "actors/chaos/overloaded.hpp"
#include "config/base/hash.hpp"
#include "config/base/json.hpp"

namespace troupe::actors::chaos {
namespace {

std::string to_text(const std::vector<step_range>& steps) {
  std::string text;
  for (const step_range& r : steps) {
    text += text.empty() ? "" : ",";
    text += r.first == r.last ? fmt::format("{}", r.first) : fmt::format("{}..{}", r.first, r.last);
  }
  return text;
}

std::string to_text(const parameter& p) {
  return std::visit(overloaded{[](std::int64_t n) { return fmt::format("{}", n); },
                               [](double n) { return json_number(n); },
                               [](bool b) { return std::string(b ? "true" : "false"); },
                               [](const std::string& s) { return json_quoted(s); },
                               [](duration d) { return chaos::to_text(d); }},
                    p);
}

void put(json_writer& to, const trigger& when) {
  std::visit(
      overloaded{
          [&](const at_steps& t) {
            to.text("at_step", to_text(t.steps)).text("at_point", to_text(t.point));
          },
          [&](const at_moment& t) { to.text("at_time", to_text(t.since_first_commit)); },
          [&](const after_fault& t) { to.text("after", t.fault).text("plus", to_text(t.plus)); },
          [&](const on_event& t) { to.text("on", t.name); },
          [&](const periodic& t) {
            to.text("every", to_text(t.every)).text("jitter", to_text(t.jitter));
          },
          [&](const poisson& t) { to.number("rate", t.per_hour); }},
      when);
}

void put(json_writer& to, const fault& f) {
  to.begin_element().text("id", f.id).text("kind", name_of(f.kind));
  if (row_of(f.kind).what != strikes::newcomer) to.text("target", to_text(f.target));
  put(to, f.when);
  to.number("chance", f.chance);
  if (f.count) to.u64("count", *f.count);
  to.text("again", f.each_attempt ? "each-attempt" : "once");
  if (row_of(f.kind).lasts) to.text("lasts", to_text(f.lasts));
  to.begin_object("params");
  for (const auto& [name, value] : f.params) to.text(name, to_text(value));
  to.end().boolean("must_happen", f.must_happen).end();
}

void put(json_writer& to, const random_faults& r) {
  to.begin_object("random")
      .u64("from_step", r.from_step)
      .u64("to_step", r.to_step)
      .number("rate", r.per_hour)
      .text("min_gap", to_text(r.min_gap))
      .u64("max_open", r.max_open)
      .boolean("swarm", r.swarm)
      .text("mix", r.kinds.empty() ? r.mix : "")
      .begin_object("kinds");
  for (const auto& [kind, weight] : r.kinds) to.number(name_of(kind), weight);
  to.end();
  std::vector<std::string> spared;
  for (const selector& s : r.spare_roles) spared.push_back(to_text(s));
  to.texts("spare_roles", spared).end();
}

void put(json_writer& to, const quiet_phase& q) {
  to.begin_object("quiet");
  if (q.at_step) to.u64("at_step", *q.at_step);
  if (q.at_time) to.text("at_time", to_text(*q.at_time));
  std::vector<std::string> core;
  for (const member_id m : q.core) core.push_back(fmt::format("m{}", m.value));
  to.texts("core", core);
  if (q.settle) to.text("settle", to_text(*q.settle));
  to.u64("progress", q.progress).end();
}

}  // namespace

const std::vector<std::string>& invariant_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (int i = 1; i <= 20; ++i) all.push_back(fmt::format("S-{}", i));
    for (int i = 1; i <= 7; ++i) all.push_back(fmt::format("L-{}", i));
    return all;
  }();
  return names;
}

std::string to_text(duration d) {
  struct unit {
    std::int64_t nanoseconds;
    std::string_view name;
  };
  constexpr std::array units = {
      unit{3'600'000'000'000, "h"}, unit{60'000'000'000, "m"}, unit{1'000'000'000, "s"},
      unit{1'000'000, "ms"},        unit{1'000, "us"},         unit{1, "ns"}};
  if (d.count() == 0) return "0s";
  for (const unit& u : units) {
    if (d.count() % u.nanoseconds == 0)
      return fmt::format("{}{}", d.count() / u.nanoseconds, u.name);
  }
  return fmt::format("{}ns", d.count());
}

std::string to_text(const extent& e) {
  return std::visit(overloaded{[](duration d) { return to_text(d); },
                               [](step_count n) { return fmt::format("{} steps", n.value); }},
                    e);
}

std::string to_text(const lifetime& l) {
  return std::visit(overloaded{[](until_quiet) { return std::string("quiet"); },
                               [](duration d) { return to_text(d); },
                               [](step_count n) { return fmt::format("{} steps", n.value); }},
                    l);
}

std::string canonical_text(const scenario& s) {
  json_line line;
  line.u64("schema", 1).text("name", s.name).u64("seed", s.seed).u64("repeat", s.repeat);
  std::vector<std::string> modes;
  for (const run_mode m : s.modes) modes.emplace_back(name_of(m));
  line.texts("mode", modes).u64("members", s.members).u64("spares", s.spares);
  std::vector<std::string> domains;
  for (const auto& domain : s.domains) {
    std::string together;
    for (const member_id m : domain) {
      together += fmt::format("{}m{}", together.empty() ? "" : ",", m.value);
    }
    domains.push_back(together);
  }
  line.texts("domains", domains).texts("classes", s.classes).text("config", s.config);
  line.begin_object("set");
  for (const auto& [key, value] : s.sets) line.text(key, value);
  line.end().text("reference", s.reference).text("guard", to_text(s.guard));
  line.begin_array("fault");
  for (const fault& f : s.faults) put(line, f);
  line.end();
  if (s.random) put(line, *s.random);
  line.boolean("inside_promise", s.inside_promise);
  std::vector<std::string> blocks;
  for (const std::uint32_t block : s.may_lose) blocks.push_back(fmt::format("{}", block));
  line.texts("may_lose", blocks);
  if (s.quiet) put(line, *s.quiet);
  line.begin_object("invariants");
  for (const auto& [name, wanted] : s.invariants) line.boolean(name, wanted);
  line.end().text("bits", s.equal_bits ? "equal" : "none").text("ledger", s.ledger);
  line.begin_object("expect");
  for (const auto& [metric, range] : s.expect) {
    line.text(metric, fmt::format("{:.17g}..{:.17g}", range.least, range.most));
  }
  return line.finish();
}

std::string identity_of(const scenario& s) { return hash_text(canonical_text(s)).hex(); }

}  // namespace troupe::actors::chaos
