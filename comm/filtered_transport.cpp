#include "comm/filtered_transport.hpp"

#include <algorithm>

#include "comm/bulk_filter.hpp"
#include "comm/control_filter.hpp"

namespace troupe::comm {

filtered_transport::filtered_transport(std::unique_ptr<transport> inner, filter_settings settings)
    : inner_(std::move(inner)),
      state_(std::make_shared<filter_state>(std::move(settings))),
      control_(std::make_unique<control_filter>(inner_->control(), *state_)) {}

filtered_transport::~filtered_transport() = default;

message_faults& filtered_transport::faults() { return state_->faults; }

void filtered_transport::start(control_handler& handler) {
  control_->listen(handler);
  inner_->start(*control_);
}

control_lane& filtered_transport::control() { return *control_; }

result<std::unique_ptr<bulk_lane>> filtered_transport::open_bulk(generation number,
                                                                 bulk_handler& handler) {
  auto lane = std::make_unique<bulk_filter>(state_, handler);
  if (status opened = lane->open(*inner_, number); !opened) return opened.failure();
  return std::unique_ptr<bulk_lane>(std::move(lane));
}

bool filtered_transport::progress() {
  bool any = control_->release();
  // A handler may end a lane or open one.
  for (bulk_filter* lane : std::vector(state_->lanes.begin(), state_->lanes.end())) {
    any |= lane->release();
  }
  return inner_->progress() || any;
}

void filtered_transport::wait(std::chrono::nanoseconds at_most, waiting how) {
  std::optional<time_since_start> next = control_->next_due();
  for (const bulk_filter* lane : state_->lanes) {
    if (const auto due = lane->next_due()) next = next ? std::min(*next, *due) : due;
  }
  if (next) at_most = std::min(at_most, *next - state_->now());
  if (at_most.count() > 0) inner_->wait(at_most, how);
}

void filtered_transport::wake() { inner_->wake(); }
traffic filtered_transport::sent() const { return inner_->sent(); }

}  // namespace troupe::comm
