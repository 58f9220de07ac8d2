#include "comm/ucx_control_lane.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto look_every = 1ms;
constexpr auto leave_limit = contact_limit;
constexpr auto last_moments = 500ms;

std::uint64_t random_token() {
  std::uint64_t token = 0;
  ensure(::getrandom(&token, sizeof token, 0) == sizeof token, "the system gives no random bytes");
  return token;
}

// token (8), length of the name (2), name, address of the worker (none from the one who calls).
struct greeting_text {
  std::uint64_t token = 0;
  std::string name;
  bytes_view worker;
};

std::optional<greeting_text> read_greeting(bytes_view record) {
  greeting_text text;
  std::uint16_t size = 0;
  if (record.size() < sizeof text.token + sizeof size) return std::nullopt;
  std::memcpy(&text.token, record.data(), sizeof text.token);
  std::memcpy(&size, record.data() + sizeof text.token, sizeof size);
  record = record.subspan(sizeof text.token + sizeof size);
  if (size > record.size()) return std::nullopt;
  text.name.assign(reinterpret_cast<const char*>(record.data()), size);
  text.worker = record.subspan(size);
  return text;
}

}  // namespace

ucx_control_lane::ucx_control_lane(std::shared_ptr<ucx_context> context,
                                   std::unique_ptr<contacts> meeting,
                                   std::shared_ptr<traffic> count, clock_source& clock,
                                   std::function<void(int fd)> watch)
    : context_(std::move(context)),
      contacts_(std::move(meeting)),
      count_(std::move(count)),
      clock_(clock),
      watch_(std::move(watch)) {}

ucx_control_lane::~ucx_control_lane() {
  const time_since_start limit = clock_.now() + last_moments;
  const auto leaving = [&] {
    return std::ranges::any_of(links_,
                               [](const auto& l) { return l.second.now == phase::leaving; });
  };
  while (leaving() && clock_.now() < limit) {
    look_at_contacts();
    poll();
    events_.clear();
  }
}

link_id ucx_control_lane::connect(const address& to) {
  const link_id id{next_link_++};
  const std::uint64_t token = random_token();
  state& one = add(id, contacts_->call(to, greeting(token, nullptr)));
  one.own_token = token;
  one.peer = to_text(to);
  return id;
}

ucx_control_lane::state& ucx_control_lane::add(link_id id, contact_id contact) {
  state& one = links_[id];
  one.contact = contact;
  by_contact_.emplace(contact, id);
  return one;
}

ucx_control_lane::state* ucx_control_lane::find(link_id id) {
  const auto found = links_.find(id);
  return found == links_.end() ? nullptr : &found->second;
}

bytes ucx_control_lane::greeting(std::uint64_t token, const ucx_link* wire) const {
  const std::string name = to_text(local_address());
  const auto size = static_cast<std::uint16_t>(name.size());
  bytes text(sizeof token + sizeof size + size);
  std::memcpy(text.data(), &token, sizeof token);
  std::memcpy(text.data() + sizeof token, &size, sizeof size);
  std::memcpy(text.data() + sizeof token + sizeof size, name.data(), size);
  if (wire != nullptr) text.insert(text.end(), wire->address().begin(), wire->address().end());
  return text;
}

void ucx_control_lane::send(link_id link, bytes frame) {
  ensure(frame.size() <= max_frame_bytes, "a control frame is too long");
  count_->control_bytes += frame.size();
  ++count_->control_frames;
  state* one = find(link);
  if (one == nullptr || one->silent || one->now == phase::ending) return;
  std::size_t unsent = 0;
  if (one->now == phase::open) {
    one->wire->send(ucx_link::kind::frame, std::move(frame));
    unsent = one->wire->unsent_bytes();
  } else {
    unsent = one->waiting_bytes += frame.size();
    one->waiting.push_back(std::move(frame));
  }
  if (unsent > max_unsent_bytes)
    lose(link, *one,
         fmt::format("it does not take what it is sent, and {} MiB are waiting", unsent >> 20));
}

void ucx_control_lane::close(link_id link) {
  state* one = find(link);
  if (one == nullptr || one->silent) return;
  one->silent = true;
  if (one->now == phase::open) return say_goodbye(*one);
  // With frames that wait for it the link is made first.
  if (one->now != phase::calling || one->waiting.empty()) remove(link);
}

void ucx_control_lane::say_goodbye(state& one) {
  one.now = phase::leaving;
  one.limit = clock_.now() + leave_limit;
  one.wire->send(ucx_link::kind::goodbye, {});
}

void ucx_control_lane::take(contact_news news) {
  using kind = contact_news::kind;
  if (news.what == kind::called) return answer(news.id, news.record);
  const auto found = by_contact_.find(news.id);
  if (found == by_contact_.end()) return;
  const link_id id = found->second;
  state& one = links_.at(id);
  if (news.what == kind::answered) return call_back(id, one, news.record);
  if (news.what == kind::failed) return end(id, one, std::move(news.why));
  if (one.wire) {
    // What the peer sent before its end may still be in UCX's hands.
    for (int i = 0; i < 10000 && one.wire->progress(); ++i) {
    }
    collect(id, one);
    if (find(id) == nullptr) return;
  }
  lose(id, one, news.why);
}

status ucx_control_lane::open_wire(state& one) {
  result<std::unique_ptr<ucx_link>> wire = ucx_link::open(context_, one.own_token);
  if (!wire) return wire.failure();
  one.wire = std::move(*wire);
  watch_(one.wire->worker().event_fd());
  return done{};
}

void ucx_control_lane::answer(contact_id contact, const bytes& their_greeting) {
  const auto text = read_greeting(their_greeting);
  if (!text) return contacts_->drop(contact);
  const link_id id{next_link_++};
  state& one = add(id, contact);
  one.now = phase::expecting;
  one.limit = clock_.now() + contact_limit;
  one.peer = text->name;
  one.own_token = random_token();
  one.peer_token = text->token;
  if (!open_wire(one)) return remove(id);
  contacts_->answer(contact, greeting(one.own_token, one.wire.get()));
}

void ucx_control_lane::call_back(link_id id, state& one, const bytes& their_greeting) {
  const auto text = read_greeting(their_greeting);
  if (!text || text->worker.empty()) return lose(id, one, "it does not greet as it should");
  status ready = open_wire(one);
  if (ready) ready = one.wire->connect(text->worker, text->token);
  if (!ready) return lose(id, one, ready.failure().message);
  const bytes& address = one.wire->address();
  one.wire->send(ucx_link::kind::hello, address);
  opened(id, one, true);
}

void ucx_control_lane::opened(link_id id, state& one, bool we_connected) {
  one.now = phase::open;
  if (!one.silent) events_.push_back({event::kind::opened, id, we_connected, {}, {}});
  for (bytes& frame : std::exchange(one.waiting, {}))
    one.wire->send(ucx_link::kind::frame, std::move(frame));
  if (one.silent) say_goodbye(one);
}

// Takes what a wire has brought; may remove the link.
void ucx_control_lane::collect(link_id id, state& one) {
  for (ucx_link::message& message : std::exchange(one.wire->received(), {})) {
    if (one.now == phase::expecting) {
      if (message.what != ucx_link::kind::hello) return lose(id, one, "it said no hello");
      if (status ready = one.wire->connect(message.content, one.peer_token); !ready)
        return lose(id, one, ready.failure().message);
      opened(id, one, false);
    } else if (message.what == ucx_link::kind::goodbye) {
      return end(id, one, fmt::format("{} closed the link", one.peer));
    } else if (message.what != ucx_link::kind::frame) {
      return lose(id, one, "it sent what is not foreseen");
    } else if (!one.silent) {
      events_.push_back({event::kind::frame, id, false, std::move(message.content), {}});
    }
  }
  if (one.wire->trouble()) lose(id, one, *one.wire->trouble());
}

void ucx_control_lane::lose(link_id id, state& one, const std::string& why) {
  end(id, one, fmt::format("the link to {} is lost: {}", one.peer, why));
}

// The link is over; its handler hears so after all that came before.
void ucx_control_lane::end(link_id id, state& one, std::string why) {
  if (one.now == phase::ending) return;
  if (one.silent || one.now == phase::expecting) return remove(id);
  one.now = phase::ending;
  events_.push_back({event::kind::closed, id, false, {}, std::move(why)});
}

void ucx_control_lane::remove(link_id id) {
  const state* one = find(id);
  if (one == nullptr) return;
  contacts_->drop(one->contact);
  by_contact_.erase(one->contact);
  links_.erase(id);
}

bool ucx_control_lane::poll() {
  bool moved = false;
  const time_since_start now = clock_.now();
  if (now >= next_look_) {
    next_look_ = now + look_every;
    for (contact_news& news : contacts_->progress()) {
      moved = true;
      take(std::move(news));
    }
  }
  for (auto at = links_.begin(); at != links_.end();) {
    const link_id id = at->first;
    state& one = at->second;
    ++at;  // collect() may remove this one, and only this one
    if (!one.wire || one.now == phase::ending) continue;
    moved |= one.wire->progress();
    if (!one.wire->received().empty() || one.wire->trouble()) {
      moved = true;
      collect(id, one);
    } else if (has_limit(one) && one.limit <= now) {
      remove(id);
    }
  }
  return moved || !events_.empty();
}

bool ucx_control_lane::arm() {
  return std::ranges::all_of(links_, [](auto& entry) {
    state& one = entry.second;
    return !one.wire || one.now == phase::ending || one.wire->worker().arm();
  });
}

bool ucx_control_lane::progress() {
  const bool moved = poll();
  deliver();
  return moved;
}

void ucx_control_lane::deliver() {
  // What handlers cause is delivered by the next progress().
  for (std::size_t left = events_.size(); left > 0; --left) {
    const event next = std::move(events_.front());
    events_.pop_front();
    const state* one = find(next.to);
    if (one == nullptr || one->silent) continue;
    switch (next.what) {
      case event::kind::opened:
        handler_->link_opened(next.to, next.we_connected);
        break;
      case event::kind::frame:
        handler_->frame_received(next.to, next.frame);
        break;
      case event::kind::closed:
        remove(next.to);
        handler_->link_closed(next.to, next.why);
        break;
    }
  }
}

std::optional<time_since_start> ucx_control_lane::next_limit() const {
  std::optional<time_since_start> next = contacts_->next_limit();
  for (const auto& [id, one] : links_) {
    if (has_limit(one)) next = next ? std::min(*next, one.limit) : one.limit;
  }
  return next;
}

}  // namespace troupe::comm
