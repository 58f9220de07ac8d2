#include "actors/status_port.hpp"

namespace troupe::actors {

result<std::uint16_t> status_port::open() {
  const std::lock_guard lock(mutex_);
  if (settings_.listen.empty()) return std::uint16_t{0};
  if (server_ == nullptr) {
    auto started = status_server::start(settings_.listen, settings_.hooks);
    if (!started) return started.failure();
    server_ = std::move(*started);
    if (newest_) server_->publish(newest_);
    if (settings_.told) settings_.told(server_->address());
  }
  return server_->address().port;
}

void status_port::publish(std::shared_ptr<const world_status> snapshot) {
  const std::lock_guard lock(mutex_);
  newest_ = snapshot;
  if (server_ != nullptr) server_->publish(std::move(snapshot));
}

void status_port::close() {
  const std::lock_guard lock(mutex_);
  server_.reset();
  newest_.reset();  // it tells of a time before whatever opens the port again
}

}  // namespace troupe::actors
