// Worlds in which one member has a device that does something wrong.
#pragma once

#include <memory>

#include "actors/sim/world.hpp"

namespace troupe::actors::sim {

template <class Device>
world_parts with_device(member_id culprit) {
  world_parts parts = usual_parts();
  parts.computation = [culprit, usual = parts.computation](
                          member_id who, const toy_shape& toy, timeline& time,
                          const clock_source& clock, const toy_speed& speed,
                          std::function<void(std::function<void()>)> post,
                          std::function<void(std::uint64_t, std::uint32_t)> computed)
      -> std::unique_ptr<toy_computation> {
    if (who != culprit) {
      return usual(who, toy, time, clock, speed, std::move(post), std::move(computed));
    }
    return std::make_unique<Device>(toy, time, clock, speed, std::move(post), std::move(computed));
  };
  return parts;
}

}  // namespace troupe::actors::sim
