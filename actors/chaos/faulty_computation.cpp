#include "actors/chaos/faulty_computation.hpp"

#include <cstring>
#include <limits>

#include "config/base/tree.hpp"

namespace troupe::actors::chaos {

void gate::open() {
  const std::lock_guard lock(mutex_);
  open_ = true;
  opened_.notify_all();
}

void gate::wait() {
  std::unique_lock lock(mutex_);
  opened_.wait(lock, [this] { return open_; });
}

faulty_computation::~faulty_computation() {
  for (const auto& [id, g] : hanging_) g->open();
}

void faulty_computation::hang(compute::executor& device, std::uint64_t id,
                              std::function<void()> begun) {
  const auto here = hanging_[id] = std::make_shared<gate>();
  device.submit(
      compute::executor::priority::protocol,
      [here, begun = std::move(begun)](compute::ops&) {
        begun();
        here->wait();
      },
      [](const std::exception_ptr&) {});
}

bool faulty_computation::release(std::uint64_t id) {
  const auto found = hanging_.find(id);
  if (found == hanging_.end()) return false;
  found->second->open();
  hanging_.erase(found);
  return true;
}

void faulty_computation::spoil(std::uint32_t layer, std::function<void(std::uint64_t)> done) {
  wishes_.push_back({layer, std::move(done)});
}

void faulty_computation::adopt(const member_share& share) {
  work_->adopt(share);
  share_ = share;
}

void faulty_computation::start(std::uint64_t step, step_events events) {
  events.nodes_ready = [this, step, tell = std::move(events.nodes_ready)](std::uint32_t layer,
                                                                          std::uint8_t source) {
    spoil_if_wished(step, layer, source);
    tell(layer, source);
  };
  work_->start(step, std::move(events));
}

void faulty_computation::spoil_if_wished(std::uint64_t step, std::uint32_t layer,
                                         std::uint8_t source) {
  if (wishes_.empty() || source != 0) return;
  std::vector<wish> others;
  for (wish& w : std::exchange(wishes_, {})) {
    if (w.layer != layer) {
      others.push_back(std::move(w));
      continue;
    }
    const auto nodes = complete_nodes(share_.first_leaf, share_.leaves, share_.virtual_ranks);
    const auto values = work_->node({{layer, 0}, 0, nodes.front()});
    const float no_number = std::numeric_limits<float>::quiet_NaN();
    // The node is ours and is complete; the interface only keeps honest callers from writing.
    std::memcpy(const_cast<std::byte*>(values.data()), &no_number, sizeof no_number);
    w.done(step);
  }
  for (wish& w : others) wishes_.push_back(std::move(w));
}

}  // namespace troupe::actors::chaos
