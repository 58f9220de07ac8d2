#include "actors/redial.hpp"

namespace troupe::actors {

std::chrono::nanoseconds redial::missing(member_id who, time_since_start now) {
  missing_.try_emplace(who, absence{now, 0});
  return self_ > who ? std::chrono::nanoseconds(0) : limits_.pause;
}

std::chrono::nanoseconds redial::failed(member_id who, bool reached, time_since_start now,
                                        std::chrono::nanoseconds most) {
  absence& a = missing_.try_emplace(who, absence{now, 0}).first->second;
  a.refusals = reached ? 0 : a.refusals + 1;
  if (a.refusals >= limits_.refusals || now - a.since > most) return never;
  return limits_.pause;
}

bool redial::replaces(member_id who, bool we_dialled_old, bool we_dialled_new) const {
  return by_higher(who, we_dialled_new) || !by_higher(who, we_dialled_old);
}

}  // namespace troupe::actors
