// What the lanes of one filtered transport share: what is wrong, the clock, and which bulk lanes
// there are.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "comm/message_faults.hpp"
#include "comm/transport.hpp"
#include "config/base/clock.hpp"

namespace troupe::comm {

struct filter_settings {
  std::function<time_since_start()> now;
  // The name of a message: of a control frame's payload, or of a bulk message's header; "": none.
  std::function<std::string(message_plane, bytes_view)> name_of = {};
  // Progress is wanted then at the latest, for whoever does not come back by wait(); may be empty.
  std::function<void(time_since_start)> wake_at = {};
};

class bulk_filter;

struct filter_state {
  explicit filter_state(filter_settings s) : settings(std::move(s)) {}

  time_since_start now() const { return settings.now(); }
  void will_be_due(time_since_start when) const {
    if (settings.wake_at) settings.wake_at(when);
  }
  std::string name_of(message_plane plane, bytes_view what) const {
    return settings.name_of && faults.asks_for_names() ? settings.name_of(plane, what) : "";
  }

  filter_settings settings;
  message_faults faults;
  std::set<bulk_filter*> lanes;
};

}  // namespace troupe::comm
