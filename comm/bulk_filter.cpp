#include "comm/bulk_filter.hpp"

#include <algorithm>

namespace troupe::comm {

bulk_filter::bulk_filter(std::shared_ptr<filter_state> shared, bulk_handler& handler)
    : shared_(std::move(shared)), handler_(handler) {
  shared_->lanes.insert(this);
}

bulk_filter::~bulk_filter() {
  shared_->lanes.erase(this);
  inner_.reset();
}

status bulk_filter::open(transport& over, generation number) {
  auto lane = over.open_bulk(number, *this);
  if (!lane) return lane.failure();
  inner_ = std::move(*lane);
  return done{};
}

void bulk_filter::send(member_id to, bytes_view header, bytes_view payload, std::uint64_t token) {
  message_fate fate;
  if (!shared_->faults.idle()) {
    const std::string name = shared_->name_of(message_plane::bulk, header);
    fate = shared_->faults.decide(message_plane::bulk, to, name, payload.size());
  }
  const std::uint64_t own = next_++;
  message& m = messages_[own];
  m = {to,
       bytes(header.begin(), header.end()),
       payload,
       token,
       {},
       shared_->now() + fate.late,
       fate.cut || fate.late.count() > 0};
  if (!fate.flipped.empty()) {
    m.spoilt.assign(payload.begin(), payload.end());
    flip(m.spoilt, fate.flipped);
    m.payload = m.spoilt;
  }
  if (!m.waits) return inner_->send(m.to, m.header, m.payload, own);
  if (!fate.cut) shared_->will_be_due(m.due);
}

std::optional<std::span<std::byte>> bulk_filter::place(bytes_view header, std::size_t size) {
  return handler_.place(header, size);
}

void bulk_filter::arrived(bytes_view header, std::span<std::byte> payload) {
  handler_.arrived(header, payload);
}

void bulk_filter::sent(std::uint64_t own) {
  const auto found = messages_.find(own);
  ensure(found != messages_.end(), "a bulk message was sent that nobody had given");
  const std::uint64_t token = found->second.token;
  messages_.erase(found);
  handler_.sent(token);
}

bool bulk_filter::release() {
  bool any = false;
  for (auto& [own, m] : messages_) {
    if (!m.waits || m.due > shared_->now()) continue;
    if (shared_->faults.cuts(message_plane::bulk, m.to)) continue;
    m.waits = false;
    inner_->send(m.to, m.header, m.payload, own);
    any = true;
  }
  return any;
}

std::optional<time_since_start> bulk_filter::next_due() const {
  std::optional<time_since_start> next;
  for (const auto& [own, m] : messages_) {
    if (!m.waits || shared_->faults.cuts(message_plane::bulk, m.to)) continue;
    next = next ? std::min(*next, m.due) : m.due;
  }
  return next;
}

}  // namespace troupe::comm
