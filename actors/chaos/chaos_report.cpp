#include "actors/chaos/chaos_report.hpp"

#include <fmt/format.h>

#include <array>

#include "actors/chaos/metrics.hpp"

namespace troupe::actors::chaos {
namespace {

double seconds(duration d) { return std::chrono::duration<double>(d).count(); }

void put_fault(json_writer& to, const run_facts& run, const injected_fault& f,
               const fault_times& t) {
  to.begin_element()
      .text("fault", f.what.which.fault)
      .u64("number", f.what.which.number)
      .text("kind", name_of(f.what.kind))
      .texts("members", f.names)
      .text("why", f.what.why)
      .u64("step", f.what.step)
      .boolean("proven", f.proven.has_value())
      .text("proof", f.proof);
  const auto moment = [&](const char* name, const std::optional<duration>& at) {
    if (at) {
      to.number(name, seconds(*at - run.started));
    } else {
      to.null(name);
    }
  };
  moment("t0", t.t0);
  moment("t1", t.t1);
  moment("t2", t.t2);
  moment("t3", t.t3);
  to.null("t4");  // no record tells it yet
  moment("t5", t.t5);
  moment("t6", t.t6);
  moment("t7", t.t7);
  moment("over", f.over);
  if (t.stall) {
    to.number("stall", seconds(*t.stall));
  } else {
    to.null("stall");
  }
  to.u64("plans", t.plans).end();
}

}  // namespace

void put(json_writer& to, const chaos_report& r) {
  to.u64("schema", 1)
      .text("scenario", r.what.name)
      .text("scenario_hash", identity_of(r.what))
      .text("about", r.what.about)
      .text("mode", name_of(r.mode))
      .u64("seed", r.seed)
      .text("version", r.version)
      .texts("classes", r.what.classes)
      .text("run_directory", r.run_directory)
      .text("reference_directory", r.reference_directory)
      .text("verdict", r.outcome.passed ? "pass" : "fail")
      .begin_array("checks");
  for (const check& c : r.outcome.checks) {
    to.begin_element()
        .text("name", c.name)
        .boolean("passed", c.passed)
        .text("words", c.words)
        .end();
  }
  to.end().texts("not_seen", r.outcome.unseen).begin_object("metrics");
  for (const auto& [name, value] : r.figures.metrics) {
    const metric_row* row = find_metric(name);
    if (row != nullptr && row->in == unit::boolean) {
      to.boolean(name, value != 0);
    } else if (row != nullptr && row->in == unit::count) {
      to.u64(name, static_cast<std::uint64_t>(value));
    } else {
      to.number(name, value);
    }
  }
  to.end().begin_array("faults");
  for (std::size_t i = 0; i < r.run.faults.size(); ++i) {
    put_fault(to, r.run, r.run.faults[i], r.figures.faults[i]);
  }
  to.end().begin_array("refused");
  for (const refusal& one : r.run.refused) {
    to.begin_element().text("fault", one.fault).text("why", one.why).u64("step", one.step).end();
  }
  to.end()
      .texts("suspected_falsely", r.figures.false_suspicions)
      .texts("left_behind", r.run.left_behind)
      .u64("steps", r.run.steps.size())
      .text("weights_hash", r.run.weights_hash)
      .text("state_hash", r.run.state_hash)
      .number("seconds", seconds(r.run.ended - r.run.started));
}

std::string to_text(const chaos_report& r) {
  std::string text;
  for (const injected_fault& f : r.run.faults) {
    std::string who;
    for (const std::string& name : f.names) who += (who.empty() ? "" : ", ") + name;
    text += fmt::format("  {:8.3f} s  step {:<5} {} {}{}: {}\n", seconds(f.at - r.run.started),
                        f.what.step, name_of(f.what.kind), who, f.proven ? "" : " did not happen",
                        f.proof);
  }
  if (!r.run.refused.empty()) text += fmt::format("  {} refused\n", r.run.refused.size());
  for (const check& c : r.outcome.checks) {
    text += fmt::format("  {}  {:<20} {}\n", c.passed ? "pass" : "FAIL", c.name, c.words);
  }
  constexpr std::array headline = {
      "steps_lost",           "steps_redone",         "unblock_p99", "stall_p50",       "stall_p99",
      "effective_time_ratio", "goodput_vs_available", "exposed_sum", "false_suspicions"};
  text += " ";
  for (const char* name : headline) {
    const auto found = r.figures.metrics.find(name);
    if (found == r.figures.metrics.end()) continue;
    text += fmt::format(" {} {}", name, in_words(find_metric(name)->in, found->second));
  }
  return text + fmt::format("\n{}: {} (seed {}, scenario {})\n", r.what.name,
                            r.outcome.passed ? "PASS" : "FAIL", r.seed,
                            identity_of(r.what).substr(0, 12));
}

}  // namespace troupe::actors::chaos
