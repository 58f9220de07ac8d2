#include "comm/ucx_control_lane.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;

constexpr unsigned control_message = 1;
constexpr auto look_every = 1ms;
constexpr auto leave_limit = contact_limit;
constexpr auto last_moments = 500ms;

std::uint64_t random_token() {
  std::uint64_t token = 0;
  ensure(::getrandom(&token, sizeof token, 0) == sizeof token, "the system gives no random bytes");
  return token;
}

// token (8), length of the name (2), name, UCX address.
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
  if (size >= record.size()) return std::nullopt;
  text.name.assign(reinterpret_cast<const char*>(record.data()), size);
  text.worker = record.subspan(size);
  return text;
}

}  // namespace

result<std::unique_ptr<ucx_control_lane>> ucx_control_lane::open(
    std::shared_ptr<ucx_context> context, std::unique_ptr<contacts> meeting,
    std::shared_ptr<traffic> count, clock_source& clock) {
  std::unique_ptr<ucx_control_lane> lane(
      new ucx_control_lane(std::move(meeting), std::move(count), clock));
  result<std::unique_ptr<ucx_worker>> worker = ucx_worker::open(std::move(context));
  if (!worker) return worker.failure();
  lane->worker_ = std::move(*worker);
  if (status set = lane->worker_->receive(control_message, announce, lane.get()); !set)
    return set.failure();
  return lane;
}

ucx_control_lane::~ucx_control_lane() {
  const time_since_start limit = clock_.now() + last_moments;
  const auto leaving = [&] {
    return std::ranges::any_of(links_,
                               [](const auto& l) { return l.second.now == phase::leaving; });
  };
  while (worker_ && leaving() && clock_.now() < limit) {
    look_at_contacts();
    poll();
    events_.clear();
    end_lost();
  }
  ended_ = true;
}

link_id ucx_control_lane::connect(const address& to) {
  const link_id id{next_link_++};
  const std::uint64_t token = random_token();
  state& one = add(id, contacts_->call(to, greeting(token)));
  one.own_token = token;
  one.peer = to_text(to);
  by_token_.emplace(token, id);
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

bytes ucx_control_lane::greeting(std::uint64_t token) const {
  const std::string name = to_text(local_address());
  const auto size = static_cast<std::uint16_t>(name.size());
  bytes text(sizeof token + sizeof size + size);
  std::memcpy(text.data(), &token, sizeof token);
  std::memcpy(text.data() + sizeof token, &size, sizeof size);
  std::memcpy(text.data() + sizeof token + sizeof size, name.data(), size);
  text.insert(text.end(), worker_->address().begin(), worker_->address().end());
  return text;
}

void ucx_control_lane::send(link_id link, bytes frame) {
  ensure(frame.size() <= max_frame_bytes, "a control frame is too long");
  count_->control_bytes += frame.size() + sizeof(prefix);
  ++count_->control_frames;
  auto* one = find(link);
  if (one == nullptr || one->silent || one->ending) return;
  if (one->now == phase::open) return post(link, *one, std::move(frame), false);
  one->unsent_bytes += frame.size();
  one->waiting.push_back(std::move(frame));
  if (one->unsent_bytes > max_unsent_bytes)
    lost_.push_back({link, "it has not taken what waits for it, which got too much"});
}

void ucx_control_lane::post(link_id id, state& one, bytes frame, bool goodbye) {
  outgoing& message = sending_.emplace_back();
  message.place = std::prev(sending_.end());
  message.owner = this;
  message.to = id;
  message.before = {.token = one.peer_token, .number = one.sent++, .goodbye = goodbye ? 1u : 0u};
  message.frame = std::move(frame);
  ucp_request_param_t how{};
  how.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_AM_SEND_FLAG_EAGER;
  how.cb.send = was_sent;
  how.user_data = &message;
  const ucs_status_ptr_t request =
      ucp_am_send_nbx(one.endpoint, control_message, &message.before, sizeof message.before,
                      message.frame.data(), message.frame.size(), &how);
  if (UCS_PTR_IS_PTR(request)) {
    one.unsent_bytes += message.frame.size();
    if (one.unsent_bytes > max_unsent_bytes)
      lost_.push_back({id, "it does not take what it is sent, and too much is waiting"});
    return;
  }
  if (UCS_PTR_IS_ERR(request)) lost_.push_back({id, ucs_status_string(UCS_PTR_STATUS(request))});
  sending_.pop_back();
}

void ucx_control_lane::was_sent(void* request, ucs_status_t, void* argument) {
  auto& message = *static_cast<outgoing*>(argument);
  ucp_request_free(request);
  ucx_control_lane& self = *message.owner;
  if (self.ended_) return;
  if (state* one = self.find(message.to)) one->unsent_bytes -= message.frame.size();
  self.sending_.erase(message.place);
}

void ucx_control_lane::close(link_id link) {
  auto* one = find(link);
  if (one == nullptr || one->silent) return;
  one->silent = true;
  if (one->ending) return remove(link);
  // With frames that wait for it the link is made first.
  if (one->now == phase::calling) {
    one->close_wanted = true;
    if (one->waiting.empty()) remove(link);
    return;
  }
  say_goodbye(link, *one);
}

void ucx_control_lane::say_goodbye(link_id id, state& one) {
  one.now = phase::leaving;
  one.leave_at = clock_.now() + leave_limit;
  post(id, one, {}, true);
}

void ucx_control_lane::take(contact_news news) {
  using kind = contact_news::kind;
  if (news.what == kind::called) {
    const link_id id{next_link_++};
    state& one = add(id, news.id);
    one.own_token = random_token();
    by_token_.emplace(one.own_token, id);
    // Said before begin(): what is wrong with their greeting must not reach them as silence.
    contacts_->answer(news.id, greeting(one.own_token));
    begin(id, one, news.record);
    return;
  }
  const auto found = by_contact_.find(news.id);
  if (found == by_contact_.end()) return;
  const link_id id = found->second;
  state& one = links_.at(id);
  if (news.what == kind::answered) return begin(id, one, news.record);
  if (news.what == kind::failed) return end(id, one, news.why);
  // What the peer sent before its end may still be in UCX's hands.
  for (int i = 0; i < 1000 && worker_->progress(); ++i) {
  }
  if (one.ending) return;
  end(id, one, fmt::format("the link to {} is lost: {}", one.peer, news.why));
}

void ucx_control_lane::begin(link_id id, state& one, const bytes& their_greeting) {
  const bool we_connected = !one.peer.empty();
  const auto text = read_greeting(their_greeting);
  if (!text) return end(id, one, fmt::format("{} does not greet as it should", one.peer));
  if (!we_connected) one.peer = text->name;
  one.peer_token = text->token;
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(text->worker.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = failed;
  params.err_handler.arg = this;
  if (const ucs_status_t made = ucp_ep_create(worker_->handle(), &params, &one.endpoint);
      made != UCS_OK) {
    one.endpoint = nullptr;
    return end(id, one,
               fmt::format("UCX finds no way to {}: {}", one.peer, ucs_status_string(made)));
  }
  by_endpoint_.emplace(one.endpoint, id);
  one.now = phase::open;
  if (!one.silent) events_.push_back({event::kind::opened, id, we_connected, {}, {}});
  for (bytes& frame : std::exchange(one.early, {})) {
    if (!one.silent) events_.push_back({event::kind::frame, id, false, std::move(frame), {}});
  }
  one.unsent_bytes = 0;
  for (bytes& frame : std::exchange(one.waiting, {})) post(id, one, std::move(frame), false);
  if (one.close_wanted) say_goodbye(id, one);
  if (one.left) lost_.push_back({id, {}});
}

// The link is over; its handler hears so after all that came before.
void ucx_control_lane::end(link_id id, state& one, std::string why) {
  if (one.ending) return;
  if (one.silent) return remove(id);
  one.ending = true;
  events_.push_back({event::kind::closed, id, false, {}, std::move(why)});
}

void ucx_control_lane::remove(link_id id) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  state& one = found->second;
  contacts_->drop(one.contact);
  by_contact_.erase(one.contact);
  by_token_.erase(one.own_token);
  if (one.endpoint != nullptr) {
    by_endpoint_.erase(one.endpoint);
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK;
    how.flags = UCP_EP_CLOSE_FLAG_FORCE;
    how.cb.send = [](void* request, ucs_status_t, void*) { ucp_request_free(request); };
    ucp_ep_close_nbx(one.endpoint, &how);
  }
  links_.erase(id);
}

void ucx_control_lane::failed(void* argument, ucp_ep_h endpoint, ucs_status_t status) {
  auto& self = *static_cast<ucx_control_lane*>(argument);
  if (self.ended_) return;
  const auto found = self.by_endpoint_.find(endpoint);
  if (found != self.by_endpoint_.end())
    self.lost_.push_back({found->second, ucs_status_string(status)});
}

ucs_status_t ucx_control_lane::announce(void* argument, const void* header, std::size_t header_size,
                                        void* data, std::size_t size,
                                        const ucp_am_recv_param_t* how) {
  auto& self = *static_cast<ucx_control_lane*>(argument);
  prefix before{};
  if (self.ended_ || header_size != sizeof before) return UCS_OK;
  std::memcpy(&before, header, sizeof before);
  // A rendezvous is no way to send a frame: its size is seen, its payload is left where it is.
  const bool rendezvous = (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  const auto found = self.by_token_.find(before.token);
  if (found == self.by_token_.end()) return UCS_OK;
  if (size > max_frame_bytes || rendezvous) {
    self.lost_.push_back(
        {found->second, rendezvous ? "it sent a frame in a way that is not foreseen"
                                   : fmt::format("it sent a frame of {} bytes; {} are allowed",
                                                 size, max_frame_bytes)});
    return UCS_OK;
  }
  self.received(before, bytes_view(static_cast<const std::byte*>(data), size));
  return UCS_OK;
}

void ucx_control_lane::received(const prefix& before, bytes_view frame) {
  const link_id id = by_token_.at(before.token);
  state& one = links_.at(id);
  if (one.ending || one.left) return;
  if (before.number != one.received) {
    lost_.push_back(
        {id, fmt::format("its frame {} came where {} was expected", before.number, one.received)});
    return;
  }
  ++one.received;
  if (before.goodbye != 0) {
    one.left = true;
    if (one.now != phase::calling) lost_.push_back({id, {}});
    return;
  }
  if (one.silent) return;
  bytes copy(frame.begin(), frame.end());
  if (one.now == phase::calling) {
    one.early.push_back(std::move(copy));
  } else {
    events_.push_back({event::kind::frame, id, false, std::move(copy), {}});
  }
}

void ucx_control_lane::end_lost() {
  for (lost& one : std::exchange(lost_, {})) {
    state* found = find(one.link);
    if (found == nullptr) continue;
    const std::string& peer = found->peer;
    end(one.link, *found,
        one.why.empty() ? fmt::format("{} closed the link", peer)
                        : fmt::format("the link to {} is lost: {}", peer, one.why));
  }
}

bool ucx_control_lane::poll() {
  bool moved = worker_->progress();
  const time_since_start now = clock_.now();
  if (now >= next_look_) {
    next_look_ = now + look_every;
    for (contact_news& news : contacts_->progress()) {
      moved = true;
      take(std::move(news));
    }
    std::vector<link_id> overdue;
    for (const auto& [id, one] : links_) {
      if (one.now == phase::leaving && one.leave_at <= now) overdue.push_back(id);
    }
    for (link_id id : overdue) remove(id);
  }
  return moved || has_news();
}

bool ucx_control_lane::progress() {
  const bool moved = poll();
  end_lost();
  deliver();
  return moved;
}

void ucx_control_lane::deliver() {
  // What handlers cause is delivered by the next progress().
  for (std::size_t left = events_.size(); left > 0; --left) {
    const event next = std::move(events_.front());
    events_.pop_front();
    state* one = find(next.to);
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
    if (one.now == phase::leaving) next = next ? std::min(*next, one.leave_at) : one.leave_at;
  }
  return next;
}

}  // namespace troupe::comm
