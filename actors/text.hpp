// Numbers and tables for people. Pure formatting; ASCII, locale-free.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

std::string short_count(double value);                        // 950, 12.3k, 1.75M, 2.1G
std::string short_bytes(double bytes);                        // 812 B, 3.4 KiB, 1.2 GiB
std::string short_duration(std::chrono::duration<double> d);  // 0.4s, 12s, 3m20s, 2h13m, 4d02h

// Two columns, aligned: what a run starts with.
std::string table(const std::vector<std::pair<std::string, std::string>>& rows);

struct progress {
  std::uint64_t step = 0, steps = 0;
  double loss = 0, grad_norm = 0, lr = 0;
  double tokens_per_second = 0;
  double utilization = 0;  // model FLOP/s over peak, 0..1; below 0: not known
  std::uint64_t world = 1, generation = 0;
  std::chrono::duration<double> eta{0};
  bool skipped = false;
};
// "step   120/10000  loss 4.1234  grad_norm 0.912  lr 3.00e-04  tok/s 12.3k  mfu 31.2%  world 4 gen
// 3  eta 2h13m"
std::string progress_line(const progress& p);

}  // namespace troupe::actors
