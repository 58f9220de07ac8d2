#include "comm/simulated_transport.hpp"

#include "comm/simulated_core.hpp"

namespace troupe::comm {
namespace {

using core_ptr = std::shared_ptr<simulated_core>;

class simulated_bulk final : public bulk_lane {
 public:
  simulated_bulk(core_ptr core, process_id who, bulk_handler& handler)
      : core_(std::move(core)),
        lane_(core_->open_lane(who, handler)),
        address_(lane_address(lane_)) {}
  ~simulated_bulk() override { core_->close_lane(lane_); }
  simulated_bulk(const simulated_bulk&) = delete;
  simulated_bulk& operator=(const simulated_bulk&) = delete;

  const bytes& local_address() const override { return address_; }
  status connect(member_id to, bytes_view address) override {
    return core_->connect_lane(lane_, to, address);
  }
  void send(member_id to, bytes_view header, bytes_view payload, std::uint64_t token) override {
    core_->send_bulk(lane_, to, header, payload, token);
  }

 private:
  core_ptr core_;
  std::uint32_t lane_;
  bytes address_;
};

class simulated_transport final : public transport, private control_lane {
 public:
  simulated_transport(core_ptr core, process_id who) : core_(std::move(core)), who_(who) {}
  ~simulated_transport() override {
    core_->kill(who_, core_->usual_conditions().latency);  // does nothing to a dead one
  }
  simulated_transport(const simulated_transport&) = delete;
  simulated_transport& operator=(const simulated_transport&) = delete;

  void start(control_handler& handler) override { core_->start(who_, handler); }
  control_lane& control() override { return *this; }
  result<std::unique_ptr<bulk_lane>> open_bulk(generation, bulk_handler& handler) override {
    return std::unique_ptr<bulk_lane>(std::make_unique<simulated_bulk>(core_, who_, handler));
  }
  bool progress() override { return core_->progress(who_); }
  void wait(std::chrono::nanoseconds, waiting) override {}
  void wake() override {}
  traffic sent() const override { return core_->sent(who_); }

 private:
  const address& local_address() const override { return core_->local_address(who_); }
  link_id connect(const address& to) override { return core_->connect(who_, to); }
  void send(link_id link, bytes frame) override { core_->send_frame(who_, link, std::move(frame)); }
  void close(link_id link) override { core_->close(who_, link); }

  core_ptr core_;
  process_id who_;
};

}  // namespace

simulated_network::simulated_network(std::uint64_t seed, const network_conditions& usual)
    : core_(std::make_shared<simulated_core>(seed, usual)) {}

simulated_network::~simulated_network() = default;

simulated_network::process simulated_network::add_process(std::string host) {
  const process_id id = core_->add_process(std::move(host));
  return {id, std::make_unique<simulated_transport>(core_, id)};
}

std::chrono::nanoseconds simulated_network::now() const { return core_->now(); }
std::optional<std::chrono::nanoseconds> simulated_network::next_event() const {
  return core_->next_event();
}
void simulated_network::advance_to(std::chrono::nanoseconds when) { core_->advance_to(when); }
std::vector<process_id> simulated_network::take_ready() { return core_->take_ready(); }

void simulated_network::set_conditions(const network_conditions& usual) { core_->set_usual(usual); }
void simulated_network::set_conditions(process_id from, process_id to,
                                       const network_conditions& special) {
  core_->set_special({from, to}, special);
}
void simulated_network::set_filter(frame_filter filter) { core_->set_filter(std::move(filter)); }

void simulated_network::cut(process_id from, process_id to,
                            std::optional<std::chrono::nanoseconds> noticed_after) {
  core_->cut(from, to, noticed_after);
}
void simulated_network::cut_behind(process_id from, process_id to) { core_->cut_behind(from, to); }
void simulated_network::heal(process_id from, process_id to) { core_->heal(from, to); }
void simulated_network::heal_all() { core_->heal_all(); }
void simulated_network::reset_links(process_id a, process_id b) {
  core_->reset_links(a, b, "the connection was reset by");
}

void simulated_network::kill(process_id which,
                             std::optional<std::chrono::nanoseconds> noticed_after) {
  core_->kill(which, noticed_after);
}
std::size_t simulated_network::open_links(process_id of) const { return core_->open_links(of); }
void simulated_network::stop(process_id which) { core_->stop(which); }
void simulated_network::continue_process(process_id which) { core_->continue_process(which); }

void simulated_network::set_connect_timeout(std::chrono::nanoseconds timeout) {
  core_->set_connect_timeout(timeout);
}

const network_counters& simulated_network::counters() const { return core_->counters(); }

}  // namespace troupe::comm
