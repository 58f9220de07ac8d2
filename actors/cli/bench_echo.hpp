// The two ends of `troupe bench transport`: an actor each, on the loop that progresses the
// transport. Frames begin with a letter: 'p' comes back as 'q', 'b' brings the address of a
// bulk lane and is answered with one, 'd' says that a batch of bulk messages has come.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "actors/loop.hpp"
#include "comm/ucx_transport.hpp"

namespace troupe::actors::cli {

inline constexpr std::size_t bench_bulk_bytes = std::size_t{4} << 20;
inline constexpr std::uint64_t bench_batch = 16;  // bulk messages that are answered at once

struct bench_frame {
  comm::link_id link;
  comm::bytes content;
};

class bench_process final : public comm::control_handler, public comm::bulk_handler {
 public:
  static result<std::unique_ptr<bench_process>> open();
  ~bench_process() override;

  comm::transport& transport() { return *transport_; }
  // Where the actor's answers go that are not echoes.
  std::vector<bench_frame> news;
  bool opened = false, closed = false;
  std::uint64_t bulk_sent = 0;
  std::unique_ptr<comm::bulk_lane> lane;
  comm::link_id link{};

  // One turn: transport, actors, and if nothing happened, sleep.
  void turn(std::chrono::nanoseconds at_most);
  status open_lane();

  void link_opened(comm::link_id which, bool we_connected) override;
  void frame_received(comm::link_id which, comm::bytes_view frame) override;
  void link_closed(comm::link_id which, const std::string& why) override;
  std::optional<std::span<std::byte>> place(comm::bytes_view header, std::size_t size) override;
  void arrived(comm::bytes_view header, std::span<std::byte> payload) override;
  void sent(std::uint64_t token) override;

 private:
  struct actor_part;
  bench_process();
  std::unique_ptr<comm::transport> transport_;
  std::unique_ptr<loop> loop_;
  std::unique_ptr<actor_part> actor_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> free_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> used_;
  std::uint64_t arrived_ = 0;
};

}  // namespace troupe::actors::cli
