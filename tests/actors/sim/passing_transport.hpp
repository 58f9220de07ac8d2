// A transport that passes everything on. Tests change one thing of it.
#pragma once

#include <memory>
#include <utility>

#include "comm/transport.hpp"

namespace troupe::actors::sim {

class passing_transport : public comm::transport, protected comm::control_lane {
 public:
  explicit passing_transport(std::unique_ptr<comm::transport> inner) : inner_(std::move(inner)) {}

  void start(comm::control_handler& handler) override { inner_->start(handler); }
  comm::control_lane& control() override { return *this; }
  result<std::unique_ptr<comm::bulk_lane>> open_bulk(generation number,
                                                     comm::bulk_handler& handler) override {
    return inner_->open_bulk(number, handler);
  }
  bool progress() override { return inner_->progress(); }
  void wait(std::chrono::nanoseconds at_most, comm::waiting how) override {
    inner_->wait(at_most, how);
  }
  void wake() override { inner_->wake(); }
  comm::traffic sent() const override { return inner_->sent(); }

 protected:
  const comm::address& local_address() const override { return inner_->control().local_address(); }
  comm::link_id connect(const comm::address& to) override { return inner_->control().connect(to); }
  void close(comm::link_id link) override { inner_->control().close(link); }
  void send(comm::link_id link, comm::bytes frame) override {
    inner_->control().send(link, std::move(frame));
  }

  std::unique_ptr<comm::transport> inner_;
};

}  // namespace troupe::actors::sim
