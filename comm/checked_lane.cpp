#include "comm/checked_lane.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/base/hash.hpp"

namespace troupe::comm {
namespace {

constexpr std::size_t hash_bytes_size = 16;

std::array<std::byte, 8> checksum(bytes_view of) {
  const std::uint64_t sum = hash64_bytes(of);
  std::array<std::byte, 8> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(sum >> (8 * i));
  return all;
}

}  // namespace

result<std::unique_ptr<checked_lane>> checked_lane::open(transport& over, generation number,
                                                         bulk_handler& handler,
                                                         damage_told damaged) {
  std::unique_ptr<checked_lane> lane(new checked_lane(handler, std::move(damaged)));
  auto inner = over.open_bulk(number, *lane);
  if (!inner) return inner.failure();
  lane->inner_ = std::move(*inner);
  return lane;
}

void checked_lane::send(member_id to, bytes_view header, bytes_view payload, std::uint64_t token) {
  bytes whole(header.begin(), header.end());
  const auto hash = hash_bytes(payload).canonical();
  whole.insert(whole.end(), hash.begin(), hash.end());
  const auto sum = checksum(whole);
  whole.insert(whole.end(), sum.begin(), sum.end());
  inner_->send(to, whole, payload, token);
}

std::optional<std::span<std::byte>> checked_lane::place(bytes_view header, std::size_t size) {
  const bool sound = header.size() >= bulk_check_bytes &&
                     std::ranges::equal(checksum(header.first(header.size() - 8)), header.last(8));
  if (!sound) {
    damaged_(fmt::format("the header of a transfer of {} bytes was damaged on the way", size));
    return std::nullopt;
  }
  return handler_.place(header.first(header.size() - bulk_check_bytes), size);
}

void checked_lane::arrived(bytes_view header, std::span<std::byte> payload) {
  const bytes_view said = header.last(bulk_check_bytes).first(hash_bytes_size);
  if (!std::ranges::equal(hash_bytes(payload).canonical(), said)) {
    return damaged_(
        fmt::format("a transfer of {} bytes was damaged on the way: it arrived with another hash "
                    "than it was sent with",
                    payload.size()));
  }
  handler_.arrived(header.first(header.size() - bulk_check_bytes), payload);
}

}  // namespace troupe::comm
