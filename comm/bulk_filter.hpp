// A bulk lane on which messages wait or change; see filtered_transport.hpp. Gives its own tokens,
// so that it knows until when the memory of each message is needed.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "comm/filter_state.hpp"

namespace troupe::comm {

class bulk_filter final : public bulk_lane, public bulk_handler {
 public:
  bulk_filter(std::shared_ptr<filter_state> shared, bulk_handler& handler);
  ~bulk_filter() override;
  bulk_filter(const bulk_filter&) = delete;
  bulk_filter& operator=(const bulk_filter&) = delete;

  status open(transport& over, generation number);

  const bytes& local_address() const override { return inner_->local_address(); }
  status connect(member_id to, bytes_view at) override { return inner_->connect(to, at); }
  void send(member_id to, bytes_view header, bytes_view payload, std::uint64_t token) override;

  std::optional<std::span<std::byte>> place(bytes_view header, std::size_t size) override;
  void arrived(bytes_view header, std::span<std::byte> payload) override;
  void sent(std::uint64_t own) override;

  bool release();
  std::optional<time_since_start> next_due() const;

 private:
  struct message {
    member_id to;
    bytes header;
    bytes_view payload;
    std::uint64_t token = 0;
    bytes spoilt;  // what goes out instead of the payload
    time_since_start due{};
    bool waits = false;
  };

  std::shared_ptr<filter_state> shared_;
  bulk_handler& handler_;
  std::map<std::uint64_t, message> messages_;  // given and not yet sent, in order
  std::uint64_t next_ = 1;
  std::unique_ptr<bulk_lane> inner_;  // ends before what it reads
};

}  // namespace troupe::comm
