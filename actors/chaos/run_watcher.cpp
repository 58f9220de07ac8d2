#include "actors/chaos/run_watcher.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/chaos/promise.hpp"
#include "actors/plan_chain.hpp"
#include "actors/plan_text.hpp"
#include "actors/run_directory.hpp"
#include "config/base/json.hpp"

namespace troupe::actors::chaos {
namespace {

constexpr std::uint64_t plan_limit = 64 << 20, report_limit = 64 << 20;
// A record that says so would be better; until there is one, copies count as made after so many.
constexpr std::uint64_t steps_until_copied = 3;

}  // namespace

std::vector<std::string> line_follower::new_lines() {
  std::vector<std::string> lines;
  if (!file_) {
    const result<bool> there = files_->exists(path_);
    if (!there || !*there) return lines;
    result<std::unique_ptr<file>> opened = files_->open(path_, open_mode::read);
    if (!opened) return lines;
    file_ = std::move(*opened);
  }
  const result<std::uint64_t> size = file_->size();
  if (!size || *size == at_) return lines;
  if (*size < at_) {  // a torn last line was cut off
    const std::uint64_t torn = std::min<std::uint64_t>(at_ - *size, rest_.size());
    rest_.resize(rest_.size() - torn);
    at_ = *size;
    return lines;
  }
  std::string more(*size - at_, '\0');
  const result<std::size_t> got =
      file_->read_at(at_, std::as_writable_bytes(std::span(more.data(), more.size())));
  if (!got) return lines;
  at_ += *got;
  rest_.append(more, 0, *got);
  std::size_t begin = 0;
  for (std::size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(rest_.substr(begin, end - begin));
  }
  rest_.erase(0, begin);
  return lines;
}

run_watcher::run_watcher(file_system& files, const std::string& run_directory)
    : files_(&files),
      directory_(run_directory),
      steps_(files, join_path(run_directory, "steps.jsonl")),
      event_lines_(files, join_path(run_directory, "events.jsonl")) {}

std::vector<happening> run_watcher::look(duration now) {
  std::vector<happening> news;
  look_for_plans(news);
  for (const std::string& line : event_lines_.new_lines()) take_event(line, now, news);
  for (std::size_t i = steps_.new_lines().size(); i > 0; --i) {
    seen_at_.push_back(now);
    news.emplace_back(step_committed{seen_at_.size()});
    step_ = seen_at_.size() + 1;
    news.emplace_back(step_begins{step_});
    if (++steps_of_plan_ == steps_until_copied) unfinished_.clear();
  }
  return news;
}

void run_watcher::look_for_plans(std::vector<happening>& news) {
  while (true) {
    const std::string path =
        join_path(join_path(directory_, "plans"), fmt::format("plan-{:06}", plans_.size()));
    const result<bool> there = files_->exists(path);
    if (!there || !*there) return;
    const result<std::string> text = read_file(*files_, path, plan_limit);
    if (!text) return;
    result<protocol::plan> plan = parse_plan(*text, path);
    if (!plan) {
      trouble_ = plan.failure().message;
      return;
    }
    if (!plans_.empty()) unfinished_ = new_copies(plans_.back(), *plan);
    steps_of_plan_ = 0;
    step_ = plan->base + 1;
    plans_.push_back(std::move(*plan));
    news.emplace_back(step_begins{step_});
  }
}

void run_watcher::take_event(const std::string& line, duration now, std::vector<happening>& news) {
  result<nlohmann::json> parsed = parse_json(line, join_path(directory_, "events.jsonl"));
  if (!parsed || !parsed->is_object()) {
    trouble_ = parsed ? "a line of events.jsonl is no object" : parsed.failure().message;
    return;
  }
  const auto name = parsed->find("event");
  if (name == parsed->end() || !name->is_string()) return;
  seen_event e{name->get<std::string>(), std::move(*parsed), now};
  if (e.name == "redundancy_restored") unfinished_.clear();
  news.emplace_back(event_seen{event_of_record(e.name)});
  events_.push_back(std::move(e));
}

void run_watcher::fill(world_view& world) const {
  ensure(has_plan(), "a world was asked for before its first plan");
  world.plan = plans_.back();
  world.unfinished = unfinished_;
}

void run_watcher::put_on_our_clock(std::vector<seen_event>& events) const {
  const auto mono = [](const seen_event& e) {
    const auto found = e.fields.find("mono");
    const double s = found != e.fields.end() && found->is_number() ? found->get<double>() : 0;
    return duration(static_cast<std::int64_t>(s * 1e9));
  };
  for (std::size_t begin = 0; begin < events.size();) {
    std::size_t end = begin + 1;
    while (end < events.size() && mono(events[end]) >= mono(events[end - 1])) ++end;
    duration start = events[begin].at - mono(events[begin]);
    for (std::size_t i = begin; i < end; ++i) {
      start = std::min(start, events[i].at - mono(events[i]));
    }
    for (std::size_t i = begin; i < end; ++i) events[i].at = start + mono(events[i]);
    begin = end;
  }
}

void run_watcher::finish(run_facts& facts) const {
  facts.records_trouble = trouble_;
  const result<std::vector<step_record>> steps =
      read_steps(*files_, join_path(directory_, "steps.jsonl"));
  if (!steps) {
    facts.records_trouble = steps.failure().message;
  } else if (steps->size() < seen_at_.size()) {
    facts.records_trouble = fmt::format("steps.jsonl has {} steps, but {} were seen in it",
                                        steps->size(), seen_at_.size());
  } else {
    for (std::size_t i = 0; i < steps->size(); ++i) {
      facts.steps.push_back({(*steps)[i], i < seen_at_.size() ? seen_at_[i] : facts.ended});
    }
  }
  facts.events = events_;
  put_on_our_clock(facts.events);
  const result<run_directory> run = run_directory::open(*files_, directory_);
  if (!run) {
    facts.chain_trouble = run.failure().message;
    return;
  }
  const auto plans = read_plans(*files_, directory_, run->run_id());
  if (!plans) {
    facts.chain_trouble = plans.failure().message;
  } else if (!plans->empty()) {
    facts.plans = plans->size();
    facts.members_at_end = plans->back().plan.members.size();
  }
  const std::string path = run->file("report.json");
  const result<std::string> text = read_file(*files_, path, report_limit);
  const auto report = text ? parse_json(*text, path) : result<nlohmann::json>(text.failure());
  if (!report || !report->is_object()) return;
  const auto hash = [&](const char* name) {
    const auto found = report->find(name);
    return found != report->end() && found->is_string() ? found->get<std::string>() : "";
  };
  facts.weights_hash = hash("weights_hash");
  facts.state_hash = hash("state_hash");
  const auto redone = report->find("steps_redone");
  if (redone != report->end() && redone->is_number_unsigned()) {
    facts.steps_redone = redone->get<std::uint64_t>();
  }
}

}  // namespace troupe::actors::chaos
