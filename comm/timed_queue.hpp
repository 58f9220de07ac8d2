// Things that happen at a time, the earliest first, and of one time in the order in which they were
// put in: so the order is the same in every run. The heap moves small entries; the things
// themselves stay where they are until they are taken.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace troupe::comm {

template <class T>
class timed_queue {
 public:
  using time = std::chrono::nanoseconds;

  bool empty() const { return heap_.empty(); }
  time next_time() const { return heap_.front().at; }

  void push(time at, T what) {
    std::uint32_t slot = 0;
    if (free_.empty()) {
      slot = static_cast<std::uint32_t>(things_.size());
      things_.push_back(std::move(what));
    } else {
      slot = free_.back();
      free_.pop_back();
      things_[slot] = std::move(what);
    }
    heap_.push_back({at, ++pushed_, slot});
    std::push_heap(heap_.begin(), heap_.end());
  }

  T pop() {
    std::pop_heap(heap_.begin(), heap_.end());
    const std::uint32_t slot = heap_.back().slot;
    heap_.pop_back();
    free_.push_back(slot);
    return std::move(things_[slot]);
  }

 private:
  struct entry {
    time at;
    std::uint64_t number;
    std::uint32_t slot;
    // std::push_heap keeps the largest on top.
    bool operator<(const entry& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };
  std::vector<entry> heap_;
  std::vector<T> things_;
  std::vector<std::uint32_t> free_;
  std::uint64_t pushed_ = 0;
};

}  // namespace troupe::comm
