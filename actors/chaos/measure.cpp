#include "actors/chaos/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace troupe::actors::chaos {
namespace {

using namespace std::chrono_literals;

// Records are seen a little after they were written, and their times are estimated from that.
constexpr duration slack = 20ms;
// A member that ran again may still be reported as lost for so long without being suspected
// falsely.
constexpr duration echo = 3s;
constexpr std::size_t full_speed_steps = 5;
constexpr double full_speed_share = 0.05;
constexpr duration least_window = 60s;
constexpr std::size_t window_steps = 100;

double seconds(duration d) { return std::chrono::duration<double>(d).count(); }

std::optional<double> number_in(const seen_event& e, const char* name) {
  const auto found = e.fields.find(name);
  if (found == e.fields.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::string text_in(const seen_event& e, const char* name) {
  const auto found = e.fields.find(name);
  return found != e.fields.end() && found->is_string() ? found->get<std::string>() : "";
}

duration milliseconds(double ms) { return duration(static_cast<std::int64_t>(ms * 1e6)); }

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

class measurer {
 public:
  measurer(const run_facts& run, const std::optional<reference_facts>& reference)
      : run_(run), reference_(reference) {}

  measured measure() {
    for (std::size_t i = 0; i < run_.faults.size(); ++i) m_.faults.push_back(times_of(i));
    distributions();
    count();
    rates();
    return std::move(m_);
  }

 private:
  bool struck(const injected_fault& f, const std::string& member) const {
    return std::ranges::find(f.names, member) != f.names.end();
  }

  // The events of one recovery carry the same number; without one the first that follows counts.
  const seen_event* follows(const char* name, const seen_event& lost) const {
    const auto recovery = lost.fields.find("recovery");
    for (const seen_event& e : run_.events) {
      if (e.name != name) continue;
      const auto same = e.fields.find("recovery");
      if (recovery != lost.fields.end() && same != e.fields.end()) {
        if (*same == *recovery) return &e;
      } else if (&e > &lost) {
        return &e;
      }
    }
    return nullptr;
  }

  fault_times times_of(std::size_t i) {
    const injected_fault& f = run_.faults[i];
    fault_times t;
    t.t0 = f.at;
    if (!f.proven) return t;
    const duration next = next_fault(i);
    t.plans = static_cast<std::uint64_t>(std::ranges::count_if(run_.events, [&](const auto& e) {
      return e.name == "generation" && e.at > f.at && e.at <= next;
    }));
    if (!row_of(f.what.kind).loses_member) return t;
    const auto lost = std::ranges::find_if(run_.events, [&](const seen_event& e) {
      return e.name == "member_lost" && e.at >= f.at - slack && !claimed_.contains(&e) &&
             struck(f, text_in(e, "member"));
    });
    if (lost == run_.events.end()) return t;
    // A domain is lost member by member, and all of it by this fault; each of them once.
    std::set<std::string> claimed;
    for (const seen_event& e : run_.events) {
      const std::string member = text_in(e, "member");
      if (e.name == "member_lost" && e.at >= lost->at && e.at <= lost->at + echo &&
          !claimed_.contains(&e) && struck(f, member) && claimed.insert(member).second) {
        claimed_.insert(&e);
      }
    }
    // The record may be written only by the next coordinator; what it tells is when it noticed.
    duration noticed = lost->at;
    const seen_event* plan = follows("generation", *lost);
    if (plan != nullptr) {
      t.t3 = plan->at;
      const auto mono = number_in(*plan, "mono"), then = number_in(*plan, "noticed_mono");
      if (mono && then) noticed = std::min(noticed, plan->at - milliseconds(1e3 * (*mono - *then)));
    }
    t.t1 = std::max(noticed, f.at);
    for (const char* name : {"generation", "recovered"}) {
      const seen_event* e = follows(name, *lost);
      const auto ms = e != nullptr ? number_in(*e, "unblock_ms") : std::nullopt;
      if (ms && *ms > 0) t.t2 = *t.t1 + milliseconds(*ms);  // 0: it is not known
    }
    if (const seen_event* e = follows("redundancy_restored", *lost)) t.t6 = e->at;
    // Without a plan that follows the run only ended: what it still committed is no recovery.
    if (t.t3) after_the_plan(t);
    return t;
  }

  duration next_fault(std::size_t i) const {
    for (std::size_t k = i + 1; k < run_.faults.size(); ++k) {
      if (run_.faults[k].proven) return run_.faults[k].at;
    }
    return run_.ended;
  }

  void after_the_plan(fault_times& t) {
    const auto first = std::ranges::find_if(
        run_.steps, [&](const seen_step& s) { return s.at >= *t.t3 - slack && s.at > t.t0; });
    if (first == run_.steps.end()) return;
    t.t5 = first->at;
    std::vector<const seen_step*> steps;
    for (auto s = first; s != run_.steps.end(); ++s) {
      if (s->record.generation == first->record.generation) steps.push_back(&*s);
    }
    // The first step of a plan carries its beginning.
    std::vector<double> times;
    for (const seen_step* s : steps) {
      if (s != steps.front() || steps.size() == 1) times.push_back(s->record.seconds);
    }
    const double usual = median(times);
    duration before = run_.started;
    for (const seen_step& s : run_.steps) {
      if (s.at <= t.t0) before = std::max(before, s.at);
    }
    t.stall = std::max(duration{}, *t.t5 - before - milliseconds(usual * 1e3));
    std::size_t in_a_row = 0;
    for (const seen_step* s : steps) {
      const bool full = std::abs(s->record.seconds - usual) <= full_speed_share * usual;
      in_a_row = full ? in_a_row + 1 : 0;
      if (in_a_row < full_speed_steps) continue;
      t.t7 = s->at;
      return;
    }
  }

  void spread(const std::string& name, const std::vector<double>& values) {
    if (values.empty()) return;
    m_.metrics[name + "_p50"] = quantile(values, 0.5);
    m_.metrics[name + "_p99"] = quantile(values, 0.99);
    m_.metrics[name + "_max"] = quantile(values, 1);
  }

  void distributions() {
    std::vector<double> detection, unblock, decision, stall, full_speed, exposed;
    for (const fault_times& t : m_.faults) {
      const auto since = [&](std::vector<double>& into, const auto& to, const auto& from) {
        if (to && from) into.push_back(seconds(*to - *from));
      };
      const std::optional<duration> t0 = t.t0;
      since(detection, t.t1, t0);
      since(unblock, t.t2, t0);
      since(decision, t.t3, t.t1);
      since(full_speed, t.t7, t0);
      since(exposed, t.t6, t0);
      if (t.stall) stall.push_back(seconds(*t.stall));
    }
    const auto mean = [](const std::vector<double>& v) {
      return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
    };
    spread("detection", detection);
    if (!detection.empty()) m_.metrics["detection_mean"] = mean(detection);
    spread("unblock", unblock);
    spread("decision", decision);
    spread("stall", stall);
    if (!stall.empty()) m_.metrics["mttr"] = mean(stall);
    spread("full_speed", full_speed);
    spread("exposed", exposed);
    if (!exposed.empty()) {
      m_.metrics["exposed_sum"] = std::accumulate(exposed.begin(), exposed.end(), 0.0);
    }
    m_.metrics["recoveries"] = static_cast<double>(stall.size());
  }

  bool struck_around(const std::string& member, duration at) const {
    return std::ranges::any_of(run_.faults, [&](const injected_fault& f) {
      return struck(f, member) && row_of(f.what.kind).loses_member && f.at <= at + slack &&
             at <= f.over.value_or(run_.ended) + echo;
    });
  }

  void count() {
    std::uint64_t lost_steps = 0, flaps = 0;
    bool rollback = false, first = true;
    for (const seen_event& e : run_.events) {
      if (e.name == "member_lost" && !claimed_.contains(&e) &&
          !struck_around(text_in(e, "member"), e.at)) {
        m_.false_suspicions.push_back(fmt::format("{} at {:.3f} s: {}", text_in(e, "member"),
                                                  seconds(e.at - run_.started),
                                                  text_in(e, "cause")));
      }
      if (e.name != "generation") continue;
      const auto from = number_in(e, "from_step");
      if (!first && from) {
        double committed = 0;
        for (const seen_step& s : run_.steps) committed += s.at + slack < e.at ? 1 : 0;
        committed = number_in(e, "recorded").value_or(committed);
        if (committed > *from) {
          rollback = true;
          lost_steps += static_cast<std::uint64_t>(committed - *from);
        }
      }
      first = false;
    }
    for (const fault_times& t : m_.faults) flaps = std::max(flaps, t.plans);
    const auto put = [&](const char* name, auto value) {
      m_.metrics[name] = static_cast<double>(value);
    };
    put("steps_lost", lost_steps);
    put("rollback", rollback ? 1 : 0);
    if (run_.steps_redone) put("steps_redone", *run_.steps_redone);
    put("plans", run_.plans);
    put("members", run_.members_at_end);
    put("exit", run_.exit);
    put("flaps_max", flaps);
    put("false_suspicions", m_.false_suspicions.size());
    put("silence", run_.left_behind.size());
  }

  void rates() {
    if (run_.steps.empty()) return;
    const duration last = run_.steps.back().at;
    const double wall = seconds(last - run_.started);
    if (wall <= 0) return;
    double tokens = 0, productive = 0;
    for (const seen_step& s : run_.steps) {
      tokens += static_cast<double>(s.record.tokens);
      productive += s.record.seconds;
    }
    m_.metrics["goodput"] = tokens / wall;
    m_.metrics["effective_time_ratio"] = std::min(1.0, productive / wall);
    m_.metrics["effective_time_ratio_min"] = worst_window(last);
    if (!reference_ || reference_->goodput <= 0) return;
    m_.metrics["goodput_vs_fault_free"] = tokens / wall / reference_->goodput;
    double available = 0;  // members times seconds
    for (std::size_t i = 0; i < run_.populations.size(); ++i) {
      const duration from = run_.populations[i].from;
      const duration to = i + 1 < run_.populations.size() ? run_.populations[i + 1].from : last;
      const double span = seconds(std::min(to, last) - from);
      available += std::max(0.0, span) * run_.populations[i].running;
    }
    if (available > 0) {
      m_.metrics["goodput_vs_available"] =
          tokens / (reference_->goodput * available / run_.members);
    }
  }

  // The least productive share of any window of 60 s or 100 steps, whichever is longer.
  double worst_window(duration last) const {
    double worst = m_.metrics.at("effective_time_ratio");
    for (std::size_t end = window_steps; end < run_.steps.size(); ++end) {
      std::size_t begin = end - window_steps;
      while (begin > 0 && run_.steps[end].at - run_.steps[begin].at < least_window) --begin;
      const duration span = run_.steps[end].at - run_.steps[begin].at;
      if (span < least_window || last <= run_.started) continue;
      double productive = 0;
      for (std::size_t s = begin + 1; s <= end; ++s) productive += run_.steps[s].record.seconds;
      worst = std::min(worst, productive / seconds(span));
    }
    return worst;
  }

  const run_facts& run_;
  const std::optional<reference_facts>& reference_;
  measured m_;
  std::set<const seen_event*> claimed_;
};

}  // namespace

measured measure(const run_facts& run, const std::optional<reference_facts>& reference) {
  return measurer(run, reference).measure();
}

double quantile(std::vector<double> values, double share) {
  ensure(!values.empty(), "a quantile of nothing was asked for");
  std::ranges::sort(values);
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace troupe::actors::chaos
