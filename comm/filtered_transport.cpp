#include "comm/filtered_transport.hpp"

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <set>

#include "comm/wire/envelope.hpp"
#include "comm/wire/handshake_message.hpp"

namespace troupe::comm {
namespace {

// What was said before is kept for replays, as far as it is short.
constexpr std::size_t kept_frames = 256, kept_bytes = 16 << 10;

void flip(bytes& of, const std::vector<std::uint64_t>& bits) {
  for (const std::uint64_t bit : bits) of[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
}

}  // namespace

struct filtered_transport::state {
  explicit state(filter_settings s) : settings(std::move(s)) {}

  time_since_start now() const { return settings.clock.now(); }
  void will_be_due(time_since_start when) const {
    if (settings.wake_at) settings.wake_at(when);
  }
  std::string name_of(message_plane plane, bytes_view what) const {
    return settings.name_of && faults.asks_for_names() ? settings.name_of(plane, what) : "";
  }

  filter_settings settings;
  message_faults faults;
  std::set<bulk_filter*> lanes;
};

// --- control ---

class filtered_transport::control_filter final : public control_lane, public control_handler {
 public:
  control_filter(control_lane& inner, state& shared) : inner_(inner), shared_(shared) {}

  void listen(control_handler& handler) { handler_ = &handler; }

  const address& local_address() const override { return inner_.local_address(); }
  link_id connect(const address& to) override {
    const link_id link = inner_.connect(to);
    if (const auto known = at_address_.find(to_text(to)); known != at_address_.end()) {
      peers_[link] = known->second;
    } else {
      dialled_[link] = to_text(to);
    }
    return link;
  }
  void send(link_id link, bytes frame) override {
    const result<envelope> what = decode(frame);
    if (what) learn(link, what->to, *what, false);
    const std::optional<member_id> to = peer_of(link);
    message_fate fate;
    if (!shared_.faults.idle()) {
      const bool data = what && what->kind == frame_kind::data;
      const std::string name = data ? shared_.name_of(message_plane::control, what->payload) : "";
      fate = shared_.faults.decide(message_plane::control, to, name, frame.size());
    }
    if (fate.replay) replay(link, to, what ? what->plan : generation());
    if (what && what->kind == frame_kind::data && to) keep(*to, what->plan, frame);
    if (fate.lost) return;
    flip(frame, fate.flipped);
    if (fate.again) put(link, fate, frame);
    put(link, fate, std::move(frame));
  }
  void close(link_id link) override {
    // What is only late is still delivered; a cut holds it for ever.
    if (const auto waiting = held_.find(link); waiting != held_.end()) {
      if (!shared_.faults.cuts(message_plane::control, peer_of(link))) {
        for (held& h : waiting->second) inner_.send(link, std::move(h.frame));
      }
    }
    forget(link);
    inner_.close(link);
  }

  void link_opened(link_id link, bool we_connected) override {
    handler_->link_opened(link, we_connected);
  }
  void frame_received(link_id link, bytes_view frame) override {
    if (!peers_.contains(link)) {
      if (const result<envelope> what = decode(frame)) learn(link, what->from, *what, true);
    }
    handler_->frame_received(link, frame);
  }
  void link_closed(link_id link, const std::string& why) override {
    forget(link);
    handler_->link_closed(link, why);
  }

  // True if anything went out.
  bool release() {
    bool any = false;
    for (auto& [link, waiting] : held_) {
      if (waiting.empty() || shared_.faults.cuts(message_plane::control, peer_of(link))) continue;
      bool stalled = false;
      std::deque<held> rest;
      for (held& h : waiting) {
        const bool due = h.due <= shared_.now();
        if (!h.overtaken) stalled |= !due;
        if (due && (h.overtaken || !stalled)) {
          inner_.send(link, std::move(h.frame));
          any = true;
        } else {
          rest.push_back(std::move(h));
        }
      }
      waiting = std::move(rest);
    }
    return any;
  }
  std::optional<time_since_start> next_due() const {
    std::optional<time_since_start> next;
    for (const auto& [link, waiting] : held_) {
      if (waiting.empty() || shared_.faults.cuts(message_plane::control, peer_of(link))) continue;
      for (const held& h : waiting) next = next ? std::min(*next, h.due) : h.due;
    }
    return next;
  }

 private:
  struct held {
    time_since_start due;
    bool overtaken;
    bytes frame;
  };
  struct said {
    generation plan;
    bytes frame;
  };

  std::optional<member_id> peer_of(link_id link) const {
    const auto found = peers_.find(link);
    return found == peers_.end() ? std::nullopt : std::optional(found->second);
  }

  void learn(link_id link, member_id other, const envelope& what, bool theirs) {
    if (what.kind == frame_kind::handshake) {
      if (!theirs) return;  // to whom, nobody knows before the answer
      const auto hello = decode_handshake(what.payload);
      const bool named = hello && (hello->what == handshake_message::type::hello ||
                                   hello->what == handshake_message::type::challenge);
      if (!named || !hello->who.wish) return;
      other = *hello->who.wish;
      at_address_[hello->who.address] = other;
    }
    if (peers_.insert_or_assign(link, other).second) {
      if (const auto at = dialled_.find(link); at != dialled_.end()) {
        at_address_[at->second] = other;
        dialled_.erase(at);
      }
    }
  }

  void keep(member_id to, generation plan, const bytes& frame) {
    if (frame.size() > kept_bytes) return;
    std::deque<said>& all = said_[to];
    all.push_back({plan, frame});
    if (all.size() > kept_frames) all.pop_front();
  }

  void replay(link_id link, std::optional<member_id> to, generation plan) {
    std::deque<said>* all = to ? &said_[*to] : nullptr;
    if (all == nullptr || all->empty() || all->front().plan >= plan) {
      return shared_.faults.nothing_to_replay(to);
    }
    put(link, {}, std::move(all->front().frame));
    all->pop_front();
  }

  void put(link_id link, const message_fate& fate, bytes frame) {
    const auto waiting = held_.find(link);
    const bool behind =
        waiting != held_.end() &&
        std::ranges::any_of(waiting->second, [](const held& h) { return !h.overtaken; });
    if (!fate.cut && fate.late.count() == 0 && !behind) {
      return inner_.send(link, std::move(frame));
    }
    const time_since_start due = shared_.now() + fate.late;
    held_[link].push_back({due, fate.overtaken, std::move(frame)});
    if (!fate.cut) shared_.will_be_due(due);
  }

  void forget(link_id link) {
    held_.erase(link);
    peers_.erase(link);
    dialled_.erase(link);
  }

  control_lane& inner_;
  state& shared_;
  control_handler* handler_ = nullptr;
  std::map<link_id, member_id> peers_;
  std::map<link_id, std::string> dialled_;  // of links whose other end has not spoken yet
  std::map<std::string, member_id> at_address_;
  std::map<link_id, std::deque<held>> held_;
  std::map<member_id, std::deque<said>> said_;
};

// --- bulk ---

class filtered_transport::bulk_filter final : public bulk_lane, public bulk_handler {
 public:
  bulk_filter(std::shared_ptr<state> shared, bulk_handler& handler)
      : shared_(std::move(shared)), handler_(handler) {
    shared_->lanes.insert(this);
  }
  ~bulk_filter() override {
    shared_->lanes.erase(this);
    inner_.reset();
  }
  bulk_filter(const bulk_filter&) = delete;
  bulk_filter& operator=(const bulk_filter&) = delete;

  status open(transport& over, generation number) {
    auto lane = over.open_bulk(number, *this);
    if (!lane) return lane.failure();
    inner_ = std::move(*lane);
    return done{};
  }

  const bytes& local_address() const override { return inner_->local_address(); }
  status connect(member_id to, bytes_view at) override { return inner_->connect(to, at); }
  void send(member_id to, bytes_view header, bytes_view payload, std::uint64_t token) override {
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

  std::optional<std::span<std::byte>> place(bytes_view header, std::size_t size) override {
    return handler_.place(header, size);
  }
  void arrived(bytes_view header, std::span<std::byte> payload) override {
    handler_.arrived(header, payload);
  }
  void sent(std::uint64_t own) override {
    const auto found = messages_.find(own);
    ensure(found != messages_.end(), "a bulk message was sent that nobody had given");
    const std::uint64_t token = found->second.token;
    messages_.erase(found);
    handler_.sent(token);
  }

  bool release() {
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
  std::optional<time_since_start> next_due() const {
    std::optional<time_since_start> next;
    for (const auto& [own, m] : messages_) {
      if (!m.waits || shared_->faults.cuts(message_plane::bulk, m.to)) continue;
      next = next ? std::min(*next, m.due) : m.due;
    }
    return next;
  }

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

  std::shared_ptr<state> shared_;
  bulk_handler& handler_;
  std::map<std::uint64_t, message> messages_;  // given and not yet sent, in order
  std::uint64_t next_ = 1;
  std::unique_ptr<bulk_lane> inner_;  // ends before what it reads
};

// --- both ---

filtered_transport::filtered_transport(std::unique_ptr<transport> inner, filter_settings settings)
    : inner_(std::move(inner)),
      state_(std::make_shared<state>(std::move(settings))),
      control_(std::make_unique<control_filter>(inner_->control(), *state_)) {}

filtered_transport::~filtered_transport() = default;

message_faults& filtered_transport::faults() { return state_->faults; }

void filtered_transport::start(control_handler& handler) {
  control_->listen(handler);
  inner_->start(*control_);
}

control_lane& filtered_transport::control() { return *control_; }

result<std::unique_ptr<bulk_lane>> filtered_transport::open_bulk(generation number,
                                                                 bulk_handler& handler) {
  auto lane = std::make_unique<bulk_filter>(state_, handler);
  if (status opened = lane->open(*inner_, number); !opened) return opened.failure();
  return std::unique_ptr<bulk_lane>(std::move(lane));
}

bool filtered_transport::progress() {
  bool any = control_->release();
  // A handler may end a lane or open one.
  for (bulk_filter* lane : std::vector(state_->lanes.begin(), state_->lanes.end())) {
    any |= lane->release();
  }
  return inner_->progress() || any;
}

void filtered_transport::wait(std::chrono::nanoseconds at_most, waiting how) {
  std::optional<time_since_start> next = control_->next_due();
  for (const bulk_filter* lane : state_->lanes) {
    if (const auto due = lane->next_due()) next = next ? std::min(*next, *due) : due;
  }
  if (next) at_most = std::min(at_most, *next - state_->now());
  if (at_most.count() > 0) inner_->wait(at_most, how);
}

void filtered_transport::wake() { inner_->wake(); }
traffic filtered_transport::sent() const { return inner_->sent(); }

}  // namespace troupe::comm
