// The order of training: which window stands at which position of the run.
//
// Position p counts sequences from the start of the run and is all that has to be remembered: its
// epoch is p / windows, and the window follows from (seed, epoch, p % windows) by a permutation
// that is computed and not stored. So any position costs the same, a resume needs no replay, and no
// two members can disagree. Step n (1-based) trains on positions (n - 1) B ... n B - 1 for a global
// batch of B; a step may span epochs.
//
// The permutation is a Feistel network (balanced, `feistel_rounds` rounds, whose round function is
// one word of the counter-based generator) over the smallest 2^(2h) >= windows; results that fall
// outside are permuted again until they fall inside, which keeps it a permutation of [0, windows)
// and takes less than four tries on average. (Even and odd permutations are not equally likely, as
// with any Feistel network; every pair of windows is.) Not chosen: a shuffled array (8 bytes a
// window, and another order from another standard library).
//
// Changing anything here changes what every run trains on; a golden list in the tests watches.
#pragma once

#include <cstdint>

namespace troupe::model::data {

// With 8, pairs of 5 to 7 windows are measurably uneven over 600,000 epochs; with 12 nothing shows.
inline constexpr int feistel_rounds = 12;

class window_order {
 public:
  // windows > 0. Without `shuffle` every epoch goes through the windows as they come.
  window_order(std::uint64_t windows, std::uint64_t seed, bool shuffle);

  std::uint64_t windows() const { return windows_; }
  std::uint64_t epoch_of(std::uint64_t position) const { return position / windows_; }
  std::uint64_t window_at(std::uint64_t position) const;

 private:
  std::uint64_t permuted(std::uint64_t index, std::uint64_t epoch) const;

  std::uint64_t windows_;
  std::uint64_t seed_;
  bool shuffle_;
  int half_bits_ = 1;  // h
};

// Position of the first sequence of step n (1-based).
constexpr std::uint64_t first_position(std::uint64_t step, std::uint64_t global_batch) {
  return (step - 1) * global_batch;
}

}  // namespace troupe::model::data
