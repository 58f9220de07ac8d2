#include "compute/cpu/thread_pool.hpp"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <barrier>
#include <set>
#include <stdexcept>
#include <string>

#include "compute/executor.hpp"

namespace troupe::compute::cpu {
namespace {

TEST(thread_pool, visits_every_tile_exactly_once) {
  for (int threads = 1; threads <= 4; ++threads) {
    thread_pool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    for (const std::size_t tiles : {0, 1, 2, 3, 100, 1001}) {
      std::vector<std::atomic<int>> visits(tiles);
      pool.parallel_for(tiles, [&](std::size_t tile, int thread) {
        ++visits[tile];
        EXPECT_TRUE(thread >= 0 && thread < threads);
      });
      for (const std::atomic<int>& count : visits) EXPECT_EQ(count, 1) << threads << " threads";
    }
  }
}

TEST(thread_pool, survives_many_short_rounds) {
  thread_pool pool(3);
  std::atomic<int> sum = 0;
  for (int round = 0; round < 5000; ++round) {
    pool.parallel_for(3, [&](std::size_t tile, int) { sum += static_cast<int>(tile); });
  }
  EXPECT_EQ(sum, 15000);
}

// As many tiles as threads, and none ends before all have begun: so every thread takes one.
TEST(thread_pool, gives_every_thread_its_own_number_and_the_default_floating_point_environment) {
  for (int threads = 1; threads <= 4; ++threads) {
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);  // flush to zero, denormals are zero: threads inherit it
    thread_pool pool(threads);
    _mm_setcsr(before);
    std::barrier all(threads);
    std::vector<int> numbers(threads);
    std::vector<unsigned> environments(threads);
    pool.parallel_for(threads, [&](std::size_t tile, int thread) {
      numbers[tile] = thread;
      environments[tile] = _mm_getcsr() & ~0x3Fu;  // the lowest six bits are sticky flags
      all.arrive_and_wait();
    });
    EXPECT_EQ(std::set<int>(numbers.begin(), numbers.end()).size(), numbers.size());
    EXPECT_EQ(environments, std::vector<unsigned>(threads, 0x1F80u));
  }
}

TEST(thread_pool, rethrows_on_the_caller_what_a_tile_threw_and_works_on) {
  for (int threads = 1; threads <= 4; ++threads) {
    thread_pool pool(threads);
    for (const std::size_t bad : {0, 7, 99}) {
      const auto work = [&](std::size_t tile, int) {
        if (tile == bad) throw std::out_of_range("tile " + std::to_string(tile));
      };
      try {
        pool.parallel_for(100, work);
        FAIL() << "nothing was thrown";
      } catch (const std::out_of_range& trouble) {
        EXPECT_EQ(std::string(trouble.what()), "tile " + std::to_string(bad));
      }
      std::atomic<int> visits = 0;
      pool.parallel_for(100, [&](std::size_t, int) { ++visits; });
      EXPECT_EQ(visits, 100);
    }
  }
}

TEST(thread_pool, stops_between_tiles_once_the_flag_is_raised) {
  thread_pool pool(1);
  std::atomic<bool> flag = false;
  pool.set_cancel_flag(&flag);
  int visited = 0;
  EXPECT_THROW(pool.parallel_for(1000,
                                 [&](std::size_t tile, int) {
                                   ++visited;
                                   if (tile == 2) flag = true;
                                 }),
               executor::cancelled);
  EXPECT_EQ(visited, 3);
  flag = false;
  pool.parallel_for(10, [&](std::size_t, int) { ++visited; });
  EXPECT_EQ(visited, 13);
}

TEST(thread_pool, finishes_begun_tiles_of_all_threads_before_it_reports_cancellation) {
  constexpr int threads = 3;
  thread_pool pool(threads);
  std::atomic<bool> flag = false;
  pool.set_cancel_flag(&flag);
  std::barrier all(threads);
  std::atomic<int> begun = 0, ended = 0;
  EXPECT_THROW(pool.parallel_for(1000,
                                 [&](std::size_t, int) {
                                   ++begun;
                                   all.arrive_and_wait();
                                   flag = true;
                                   ++ended;
                                 }),
               executor::cancelled);
  EXPECT_EQ(begun, threads);
  EXPECT_EQ(ended, threads);
}

}  // namespace
}  // namespace troupe::compute::cpu
