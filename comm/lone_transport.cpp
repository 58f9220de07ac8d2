#include "comm/lone_transport.hpp"

#include <utility>

namespace troupe::comm {
namespace {

class no_bulk final : public bulk_lane {
 public:
  const bytes& local_address() const override { return address_; }
  status connect(member_id, bytes_view) override { return done{}; }
  void send(member_id, bytes_view, bytes_view, std::uint64_t) override {
    ensure(false, "a member of a world of one sent something to another member");
  }

 private:
  bytes address_;
};

}  // namespace

class lone_transport::lane final : public control_lane {
 public:
  const address& local_address() const override { return here_; }
  link_id connect(const address& to) override {
    refused.emplace_back(link_id(++last_), to);
    return refused.back().first;
  }
  void send(link_id, bytes) override {}
  void close(link_id link) override {
    std::erase_if(refused, [link](const auto& r) { return r.first == link; });
  }

  std::vector<std::pair<link_id, address>> refused;  // to be told in progress()

 private:
  address here_{"127.0.0.1", 1};
  std::uint64_t last_ = 0;
};

lone_transport::lone_transport() : lane_(std::make_unique<lane>()) {}
lone_transport::~lone_transport() = default;

control_lane& lone_transport::control() { return *lane_; }

result<std::unique_ptr<bulk_lane>> lone_transport::open_bulk(generation, bulk_handler&) {
  return std::unique_ptr<bulk_lane>(std::make_unique<no_bulk>());
}

bool lone_transport::progress() {
  const auto refused = std::exchange(lane_->refused, {});
  for (const auto& [link, to] : refused) {
    handler_->link_closed(link, "nobody can be reached at " + to_text(to) +
                                    ": this world has "
                                    "one member only");
  }
  return !refused.empty();
}

void lone_transport::wait(std::chrono::nanoseconds at_most, waiting) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, at_most, [this] { return woken_; });
  woken_ = false;
}

void lone_transport::wake() {
  {
    std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_one();
}

}  // namespace troupe::comm
