// Numbers that mean different things have different types, so that none is taken for another.
#pragma once

#include <compare>
#include <cstdint>

namespace troupe {

template <class Tag, class Rep>
struct numbered {
  Rep value{};
  constexpr numbered() = default;
  constexpr explicit numbered(Rep v) : value(v) {}
  friend constexpr auto operator<=>(const numbered&, const numbered&) = default;
};

// A member's slot in the world, from 0; a successor in the same slot has the same number.
using member_id = numbered<struct member_tag, std::uint32_t>;
// One life of a member: unique in the run, higher for a later life of the same slot.
using incarnation = numbered<struct incarnation_tag, std::uint64_t>;
// A plan's number in the chain.
using generation = numbered<struct generation_tag, std::uint32_t>;

}  // namespace troupe
