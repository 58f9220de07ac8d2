#include "actors/chaos/worker_faults.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "actors/chaos/link_rules.hpp"

namespace troupe::actors::chaos {
namespace {

std::int64_t whole_param(const worker_order& o, const std::string& name, std::int64_t usual) {
  const auto found = o.params.find(name);
  return found == o.params.end() ? usual : std::get<std::int64_t>(found->second);
}

std::string text_param(const worker_order& o, const std::string& name) {
  const auto found = o.params.find(name);
  return found == o.params.end() ? "" : std::get<std::string>(found->second);
}

}  // namespace

std::string_view actor_at(std::string_view point) {
  struct known {
    std::string_view point, actor;
  };
  // What has been sent is told by whoever stands for its receiver, and not by who wanted it sent.
  constexpr std::array all = {known{"step-begin", "rank"},
                              known{"microbatch-done", "stage"},
                              known{"partial-sent", "stage"},
                              known{"reduced", "shard"},
                              known{"grad-forwarded", "shard"},
                              known{"grad-held", "shard"},
                              known{"votes-complete", "coordinator"},
                              known{"decided", "coordinator"},
                              known{"commit-seen", "rank"},
                              known{"applied", "shard"},
                              known{"params-sent", "shard"},
                              known{"params-complete", "rank"},
                              known{"stable", "coordinator"},
                              known{"suspected", "worker"},
                              known{"promised", "worker"},
                              known{"collected", "worker"},
                              known{"plan-written", "worker"},
                              known{"published", "worker"},
                              known{"adopted", "worker"},
                              known{"resumed", "rank"},
                              known{"copy-begin", "shard"},
                              known{"copy-half", "shard"},
                              known{"copy-verified", "shard"},
                              known{"redundancy-restored", "coordinator"},
                              known{"notice-received", "worker"},
                              known{"drained", "worker"},
                              known{"join-hello", "worker"},
                              known{"join-admitted", "worker"}};
  const auto found = std::ranges::find(all, point, &known::point);
  return found == all.end() ? "" : found->actor;
}

const std::vector<std::string>& throwing_actors() {
  static const std::vector<std::string> names = {"stage", "rank", "shard", "coordinator", "worker"};
  return names;
}

void worker_faults::reached(std::string_view point, std::uint64_t step, std::uint32_t k) {
  if (inbox_.rings()) take_orders();
  step_ = std::max(step_, step);
  const place here{point, step};
  if (book_.waits()) {
    for (const worker_order& o : book_.reached(point, step, k)) carry_out(o, here);
  }
  if (!throws_.empty()) throw_if_wished(here);
}

void worker_faults::turn() {
  if (inbox_.rings()) take_orders();
  if (lasting_.empty()) return;
  tell_what_others_saw();
  tell_what_links_did();
  const time_since_start now = clock_->now();
  std::vector<std::uint64_t> over;
  for (const auto& [id, until] : lasting_) {
    if (until && *until <= now) over.push_back(id);
  }
  for (const std::uint64_t id : over) end(id, "its time is over");
}

std::unique_ptr<computation> worker_faults::around(std::unique_ptr<computation> work,
                                                   compute::executor& device) {
  auto faulty = std::make_unique<faulty_computation>(std::move(work));
  work_ = faulty.get();
  device_ = &device;
  return faulty;
}

void worker_faults::take_orders() {
  for (worker_order& o : inbox_.take()) {
    const auto now = book_.add(std::move(o));
    if (!now) continue;
    if (now->ends) {
      end(now->id, "told so");
    } else {
      carry_out(*now, {"", step_});
    }
  }
}

proof worker_faults::proof_of(const worker_order& o, const place& at, std::string words) const {
  return {o.id,          proof::kind::struck, at.step, std::string(at.point),
          clock_->now(), std::move(words)};
}

void worker_faults::carry_out(const worker_order& o, const place& at) {
  const auto prove = [&](std::string words) { inbox_.prove(proof_of(o, at, std::move(words))); };
  switch (o.kind) {
    case fault_kind::kill:
      prove("kills itself");
      raise(SIGKILL);
      return;
    case fault_kind::exit: {
      const auto code =
          static_cast<int>(whole_param(o, "code", static_cast<std::int64_t>(exit_code::defect)));
      prove(fmt::format("ends with code {}", code));
      _exit(code);
    }
    case fault_kind::stop:
      prove("stops itself");
      raise(SIGSTOP);
      return;
    case fault_kind::throws:
      throws_.push_back(o);
      return;
    case fault_kind::hang: {
      if (work_ == nullptr) break;
      lasting_[o.id] =
          o.lasts ? std::optional<time_since_start>(clock_->now() + *o.lasts) : std::nullopt;
      const proof words = proof_of(o, at, "its compute thread stands still");
      work_->hang(*device_, o.id, [this, words] {
        const std::lock_guard lock(seen_mutex_);
        seen_by_others_.push_back(words);
        seen_by_others_.back().moment = clock_->now();
      });
      return;
    }
    case fault_kind::nan: {
      if (work_ == nullptr) break;
      const auto layer = static_cast<std::uint32_t>(whole_param(o, "layer", 0));
      work_->spoil(layer, [this, o, layer](std::uint64_t step) {
        inbox_.prove(
            proof_of(o, {"", step},
                     fmt::format("a gradient of layer {} in step {} is no number", layer, step)));
      });
      return;
    }
    default: {
      if (!message_fault_of(o.kind)) break;
      lasting_[o.id] =
          o.lasts ? std::optional<time_since_start>(clock_->now() + *o.lasts) : std::nullopt;
      unproven_links_[o.id] = proof_of(o, at, "");
      links_->begin(rule_of(o));
      return;
    }
  }
  proof no = proof_of(o, at, fmt::format("this worker cannot do {} to itself", name_of(o.kind)));
  no.what = proof::kind::failed;
  inbox_.prove(no);
}

void worker_faults::end(std::uint64_t id, const std::string& how) {
  std::erase_if(throws_, [&](const worker_order& o) { return o.id == id; });
  if (lasting_.erase(id) == 0) return;
  tell_what_others_saw();
  tell_what_links_did();
  unproven_links_.erase(id);
  std::string words = how;
  if (links_->end(id)) words += fmt::format("; {} messages were struck", links_->struck(id));
  if (work_ != nullptr) work_->release(id);
  inbox_.prove({id, proof::kind::over, step_, "", clock_->now(), words});
}

void worker_faults::throw_if_wished(const place& at) {
  const std::string_view actor = actor_at(at.point);
  const auto found = std::ranges::find_if(throws_, [&](const worker_order& o) {
    const std::string wanted = text_param(o, "actor");
    return wanted.empty() ? actor != "" : wanted == actor;
  });
  if (found == throws_.end()) return;
  const worker_order o = *found;
  throws_.erase(found);
  const std::string words =
      fmt::format("an exception in the {} at {} of step {}", actor, at.point, at.step);
  inbox_.prove(proof_of(o, at, words));
  throw std::runtime_error(words + ", thrown on purpose");
}

void worker_faults::tell_what_links_did() {
  for (auto one = unproven_links_.begin(); one != unproven_links_.end();) {
    if (links_->struck(one->first) == 0) {
      ++one;
      continue;
    }
    proof what = std::move(one->second);
    what.moment = clock_->now();
    what.words = "a message was struck";
    inbox_.prove(what);
    one = unproven_links_.erase(one);
  }
}

void worker_faults::tell_what_others_saw() {
  const std::lock_guard lock(seen_mutex_);
  for (const proof& p : std::exchange(seen_by_others_, {})) inbox_.prove(p);
}

}  // namespace troupe::actors::chaos
