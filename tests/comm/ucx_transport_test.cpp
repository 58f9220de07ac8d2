#include "comm/ucx_transport.hpp"

#include <gmock/gmock.h>

#include <chrono>

#include "tests/comm/transport_conformance.hpp"

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

// Transports of one process that reach each other over loopback.
class ucx_group final : public transport_group {
 public:
  explicit ucx_group(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      auto opened = ucx_transport::open({});
      EXPECT_TRUE(opened) << opened.failure().message;
      all_.push_back(std::move(*opened));
    }
  }
  transport& at(std::size_t index) override { return *all_[index]; }
  bool run_until(const std::function<bool()>& condition) override {
    const auto end = steady_clock::now() + 20s;
    while (!condition()) {
      if (steady_clock::now() > end) return false;
      progress();
    }
    return true;
  }
  void settle() override {
    const auto end = steady_clock::now() + 100ms;
    while (steady_clock::now() < end) progress();
  }
  void lose(std::size_t index) override { all_[index].reset(); }
  address nobody() override {
    // A port that was ours a moment ago.
    const ucx_group gone(1);
    return gone.all_[0]->control().local_address();
  }

 private:
  void progress() {
    for (const auto& one : all_) {
      if (one) one->progress();
    }
  }
  std::vector<std::unique_ptr<ucx_transport>> all_;
};

INSTANTIATE_TEST_SUITE_P(ucx, transport_conformance,
                         testing::Values(conformance_subject{
                             "ucx", [](std::size_t n) -> std::unique_ptr<transport_group> {
                               return std::make_unique<ucx_group>(n);
                             }}));

}  // namespace
}  // namespace troupe::comm
