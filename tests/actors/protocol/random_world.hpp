// Random worlds for the tests of plans: the same for the same seed, on every machine.
#pragma once

#include <random>
#include <string>

#include "actors/protocol/planner.hpp"

namespace troupe::actors::protocol {

class random_world {
 public:
  explicit random_world(std::uint64_t seed) : engine_(seed) {}

  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(engine_() % n); }
  std::uint32_t between(std::uint32_t low, std::uint32_t high) {
    return low + below(high - low + 1);
  }
  bool chance(std::uint32_t one_in) { return below(one_in) == 0; }
  std::mt19937_64& engine() { return engine_; }

  candidate member(std::uint32_t id, std::uint32_t hosts, std::uint32_t domains) {
    candidate c;
    c.id = member_id(id);
    c.life = incarnation(1 + below(5));
    c.name = "worker-" + std::to_string(id);
    const std::uint32_t host = below(hosts);
    c.host = "host" + std::to_string(host);
    c.domain = domains == 0 ? "" : "rack" + std::to_string(host % domains);
    c.address = "10.0.0.1:" + std::to_string(4000 + id);
    c.speed = 1;
    return c;
  }

  std::vector<std::vector<std::uint32_t>> layers(std::uint32_t most_blocks) {
    std::vector<std::vector<std::uint32_t>> all(between(1, 6));
    for (auto& layer : all) {
      layer.assign(between(1, most_blocks), 1u << 18);
      layer.back() = between(1, 1u << 18);
    }
    return all;
  }

  planner_input world() {
    planner_input in;
    in.run_id = "run";
    const std::uint32_t members = between(1, 12), hosts = between(1, 6), domains = below(4);
    for (std::uint32_t i = 0; i < members; ++i) {
      candidate c = member(i * 3 + below(3), hosts, domains);
      c.store = !chance(4);
      c.computes = !chance(5);
      if (chance(3)) c.speed = 0.5 + below(8) / 8.0;
      in.candidates.push_back(std::move(c));
    }
    in.layers = layers(chance(3) ? 40 : 4);
    in.virtual_ranks = between(1, 33);
    in.backups = below(4);
    in.spares = chance(4) ? spare_policy::none : spare_policy::backups;
    in.reason = "test";
    return in;
  }

 private:
  std::mt19937_64 engine_;
};

// A world in which everybody computes on a host of its own: nothing forbids even plans.
inline planner_input equal_world(std::uint32_t members, std::uint32_t blocks, std::uint32_t layers,
                                 std::uint32_t virtual_ranks, std::uint32_t backups) {
  random_world random(1);
  planner_input in;
  in.run_id = "run";
  in.reason = "test";
  for (std::uint32_t i = 0; i < members; ++i) {
    candidate c = random.member(i, 1, 0);
    c.host = "host" + std::to_string(i);
    in.candidates.push_back(std::move(c));
  }
  in.layers.assign(layers, std::vector<std::uint32_t>(blocks / layers, 1u << 18));
  in.virtual_ranks = virtual_ranks;
  in.backups = backups;
  return in;
}

}  // namespace troupe::actors::protocol
