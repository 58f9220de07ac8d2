#include "actors/chaos/faulty_computation.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "actors/sim/timeline.hpp"
#include "actors/sim/toy_computation.hpp"
#include "config/base/clock.hpp"

namespace troupe::actors::chaos {
namespace {

constexpr sim::toy_shape toy{
    .layers = 2, .blocks = 2, .virtual_ranks = 2, .tied = false, .seed = 1};

struct faulty_computation_test : testing::Test {
  manual_clock clock;
  sim::timeline time;
  std::vector<std::function<void()>> posted;
  std::unique_ptr<faulty_computation> work;

  static time_since_start moment() { return std::chrono::microseconds(1); }
  faulty_computation_test() {
    auto inner = std::make_unique<sim::toy_computation>(
        toy, time, clock, sim::toy_speed{moment, moment, moment},
        [this](auto call) { posted.push_back(call); }, [](auto, auto) {});
    work = std::make_unique<faulty_computation>(std::move(inner));
    work->adopt({2, 0, 2, {{0, 0}, {0, 1}, {1, 0}, {1, 1}}, {}});
    work->initialize([](auto) {});
    run();
  }
  void run() {
    while (true) {
      for (const auto& call : std::exchange(posted, {})) call();
      if (!posted.empty()) continue;
      const auto next = time.next();
      if (!next) return;
      clock.advance(*next - clock.now());
      time.run_until(clock.now());
    }
  }
  // First elements of the layers' gradients of a step.
  std::vector<float> first_values(std::uint64_t step) {
    std::vector<float> values;
    work->load(step, [](auto) {});
    run();
    work->start(step, {{},
                       [&](std::uint32_t layer, std::uint8_t) {
                         float value = 0;
                         std::memcpy(&value, work->node({{layer, 0}, 0, {0, 2}}).data(), 4);
                         values.push_back(value);
                       },
                       [](auto, auto) {}});
    work->open(0);
    work->open(1);
    run();
    return values;
  }
};

TEST_F(faulty_computation_test, without_a_fault_it_is_the_computation_itself) {
  const auto values = first_values(1);
  ASSERT_EQ(values.size(), 2U);
  for (const float v : values) EXPECT_FALSE(std::isnan(v));
}

TEST_F(faulty_computation_test, a_spoilt_gradient_is_no_number_before_anybody_is_told_and_once) {
  std::uint64_t spoilt = 0;
  work->spoil(1, [&](std::uint64_t step) { spoilt = step; });
  const auto values = first_values(1);
  ASSERT_EQ(values.size(), 2U);
  EXPECT_EQ(std::isnan(values[0]) + std::isnan(values[1]), 1);
  EXPECT_EQ(spoilt, 1U);
  for (const float v : first_values(2)) EXPECT_FALSE(std::isnan(v));
}

TEST_F(faulty_computation_test, a_device_that_stands_still_goes_on_when_it_is_released) {
  const auto device = compute::make_cpu_executor(1);
  std::atomic<bool> stands = false, after = false;
  work->hang(*device, 3, [&] { stands = true; });
  device->submit(
      compute::executor::priority::protocol, [&](compute::ops&) { after = true; }, [](auto) {});
  while (!stands) std::this_thread::yield();
  EXPECT_FALSE(after);
  EXPECT_FALSE(work->release(4));
  EXPECT_TRUE(work->release(3));
  device->run([](compute::ops&) {});
  EXPECT_TRUE(after);
}

TEST_F(faulty_computation_test, its_end_sets_the_device_free) {
  const auto device = compute::make_cpu_executor(1);
  std::atomic<bool> stands = false;
  work->hang(*device, 3, [&] { stands = true; });
  while (!stands) std::this_thread::yield();
  work.reset();
  device->run([](compute::ops&) {});
}

}  // namespace
}  // namespace troupe::actors::chaos
