#include "actors/chaos/judge.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/chaos/metrics.hpp"
#include "actors/chaos/scenario_check.hpp"

namespace troupe::actors::chaos {
namespace {

class judgement {
 public:
  judgement(const scenario& s, run_mode mode, const run_facts& run, const measured& figures,
            const std::optional<reference_facts>& reference)
      : s_(s), mode_(mode), run_(run), figures_(figures), reference_(reference) {}

  verdict give() {
    ends();
    faults();
    for (const auto& [name, range] : s_.expect) {
      if (name != "exit") expectation(name, range);
    }
    bits();
    ledger();
    invariants();
    v_.passed = std::ranges::all_of(v_.checks, &check::passed);
    return std::move(v_);
  }

 private:
  void add(std::string name, bool passed, std::string words) {
    v_.checks.push_back({std::move(name), passed, std::move(words)});
  }

  void ends() {
    add("guard", !run_.guard_struck,
        run_.guard_struck
            ? fmt::format("the run was ended: it took longer than {}", to_text(s_.guard))
            : fmt::format("ended within {}", to_text(s_.guard)));
    const auto wanted = s_.expect.find("exit");
    const limit range = wanted == s_.expect.end() ? limit{0, 0} : wanted->second;
    add("exit", range.least <= run_.exit && run_.exit <= range.most,
        fmt::format("exit code {}, expected {}", run_.exit, in_words(range, unit::count)));
    if (!run_.records_trouble.empty()) add("records", false, run_.records_trouble);
  }

  void faults() {
    for (const fault& f : s_.faults) {
      const std::string name = "fault " + f.id;
      std::uint64_t proven = 0;
      std::string why;
      for (const injected_fault& i : run_.faults) {
        if (i.what.which.fault != f.id) continue;
        proven += i.proven ? 1 : 0;
        if (!i.proven) why = i.proof;
      }
      for (const refusal& r : run_.refused) {
        if (r.fault == f.id) why = "refused in step " + fmt::format("{}: {}", r.step, r.why);
      }
      if (proven > 0) {
        add(name, true, fmt::format("happened {} time{}", proven, proven == 1 ? "" : "s"));
      } else if (f.must_happen) {
        add(name, false, "did not happen" + (why.empty() ? ": its moment never came" : ": " + why));
      }
    }
  }

  static std::string in_words(const limit& range, unit in) {
    if (range.least == range.most) return chaos::in_words(in, range.least);
    if (in == unit::seconds && range.least == 0) {
      return "at most " + chaos::in_words(in, range.most);
    }
    return chaos::in_words(in, range.least) + " to " + chaos::in_words(in, range.most);
  }

  void expectation(const std::string& name, const limit& range) {
    const metric_row* row = find_metric(name);
    ensure(row != nullptr, "a limit on a metric that does not exist");
    const auto found = figures_.metrics.find(name);
    if (found == figures_.metrics.end()) {
      return add(name, false,
                 fmt::format("expected {}, but nothing was measured", in_words(range, row->in)));
    }
    add(name, range.least <= found->second && found->second <= range.most,
        fmt::format("{}, expected {}", chaos::in_words(row->in, found->second),
                    in_words(range, row->in)));
  }

  bool wants(const std::string& invariant) const {
    const auto found = s_.invariants.find(invariant);
    return found == s_.invariants.end() || found->second;
  }

  bool ended_well() const { return run_.exit == 0 && !run_.guard_struck; }

  void bits() {
    if (!s_.equal_bits || !wants("S-20") || s_.reference == "none") return;
    if (s_.reference != "auto") {
      return add(
          "bits", run_.weights_hash == s_.reference,
          fmt::format("weights_hash {}, expected {}", shown(run_.weights_hash), s_.reference));
    }
    if (!reference_) return add("bits", false, "there is no undisturbed run to compare with");
    const std::size_t both = std::min(run_.steps.size(), reference_->steps.size());
    for (std::size_t i = 0; i < both; ++i) {
      const step_record& ours = run_.steps[i].record;
      const step_record& theirs = reference_->steps[i];
      if (ours.same_bits(theirs)) continue;
      return add("bits", false,
                 fmt::format("step {} is the first that differs: loss {:.17g}, undisturbed {:.17g}",
                             ours.step, ours.loss, theirs.loss));
    }
    if (!ended_well()) {
      return add("bits", both > 0,
                 fmt::format("the {} committed steps are the same bits; the run did not end at its "
                             "last step",
                             both));
    }
    const bool equal = run_.steps.size() == reference_->steps.size() &&
                       run_.weights_hash == reference_->weights_hash &&
                       run_.state_hash == reference_->state_hash && !run_.weights_hash.empty();
    add("bits", equal,
        equal ? fmt::format("{} steps and weights_hash {} as undisturbed", both, run_.weights_hash)
              : fmt::format("{} steps, weights_hash {}, state_hash {}; undisturbed {}, {}, {}",
                            run_.steps.size(), shown(run_.weights_hash), shown(run_.state_hash),
                            reference_->steps.size(), reference_->weights_hash,
                            reference_->state_hash));
  }

  static std::string shown(const std::string& hash) { return hash.empty() ? "(none)" : hash; }

  void ledger() {
    if (s_.ledger == "none" || !wants("S-15")) return;
    for (std::size_t i = 0; i < run_.steps.size(); ++i) {
      if (run_.steps[i].record.step != i + 1) {
        return add("ledger", false, fmt::format("step {} is missing or stands twice", i + 1));
      }
      if (s_.ledger != "equal" || !reference_ || i >= reference_->steps.size()) continue;
      if (run_.steps[i].record.tokens == reference_->steps[i].tokens) continue;
      return add("ledger", false,
                 fmt::format("step {} counts {} tokens, undisturbed {}", i + 1,
                             run_.steps[i].record.tokens, reference_->steps[i].tokens));
    }
    add("ledger", true, fmt::format("each of {} steps stands once", run_.steps.size()));
  }

  void progress() {
    if (!s_.quiet || s_.quiet->progress == 0) return;
    if (!run_.quiet_at) return add("progress", false, "the quiet phase was never reached");
    const std::uint64_t since =
        run_.steps.size() - std::min<std::uint64_t>(run_.steps.size(), run_.steps_before_quiet);
    add("progress", since >= s_.quiet->progress,
        fmt::format("{} steps were committed after quiet began, expected {}", since,
                    s_.quiet->progress));
  }

  void settled() {
    if (!s_.quiet || !s_.quiet->settle || !run_.quiet_at) return;
    const duration until = *run_.quiet_at + *s_.quiet->settle;
    const auto late = std::ranges::count_if(
        run_.events, [&](const seen_event& e) { return e.name == "generation" && e.at > until; });
    add("settled", late == 0,
        late == 0 ? fmt::format("no plan changed later than {} after quiet began",
                                to_text(*s_.quiet->settle))
                  : fmt::format("{} plans came later than {} after quiet began", late,
                                to_text(*s_.quiet->settle)));
  }

  void invariants() {
    if (wants("S-3")) {
      add("S-3", run_.chain_trouble.empty(),
          run_.chain_trouble.empty() ? fmt::format("one chain of {} plans", run_.plans)
                                     : run_.chain_trouble);
    }
    const auto lost = figures_.metrics.find("steps_lost");
    const bool may_go_back = s_.expect.contains("steps_lost") || s_.expect.contains("rollback");
    if (wants("S-6") && !may_go_back && lost != figures_.metrics.end()) {
      add("S-6", lost->second == 0, fmt::format("{:.0f} committed steps were lost", lost->second));
    }
    if (wants("L-2")) {
      progress();
      settled();
    }
    if (wants("L-7") && !s_.expect.contains("silence")) {
      std::string all;
      for (const std::string& one : run_.left_behind) all += (all.empty() ? "" : ", ") + one;
      add("L-7", all.empty(), all.empty() ? "nothing is left behind" : "left behind: " + all);
    }
    if (mode_ == run_mode::sim) {
      const bool fine = run_.violated.empty() || !wants(run_.violated);
      add(fine ? "invariants" : run_.violated, fine,
          fine ? fmt::format("{} checks found nothing wrong", run_.invariant_checks)
               : run_.violation);
    }
    for (const std::string& name : invariant_names()) {
      if (wants(name) && !is_seen(mode_, name)) v_.unseen.push_back(name);
    }
  }

  const scenario& s_;
  run_mode mode_;
  const run_facts& run_;
  const measured& figures_;
  const std::optional<reference_facts>& reference_;
  verdict v_;
};

}  // namespace

verdict judge(const scenario& s, run_mode mode, const run_facts& run, const measured& figures,
              const std::optional<reference_facts>& reference) {
  return judgement(s, mode, run, figures, reference).give();
}

}  // namespace troupe::actors::chaos
