// A bulk lane that notices damage: every message carries the hash of its payload behind its header,
// and a checksum of both headers behind that. What does not fit is not delivered; whoever opened
// the lane is told, and has to see that it comes again: the sender's memory has long been given
// back.
//
// Gradients and parameters are the run. Fabrics have checks of their own, and still one wrong bit
// in some 10^14 passes them in the field, memory between the checks not counted; in a sum or a
// parameter it would stay for ever, on every member alike, and nobody could find it. The hash costs
// each side about 0.1 ms per MB on the thread that sends, little beside what produced the numbers.
// Not chosen: hashing as a job of the device, which would delay the first byte by a job's wait.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/transport.hpp"

namespace troupe::comm {

class checked_lane final : public bulk_lane, private bulk_handler {
 public:
  // Why what arrived was not delivered; called from progress().
  using damage_told = std::function<void(const std::string& why)>;

  static result<std::unique_ptr<checked_lane>> open(transport& over, generation number,
                                                    bulk_handler& handler, damage_told damaged);

  const bytes& local_address() const override { return inner_->local_address(); }
  status connect(member_id to, bytes_view address) override { return inner_->connect(to, address); }
  void send(member_id to, bytes_view header, bytes_view payload, std::uint64_t token) override;

 private:
  checked_lane(bulk_handler& handler, damage_told damaged)
      : handler_(handler), damaged_(std::move(damaged)) {}

  std::optional<std::span<std::byte>> place(bytes_view header, std::size_t size) override;
  void arrived(bytes_view header, std::span<std::byte> payload) override;
  void sent(std::uint64_t token) override { handler_.sent(token); }

  bulk_handler& handler_;
  damage_told damaged_;
  std::unique_ptr<bulk_lane> inner_;
};

// What stands behind the header: the payload's hash, and the checksum of all before it.
inline constexpr std::size_t bulk_check_bytes = 16 + 8;

}  // namespace troupe::comm
