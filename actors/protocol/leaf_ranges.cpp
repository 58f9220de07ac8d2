#include "actors/protocol/leaf_ranges.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "config/base/error.hpp"

namespace troupe::actors::protocol {
namespace {

constexpr double load_slack = 1.125;
constexpr double rounding = 1e-9;  // 21.9999999999 virtual ranks are 22
// More possible cut points than this make a plan slow and hardly a better one.
constexpr std::uint32_t many_cuts = 2048;

std::uint32_t leaves_within(double load, double speed, std::uint32_t all) {
  const double leaves = load * speed + rounding;
  if (leaves >= all) return all;
  return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(leaves));
}

// The split by dynamic programming: after member i, the first `cut` cells are given away. Only
// cuts that leave everybody within its largest share are looked at, so the work is about
// (cells)^2 / 8 and not members * cells^2.
class splitter {
 public:
  splitter(std::uint32_t virtual_ranks, std::span<const double> speeds, double node_cost)
      : all_(virtual_ranks), speeds_(speeds), node_cost_(node_cost) {
    const double load = load_slack * best_load(all_, speeds_);
    const auto members = static_cast<std::uint32_t>(speeds_.size());
    grain_ = std::bit_floor(std::max<std::uint32_t>(1, all_ / std::max(many_cuts, 16 * members)));
    // Coarse cells may not let uneven members share everything; single virtual ranks always do.
    for (;; grain_ /= 2) {
      cells_ = (all_ + grain_ - 1) / grain_;
      most_.clear();
      for (double speed : speeds_) {
        most_.push_back(std::max<std::uint32_t>(1, leaves_within(load, speed, all_) / grain_));
      }
      if (std::accumulate(most_.begin(), most_.end(), std::uint64_t{0}) >= cells_) break;
      ensure(grain_ > 1, "virtual ranks cannot be shared out within the load that is possible");
    }
    find_windows();
  }

  std::vector<leaf_range> split() {
    const double limit = cheapest_worst_member();
    return fewest_nodes(limit);
  }

 private:
  struct window {
    std::uint32_t low = 0, high = 0;  // cells given away, both ends included
    std::size_t width() const { return high - low + 1; }
  };

  void find_windows() {
    const std::size_t n = speeds_.size();
    windows_.resize(n + 1);
    std::uint64_t behind = std::accumulate(most_.begin(), most_.end(), std::uint64_t{0});
    std::uint64_t before = 0;
    for (std::size_t i = 0; i <= n; ++i) {
      const std::uint64_t low = behind >= cells_ ? 0 : cells_ - behind;
      windows_[i].low = static_cast<std::uint32_t>(std::max<std::uint64_t>(i, low));
      windows_[i].high =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(before, cells_ - (n - i)));
      if (i == n) break;
      behind -= most_[i];
      before += most_[i];
    }
  }

  std::uint32_t leaf_at(std::uint32_t cell) const {
    return static_cast<std::uint32_t>(std::min(std::uint64_t{cell} * grain_, std::uint64_t{all_}));
  }
  leaf_range between(std::uint32_t from, std::uint32_t to) const {
    return {leaf_at(from), leaf_at(to) - leaf_at(from)};
  }
  double cost(std::size_t member, leaf_range range, std::uint32_t nodes) const {
    return range.leaves / speeds_[member] + node_cost_ * nodes;
  }

  // Calls visit(from, to) for each share that member i may take.
  template <class Visit>
  void each_share(std::size_t i, Visit visit) const {
    const window before = windows_[i], after = windows_[i + 1];
    for (std::uint32_t to = after.low; to <= after.high; ++to) {
      const std::uint32_t least = to > most_[i] ? to - most_[i] : 0;
      const std::uint32_t first = std::max(before.low, least);
      for (std::uint32_t from = first; from <= before.high && from < to; ++from) visit(from, to);
    }
  }

  double cheapest_worst_member() const {
    std::vector<double> best{0.0};
    for (std::size_t i = 0; i < speeds_.size(); ++i) {
      std::vector<double> next(windows_[i + 1].width(), std::numeric_limits<double>::infinity());
      each_share(i, [&](std::uint32_t from, std::uint32_t to) {
        double& there = next[to - windows_[i + 1].low];
        const double so_far = best[from - windows_[i].low];
        const leaf_range range = between(from, to);
        if (std::max(so_far, cost(i, range, 1)) >= there) return;  // before nodes are counted
        there = std::min(there, std::max(so_far, cost(i, range, node_count(range, all_))));
      });
      best = std::move(next);
    }
    return best.back();
  }

  std::vector<leaf_range> fewest_nodes(double limit) const {
    constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t> best{0};
    std::vector<std::vector<std::uint32_t>> came_from(speeds_.size());
    for (std::size_t i = 0; i < speeds_.size(); ++i) {
      std::vector<std::uint32_t> next(windows_[i + 1].width(), never);
      came_from[i].resize(next.size());
      each_share(i, [&](std::uint32_t from, std::uint32_t to) {
        const std::uint32_t so_far = best[from - windows_[i].low];
        std::uint32_t& there = next[to - windows_[i + 1].low];
        if (so_far == never || so_far + 1 >= there) return;
        const leaf_range range = between(from, to);
        const std::uint32_t nodes = node_count(range, all_);
        if (so_far + nodes >= there || cost(i, range, nodes) > limit) return;
        there = so_far + nodes;
        came_from[i][to - windows_[i + 1].low] = from;
      });
      best = std::move(next);
    }
    std::vector<leaf_range> ranges(speeds_.size());
    std::uint32_t to = cells_;
    for (std::size_t i = speeds_.size(); i-- > 0;) {
      const std::uint32_t from = came_from[i][to - windows_[i + 1].low];
      ranges[i] = between(from, to);
      to = from;
    }
    return ranges;
  }

  std::uint32_t all_, grain_ = 1, cells_ = 0;
  std::span<const double> speeds_;
  double node_cost_;
  std::vector<std::uint32_t> most_;  // cells a member may take
  std::vector<window> windows_;      // before member i
};

}  // namespace

// Every node is an aligned run of a power of two, or one of the runs that end at the last leaf.
std::uint32_t node_count(leaf_range range, std::uint32_t virtual_ranks) {
  const std::uint32_t end = range.first + range.leaves;
  std::uint32_t at = range.first, count = 0;
  while (at < end) {
    ++count;
    const std::uint32_t left = virtual_ranks - at;
    std::uint32_t size = at == 0 ? left : at & (~at + 1);  // no aligned run at `at` is larger
    if (size >= left) {
      if (end == virtual_ranks) break;  // one node takes all the rest
      size = std::bit_floor(left - 1);
    }
    while (size > end - at) size /= 2;
    at += size;
  }
  return count;
}

double best_load(std::uint32_t virtual_ranks, std::span<const double> speeds) {
  ensure(speeds.size() <= virtual_ranks, "more members were to compute than there is to compute");
  const auto enough = [&](double load) {
    std::uint64_t leaves = 0;
    for (double speed : speeds) leaves += leaves_within(load, speed, virtual_ranks);
    return leaves >= virtual_ranks;
  };
  double low = 0, high = virtual_ranks / std::ranges::min(speeds);
  for (int i = 0; i < 64; ++i) {
    const double middle = (low + high) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return std::max(high, 1 / std::ranges::min(speeds));
}

std::vector<std::size_t> who_computes(std::uint32_t virtual_ranks, std::span<const double> speeds) {
  std::vector<std::size_t> order(speeds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return speeds[i]; });
  order.resize(std::min<std::size_t>(order.size(), virtual_ranks));
  std::vector<double> fastest;
  for (std::size_t i : order) fastest.push_back(speeds[i]);
  while (order.size() > 1) {
    const double alone = 1 / fastest.back();
    fastest.pop_back();
    if (alone <= best_load(virtual_ranks, fastest)) break;
    order.pop_back();
  }
  std::ranges::sort(order);
  return order;
}

std::vector<leaf_range> share_leaves(std::uint32_t virtual_ranks, std::span<const double> speeds,
                                     double node_cost) {
  ensure(!speeds.empty(), "virtual ranks were to be shared out among nobody");
  double sum = 0;
  for (double speed : speeds) sum += speed;
  std::vector<double> relative(speeds.begin(), speeds.end());
  for (double& speed : relative) speed *= static_cast<double>(speeds.size()) / sum;
  return splitter(virtual_ranks, relative, node_cost).split();
}

}  // namespace troupe::actors::protocol
