// What an injector tells a worker to do to itself, and what the worker proves about it: two
// vocabularies, each a line of JSON, and the book in which a worker keeps the orders whose moment
// has not come. Pure: who writes and reads the lines is order_files.
//
// An order is for one life of one slot, has a number of its own, and happens once: at once, or when
// the worker reaches a named point of some steps. That moment is known to nobody else in time: from
// outside a step of some milliseconds is over before it is seen. So orders for points are given
// ahead, and taken back if the world has changed before they came to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/chaos/scenario.hpp"

namespace troupe::actors::chaos {

struct order_moment {
  named_point point;
  std::uint64_t first_step = 0, last_step = UINT64_MAX;
};

struct worker_order {
  std::uint64_t id = 0;
  // About order `id`, and then nothing below counts:
  bool ends = false;       // its end, whether it waits or lasts
  bool withdrawn = false;  // it is not to begin any more; if it has, it goes on
  fault_kind kind = fault_kind::kill;
  std::optional<order_moment> when;  // nothing: at once
  std::optional<duration> lasts;     // it ends by itself after so long; nothing: until it is ended
  std::vector<member_id> towards;    // of kinds of links: to whom; none: to everybody
  std::uint64_t seed = 0;            // of its random choices
  parameters params;
};

struct proof {
  enum class kind : std::uint8_t {
    struck,  // it happens, from this moment on
    over,    // what lasted has ended
    failed,  // it cannot be done: words say why
  };
  std::uint64_t id = 0;
  kind what = kind::struck;
  std::uint64_t step = 0;
  std::string point;  // "" where it came at once
  duration moment{};  // on the machine's monotonic clock
  std::string words;  // what was seen
};

std::string to_line(const worker_order& o);
std::string to_line(const proof& p);
// `file` is for the message.
result<worker_order> parse_order(std::string_view line, const std::string& file);
result<proof> parse_proof(std::string_view line, const std::string& file);

class order_book {
 public:
  // Keeps an order that waits for a point; hands back one that is due, or that ends another.
  std::optional<worker_order> add(worker_order o);
  // The orders that are due here, in the order in which they came; they are out of the book then.
  std::vector<worker_order> reached(std::string_view point, std::uint64_t step, std::uint32_t k);
  bool waits() const { return !waiting_.empty(); }

 private:
  std::vector<worker_order> waiting_;
};

}  // namespace troupe::actors::chaos
