// The yardstick of every speed figure: how fast this machine, now, with this many threads, does
// nothing but independent fused multiply-adds from registers. The widest instruction set counts,
// not the narrowest that would flatter the kernels. Threads begin each slice together and the
// slowest ends it; the best of some slices is taken, since anything else that runs can only lower
// one.

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include "compute/cpu/chain_kernel.hpp"
#include "compute/cpu/instruction_set.hpp"
#include "compute/cpu/kernels.hpp"
#include "config/base/error.hpp"

namespace troupe::compute::cpu {
namespace {

using clock = std::chrono::steady_clock;

constexpr int slices = 10;
constexpr double slice_seconds = 0.005;
constexpr int trials = 10;
constexpr std::size_t trial_iterations = 20'000;

double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

}  // namespace

double measure_fma_peak(int threads) {
  ensure(threads >= 1, "the peak of no threads was asked for");
  const chain_kernel& kernel = active_instruction_set() == instruction_set::avx512
                                   ? avx512_chain_kernel()
                                   : avx2_chain_kernel();
  // The sums stay near 1: neither subnormal nor infinite. The result is kept so that the loop is,
  // too.
  std::atomic<float> sink{0};
  const auto work = [&](std::size_t iterations) { sink = kernel.fma_loop(iterations, 0.5f, 0.5f); };

  // Several trials, because one that was interrupted would make the slices too short to be trusted.
  clock::time_point start;
  double trial_seconds = slice_seconds;
  for (int trial = 0; trial < trials; ++trial) {
    start = clock::now();
    work(trial_iterations);
    trial_seconds = std::clamp(seconds_since(start), 1e-9, trial_seconds);
  }
  const double scale = slice_seconds / trial_seconds;
  const auto iterations =
      static_cast<std::size_t>(static_cast<double>(trial_iterations) * scale) + 1;

  double best_seconds = 0;
  int ended = 0;
  const auto mark = [&]() noexcept {
    if (ended > 0) {
      const double seconds = seconds_since(start);
      best_seconds = ended == 1 ? seconds : std::min(best_seconds, seconds);
    }
    ++ended;
    start = clock::now();
  };
  std::barrier together(threads, mark);
  const auto run = [&] {
    for (int slice = 0; slice < slices; ++slice) {
      together.arrive_and_wait();
      work(iterations);
    }
    together.arrive_and_wait();
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(run);
  run();
  others.clear();
  const double flops =
      static_cast<double>(iterations) * static_cast<double>(kernel.flops_per_iteration) * threads;
  return flops / best_seconds * 1e-9;
}

}  // namespace troupe::compute::cpu
