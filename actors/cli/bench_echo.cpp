#include "actors/cli/bench_echo.hpp"

#include <algorithm>
#include <caf/all.hpp>

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::cli::bench_frame)

namespace troupe::actors::cli {
namespace {

constexpr member_id other{1};

caf::behavior answer(caf::event_based_actor*, bench_process* own) {
  return {[own](const bench_frame& frame) {
    const char what = static_cast<char>(frame.content.at(0));
    if (what == 'p') {
      comm::bytes reply = frame.content;
      reply[0] = static_cast<std::byte>('q');  // else the two would play for ever
      return own->transport().control().send(frame.link, std::move(reply));
    }
    if (what == 'b') {
      if (!own->open_lane()) return;
      const comm::bytes_view address = comm::bytes_view(frame.content).subspan(1);
      if (!own->lane->connect(other, address)) return;
      comm::bytes reply{static_cast<std::byte>('a')};
      const comm::bytes& local = own->lane->local_address();
      reply.insert(reply.end(), local.begin(), local.end());
      return own->transport().control().send(frame.link, std::move(reply));
    }
    own->news.push_back(frame);
  }};
}

}  // namespace

struct bench_process::actor_part {
  caf::actor self;
};

bench_process::bench_process() = default;

bench_process::~bench_process() {
  lane.reset();
  if (actor_) caf::anon_send_exit(actor_->self, caf::exit_reason::kill);
  actor_.reset();
  if (loop_) loop_->run_ready();
}

result<std::unique_ptr<bench_process>> bench_process::open() {
  std::unique_ptr<bench_process> made(new bench_process);
  result<std::unique_ptr<comm::ucx_transport>> transport = comm::ucx_transport::open({});
  if (!transport) return transport.failure();
  made->transport_ = std::move(*transport);
  made->transport_->start(*made);
  made->loop_ = std::make_unique<loop>(real_clock());
  made->actor_ = std::make_unique<actor_part>();
  made->actor_->self = made->loop_->system().spawn(answer, made.get());
  return made;
}

status bench_process::open_lane() {
  result<std::unique_ptr<comm::bulk_lane>> fresh = transport_->open_bulk(generation{1}, *this);
  if (!fresh) return fresh.failure();
  lane = std::move(*fresh);
  return done{};
}

void bench_process::turn(std::chrono::nanoseconds at_most) {
  const bool moved = transport_->progress();
  if (!loop_->run_ready() && !moved) transport_->wait(at_most, comm::waiting::eager);
}

void bench_process::link_opened(comm::link_id which, bool) {
  link = which;
  opened = true;
}
void bench_process::frame_received(comm::link_id which, comm::bytes_view frame) {
  if (frame.empty()) return;
  caf::anon_send(actor_->self, bench_frame{which, {frame.begin(), frame.end()}});
}
void bench_process::link_closed(comm::link_id, const std::string&) { closed = true; }

std::optional<std::span<std::byte>> bench_process::place(comm::bytes_view, std::size_t size) {
  if (free_.empty()) free_.push_back(std::make_unique<std::vector<std::byte>>(bench_bulk_bytes));
  if (size > bench_bulk_bytes) return std::nullopt;
  used_.push_back(std::move(free_.back()));
  free_.pop_back();
  return std::span(*used_.back()).first(size);
}
void bench_process::arrived(comm::bytes_view, std::span<std::byte> payload) {
  const auto memory =
      std::ranges::find_if(used_, [&](const auto& one) { return one->data() == payload.data(); });
  free_.push_back(std::move(*memory));
  used_.erase(memory);
  if (++arrived_ % bench_batch == 0)
    transport_->control().send(link, comm::bytes{static_cast<std::byte>('d')});
}
void bench_process::sent(std::uint64_t) { ++bulk_sent; }

}  // namespace troupe::actors::cli
