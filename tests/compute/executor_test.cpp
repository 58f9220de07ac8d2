#include "compute/executor.hpp"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <future>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace troupe::compute {
namespace {

using priority = executor::priority;

// Says which exception a completion got: "" for none.
std::string name_of(const std::exception_ptr& trouble) {
  if (!trouble) return "";
  try {
    std::rethrow_exception(trouble);
  } catch (const std::exception& e) {
    return e.what();
  }
}

// Submits a job that reports in `running` that it has begun, then waits for `go_on`. What a job
// waits for must outlive the device: a latch is still looked at by its waiter after it has opened,
// so it is declared first.
void submit_gate(executor& device, std::latch& running, std::latch& go_on) {
  device.submit(
      priority::compute,
      [&](ops&) {
        running.count_down();
        go_on.wait();
      },
      [](std::exception_ptr) {});
  running.wait();
}

TEST(executor, runs_jobs_of_one_priority_in_order_and_protocol_jobs_first) {
  std::latch running(1), go_on(1), finished(5);
  const auto device = make_cpu_executor(1);
  submit_gate(*device, running, go_on);
  std::vector<std::string> order;  // touched by the executor's thread only, until all have finished
  const auto submit = [&](priority urgency, const char* name) {
    device->submit(
        urgency, [&order, name](ops&) { order.push_back(name); },
        [&](std::exception_ptr) { finished.count_down(); });
  };
  submit(priority::compute, "compute 1");
  submit(priority::compute, "compute 2");
  submit(priority::protocol, "protocol 1");
  submit(priority::compute, "compute 3");
  submit(priority::protocol, "protocol 2");
  go_on.count_down();
  finished.wait();
  EXPECT_EQ(order, (std::vector<std::string>{"protocol 1", "protocol 2", "compute 1", "compute 2",
                                             "compute 3"}));
}

TEST(executor, cancel_drops_queued_compute_jobs_and_keeps_protocol_jobs) {
  std::latch running(1), go_on(1), finished(1);
  const auto device = make_cpu_executor(1);
  submit_gate(*device, running, go_on);
  bool dropped_ran = false, protocol_ran = false;
  std::string dropped_result;
  device->submit(
      priority::compute, [&](ops&) { dropped_ran = true; },
      [&](std::exception_ptr trouble) { dropped_result = name_of(trouble); });
  device->submit(
      priority::protocol, [&](ops&) { protocol_ran = true; },
      [&](std::exception_ptr trouble) {
        EXPECT_EQ(name_of(trouble), "");
        finished.count_down();
      });
  device->cancel();
  EXPECT_EQ(dropped_result, executor::cancelled().what());
  go_on.count_down();
  finished.wait();
  EXPECT_FALSE(dropped_ran);
  EXPECT_TRUE(protocol_ran);
}

TEST(executor, is_busy_while_a_job_is_queued_or_running) {
  const auto device = make_cpu_executor(1);
  for (const priority urgency : {priority::compute, priority::protocol}) {
    std::latch running(1), go_on(1), second_running(1), end(1);
    device->submit(
        urgency,
        [&](ops&) {
          running.count_down();
          go_on.wait();
        },
        [](std::exception_ptr) {});
    device->submit(
        urgency,
        [&](ops&) {
          second_running.count_down();
          end.wait();
        },
        [](std::exception_ptr) {});
    running.wait();
    EXPECT_TRUE(device->busy());
    go_on.count_down();
    second_running.wait();
    EXPECT_TRUE(device->busy());
    end.count_down();
    while (device->busy()) std::this_thread::yield();  // never again busy by itself
  }
  EXPECT_FALSE(device->busy());
}

TEST(executor, cancel_cuts_the_running_compute_job_short) {
  std::latch running(1);
  std::promise<std::string> result;
  const auto device = make_cpu_executor(2);
  buffer memory = device->allocate(1000, dtype::float32);
  device->submit(
      priority::compute,
      [&](ops& ops) {
        running.count_down();
        while (true) ops.fill(memory.all(), 1.0f);  // ends by cancellation only
      },
      [&](std::exception_ptr trouble) { result.set_value(name_of(trouble)); });
  running.wait();
  device->cancel();
  EXPECT_EQ(result.get_future().get(), executor::cancelled().what());
  device->run([&](ops& ops) { ops.fill(memory.all(), 2.0f); });  // the next job is not concerned
  EXPECT_EQ(memory.all().host<float>()[999], 2.0f);
}

TEST(executor, cancel_leaves_a_running_protocol_job_alone) {
  std::latch running(1), cancelled(1);
  std::promise<std::string> result;
  const auto device = make_cpu_executor(2);
  buffer memory = device->allocate(1000, dtype::float32);
  device->submit(
      priority::protocol,
      [&](ops& ops) {
        running.count_down();
        cancelled.wait();
        ops.fill(memory.all(), 3.0f);
      },
      [&](std::exception_ptr trouble) { result.set_value(name_of(trouble)); });
  running.wait();
  device->cancel();
  cancelled.count_down();
  EXPECT_EQ(result.get_future().get(), "");
  EXPECT_EQ(memory.all().host<float>()[999], 3.0f);
}

TEST(executor, hands_what_a_job_threw_to_its_completion_and_goes_on) {
  const auto device = make_cpu_executor(1);
  EXPECT_THROW(device->run([](ops&) { throw std::runtime_error("no good"); }), std::runtime_error);
  bool ran = false;
  device->run([&](ops&) { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(executor, finishes_queued_jobs_before_it_ends) {
  int ran = 0;
  {
    const auto device = make_cpu_executor(1);
    for (int i = 0; i < 10; ++i) {
      device->submit(
          priority::compute, [&](ops&) { ++ran; }, [](std::exception_ptr) {});
    }
  }
  EXPECT_EQ(ran, 10);
}

TEST(executor, computes_with_the_default_floating_point_environment) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // flush to zero, denormals are zero: threads inherit it
  const auto device = make_cpu_executor(2);
  _mm_setcsr(before);
  unsigned inside = 0;
  device->run([&](ops&) { inside = _mm_getcsr(); });
  EXPECT_EQ(inside & ~0x3Fu, 0x1F80u);  // the lowest six bits are sticky flags
}

TEST(executor, allocates_memory_that_is_zero_and_aligned_to_cache_lines) {
  const auto device = make_cpu_executor(1);
  for (const std::size_t size : {1, 7, 64, 1001}) {
    buffer memory = device->allocate(size, dtype::float64);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.all().data) % 64, 0u);
    EXPECT_EQ(memory.bytes(), size * 8);
    for (const double value : memory.all().host<double>()) EXPECT_EQ(value, 0.0);
  }
}

}  // namespace
}  // namespace troupe::compute
