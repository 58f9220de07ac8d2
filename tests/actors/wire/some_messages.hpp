// One message and header of every kind, for tests of the codec.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "actors/protocol/messages.hpp"

namespace troupe::actors::wire {

using protocol::message;
using bytes = std::vector<std::byte>;

// Other values in every field of everything that is made from it, so that two fields that changed
// places, or one that was forgotten, show.
struct numbers {
  std::uint64_t last = 0;
  std::uint64_t u64() { return 0x8000'0000'0000'0000 + ++last; }
  std::uint32_t u32() { return 0x8000'0000 + static_cast<std::uint32_t>(++last); }
  double real() { return static_cast<double>(++last) / 3; }
  float single() { return static_cast<float>(real()); }
  std::string text() { return "text " + std::to_string(++last); }
  hash128 hash() { return {u64(), u64()}; }
  protocol::block_id block() { return {u32(), u32()}; }
  protocol::leaf_loss loss() { return {u32(), real(), real()}; }
  protocol::record_notice notice() {
    const protocol::decision_record record = {.step = u64(),
                                              .updates = u64(),
                                              .skip = true,
                                              .why_skipped = text(),
                                              .scale = single(),
                                              .lr = single(),
                                              .loss = real(),
                                              .grad_norm = real(),
                                              .tokens = real()};
    return {record, false, true, u64(), u64(), u64(), generation(u32()), u32()};
  }
};

// One message of every kind; `length` is that of its texts and lists.
inline std::vector<message> messages_with(std::size_t length) {
  numbers n;
  std::vector<message> all;
  const auto long_text = [&] {
    std::string text = n.text();
    text.resize(length, 'x');
    return text;
  };
  std::vector<protocol::leaf_loss> losses;
  for (std::size_t i = 0; i < length; ++i) losses.push_back(n.loss());
  all.emplace_back(protocol::plan_notice{long_text()});
  all.emplace_back(protocol::bulk_address{bytes(length, std::byte{0xc3})});
  protocol::address_table table;
  for (std::uint32_t i = 0; i < length; ++i) {
    table.addresses.push_back({member_id(i), bytes(i % 7, std::byte{0x3c})});
  }
  all.emplace_back(table);
  all.emplace_back(protocol::ready{false});
  all.emplace_back(protocol::ready{true});
  all.emplace_back(protocol::go{});
  protocol::go without;
  for (std::size_t i = 0; i < length; ++i) without.without_parameters.emplace_back(n.u32());
  without.validate = true;
  all.emplace_back(without);
  all.emplace_back(protocol::collect{generation(n.u32()), generation(n.u32()), long_text()});
  protocol::promise promise;
  promise.next = generation(n.u32());
  promise.of_plan = true;
  promise.seen = n.u64();
  for (std::size_t i = 0; i < std::min<std::size_t>(length, 20); ++i) {
    promise.records.push_back(n.notice());
    promise.records.back().last = i % 2 == 0;
  }
  for (std::size_t i = 0; i < length; ++i) {
    promise.blocks.push_back({n.block(), n.u64(), i % 2 == 0, i % 3 == 0});
  }
  all.emplace_back(promise);
  promise.of_plan = false;
  all.emplace_back(promise);
  all.emplace_back(protocol::promise_refused{generation(n.u32()), generation(n.u32())});
  for (const bool proven : {false, true}) {
    all.emplace_back(
        protocol::member_gone{member_id(n.u32()), incarnation(n.u64()), proven, long_text()});
  }
  protocol::copy_plan copies;
  for (std::size_t i = 0; i < length; ++i) copies.copies.push_back({n.block(), member_id(n.u32())});
  all.emplace_back(copies);
  all.emplace_back(protocol::copy_wish{n.block()});
  all.emplace_back(protocol::copies_held{});
  all.emplace_back(protocol::sum_held{n.u64(), n.block(), n.hash()});
  protocol::vote vote;
  vote.step = n.u64();
  for (std::size_t i = 0; i < length; ++i) vote.sums.push_back({n.block(), n.hash(), n.real()});
  vote.losses = losses;
  vote.facts = {n.real(), n.real(), n.real(), n.real(), n.real(),
                n.real(), n.u64(),  n.u64(),  n.u64(),  n.u64()};
  all.emplace_back(vote);
  protocol::record_notice notice = n.notice();
  notice.record.why_skipped = long_text();
  all.emplace_back(notice);
  notice.record.skip = false;
  notice.last = true;
  notice.validate = false;
  all.emplace_back(notice);
  all.emplace_back(protocol::recorded{n.u64()});
  all.emplace_back(protocol::validation_share{n.u64(), losses});
  all.emplace_back(protocol::save_request{n.u64(), long_text()});
  protocol::save_share share;
  share.step = n.u64();
  for (std::size_t i = 0; i < length; ++i)
    share.blocks.push_back({n.block(), n.hash(), n.hash(), n.hash(), n.hash(), n.hash()});
  share.failure = -74;
  share.message = long_text();
  share.not_finite_in = long_text();
  all.emplace_back(share);
  share.not_finite_in.clear();
  all.emplace_back(share);
  for (int p = 0; p <= static_cast<int>(protocol::phase::ending); ++p)
    all.emplace_back(protocol::heartbeat{n.u64(), static_cast<protocol::phase>(p)});
  all.emplace_back(protocol::stop_wish{long_text(), true});
  all.emplace_back(protocol::stop_wish{"drained", false, true});
  all.emplace_back(protocol::farewell{std::numeric_limits<int>::min(), long_text()});
  return all;
}

inline std::vector<protocol::bulk_header> some_headers() {
  numbers n;
  return {protocol::node_header{n.u64(), {n.block(), 0xa5, {n.u32(), n.u32()}}},
          protocol::sum_header{n.u64(), n.block(), n.hash()},
          protocol::parameters_header{n.block(), n.notice()}, protocol::parameters_header{},
          protocol::state_header{n.block(), n.u64(), n.hash()}};
}

}  // namespace troupe::actors::wire
