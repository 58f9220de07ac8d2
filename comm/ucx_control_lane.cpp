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

// token (8), 1 if this side's worker is in shared memory (1), and three texts, each with its length
// (2) before it: name, shared memory, address of the worker (empty from the one who calls).
struct greeting_text {
  std::uint64_t token = 0;
  bool this_host = false;
  std::string name, memory;
  bytes_view worker;
};

void put_text(bytes& to, bytes_view text) {
  const auto size = static_cast<std::uint16_t>(std::min<std::size_t>(text.size(), 0xffff));
  to.push_back(static_cast<std::byte>(size));
  to.push_back(static_cast<std::byte>(size >> 8));
  to.insert(to.end(), text.begin(), text.begin() + size);
}

std::optional<bytes_view> take_text(bytes_view& from) {
  if (from.size() < 2) return std::nullopt;
  const std::size_t size =
      std::to_integer<std::size_t>(from[0]) | std::to_integer<std::size_t>(from[1]) << 8;
  if (from.size() < 2 + size) return std::nullopt;
  const bytes_view text = from.subspan(2, size);
  from = from.subspan(2 + size);
  return text;
}

bytes_view as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string as_text(bytes_view text) {
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

std::optional<greeting_text> read_greeting(bytes_view record) {
  greeting_text text;
  if (record.size() < 9) return std::nullopt;
  std::memcpy(&text.token, record.data(), 8);
  text.this_host = record[8] != std::byte{0};
  record = record.subspan(9);
  const auto name = take_text(record), memory = take_text(record), worker = take_text(record);
  if (!name || !memory || !worker || !record.empty()) return std::nullopt;
  text.name = as_text(*name);
  text.memory = as_text(*memory);
  text.worker = *worker;
  return text;
}

}  // namespace

ucx_control_lane::ucx_control_lane(control_contexts contexts, std::unique_ptr<contacts> meeting,
                                   std::shared_ptr<traffic> count, clock_source& clock,
                                   std::function<void(int fd)> watch)
    : contexts_(std::move(contexts)),
      own_memory_(contexts_.this_host ? name_of_shared_memory() : ""),
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
  state& one = add(id, contacts_->call(to, greeting(token, nullptr, false)));
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

bytes ucx_control_lane::greeting(std::uint64_t token, const ucx_link* wire, bool this_host) const {
  bytes text(9);
  std::memcpy(text.data(), &token, 8);
  text[8] = this_host ? std::byte{1} : std::byte{0};
  put_text(text, as_bytes(to_text(local_address())));
  put_text(text, as_bytes(own_memory_));
  put_text(text, wire != nullptr ? bytes_view(wire->address()) : bytes_view());
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

status ucx_control_lane::open_wire(state& one, bool this_host) {
  const std::shared_ptr<ucx_context>& context = this_host ? contexts_.this_host : contexts_.network;
  if (!context)
    return error{exit_code::bad_config, "it uses shared memory, which UCX_TLS excludes here"};
  result<std::unique_ptr<ucx_link>> wire = ucx_link::open(context, one.own_token);
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
  const bool this_host = !own_memory_.empty() && text->memory == own_memory_;
  if (!open_wire(one, this_host)) return remove(id);
  contacts_->answer(contact, greeting(one.own_token, one.wire.get(), this_host));
}

void ucx_control_lane::call_back(link_id id, state& one, const bytes& their_greeting) {
  const auto text = read_greeting(their_greeting);
  if (!text || text->worker.empty()) return lose(id, one, "it does not greet as it should");
  status ready = open_wire(one, text->this_host);
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
