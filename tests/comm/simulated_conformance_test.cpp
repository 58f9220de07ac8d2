// The simulated transport keeps what every transport promises, in good weather and under jitter.
#include <deque>

#include "comm/simulated_transport.hpp"
#include "tests/comm/transport_conformance.hpp"

namespace troupe::comm {
namespace {

class simulated_group final : public transport_group {
 public:
  simulated_group(std::size_t count, const network_conditions& c) : network_(1, c) {
    for (std::size_t i = 0; i < count; ++i) processes_.push_back(network_.add_process());
  }

  transport& at(std::size_t index) override { return *processes_[index].transport; }
  bool run_until(const std::function<bool()>& condition) override {
    while (!condition()) {
      if (!step()) return condition();
    }
    return true;
  }
  void settle() override {
    while (step()) {
    }
  }
  void lose(std::size_t index) override {
    network_.kill(processes_[index].id, std::chrono::milliseconds(4));
  }
  address nobody() override { return {"127.0.0.1", 9}; }

 private:
  bool step() {
    const auto next = network_.next_event();
    if (!next) return false;
    network_.advance_to(*next);
    for (const process_id p : network_.take_ready()) processes_[p.value].transport->progress();
    return true;
  }

  simulated_network network_;
  std::deque<simulated_network::process> processes_;
};

conformance_subject subject(std::string name, const network_conditions& c) {
  return {std::move(name), [c](std::size_t count) -> std::unique_ptr<transport_group> {
            return std::make_unique<simulated_group>(count, c);
          }};
}

network_conditions late() {
  network_conditions c;
  c.jitter = c.bulk_jitter = std::chrono::milliseconds(10);
  return c;
}

INSTANTIATE_TEST_SUITE_P(simulated, transport_conformance,
                         testing::Values(subject("calm", {}), subject("late", late())),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace troupe::comm
