// How bytes get from one process to another. Two lanes: *control* carries small frames in order
// over links that notice a dead peer; *bulk* carries gradients and parameters within one generation
// and notices nothing, so that shared memory and RDMA can be used. What the bytes mean, whether
// they are repeated, and who may speak are decided above (conversation, handshake); what happens
// when a peer is lost is decided by the actors.
//
// Everything here belongs to one thread, the loop's, except wake(). Handlers are called from
// progress() only, never from within a call that the handler's owner made; they may call back into
// the lanes. The simulated transport implements the same in virtual time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/ids.hpp"

namespace troupe::comm {

// Where a process is reached: an IPv4 or IPv6 literal or a host name, and a port.
struct address {
  std::string host;
  std::uint16_t port = 0;
  friend auto operator<=>(const address&, const address&) = default;
};

// "127.0.0.1:4711", "[::1]:4711". The error is bad_config and says what is wrong with it.
std::string to_text(const address& where);
result<address> parse_address(std::string_view text);

using bytes = std::vector<std::byte>;
using bytes_view = std::span<const std::byte>;

// One connection of the control lane, never used again after it closed.
enum class link_id : std::uint64_t {};

inline constexpr std::size_t max_frame_bytes = std::size_t{8} << 20;

class control_handler {
 public:
  virtual ~control_handler() = default;
  // Somebody connected to us, or our own connect() succeeded.
  virtual void link_opened(link_id link, bool we_connected) = 0;
  // The frame is valid during the call only.
  virtual void frame_received(link_id link, bytes_view frame) = 0;
  // The peer ended, refused, could not be reached or broke the framing: `why` in words, with the
  // address. Nothing comes from this link any more. Not called for links that we closed ourselves.
  virtual void link_closed(link_id link, const std::string& why) = 0;
};

class control_lane {
 public:
  virtual ~control_lane() = default;
  // What others are told to connect to: the advertised host, the real port.
  virtual const address& local_address() const = 0;
  // Comes back at once; link_opened or link_closed follows.
  virtual link_id connect(const address& to) = 0;
  // Ordered within a link. Frames of a link that is not open yet wait for it; of a closed one they
  // vanish. `frame` has at most max_frame_bytes.
  virtual void send(link_id link, bytes frame) = 0;
  // Frames sent before are still delivered if the peer lives.
  virtual void close(link_id link) = 0;
};

class bulk_handler {
 public:
  virtual ~bulk_handler() = default;
  // A message is announced. Returns the memory its payload goes to, exactly `size` bytes, which
  // then belongs to the lane until arrived(); nothing: the message is not wanted and is dropped.
  virtual std::optional<std::span<std::byte>> place(bytes_view header, std::size_t size) = 0;
  virtual void arrived(bytes_view header, std::span<std::byte> payload) = 0;
  // The payload given to send() with this token may be changed again. It says nothing about the
  // receiver.
  virtual void sent(std::uint64_t token) = 0;
};

inline constexpr std::size_t max_bulk_header_bytes = 512;

// The bulk traffic of one generation. The destructor ends all transfers in both directions, also
// those with dead or stopped peers, and after it no memory that was given to the lane is touched.
class bulk_lane {
 public:
  virtual ~bulk_lane() = default;
  // Opaque; the peer gets it over the control lane and hands it to connect().
  virtual const bytes& local_address() const = 0;
  virtual status connect(member_id to, bytes_view address) = 0;
  // Requires connect(to). The payload stays untouched until sent(token); the header is copied.
  // Messages between two members may overtake each other.
  virtual void send(member_id to, bytes_view header, bytes_view payload, std::uint64_t token) = 0;
};

// Payload and framing of what was given to send(), since the start.
struct traffic {
  std::uint64_t control_bytes = 0, control_frames = 0;
  std::uint64_t bulk_bytes = 0, bulk_messages = 0;
};

// Eager: who waits may keep its core for a moment, because what it waits for is probably on its
// way. Patient: somebody else has a use for the core.
enum class waiting : std::uint8_t { eager, patient };

class transport {
 public:
  virtual ~transport() = default;
  // From here on the handler is called. Once, before anything else.
  virtual void start(control_handler& handler) = 0;
  virtual control_lane& control() = 0;
  // The handler outlives the lane.
  virtual result<std::unique_ptr<bulk_lane>> open_bulk(generation number,
                                                       bulk_handler& handler) = 0;
  // Moves what can be moved without waiting and calls handlers; true if anything happened.
  virtual bool progress() = 0;
  // Sleeps until there is something to progress, wake() was called, or the time is over.
  virtual void wait(std::chrono::nanoseconds at_most, waiting how) = 0;
  // From any thread: ends the present or the next wait().
  virtual void wake() = 0;
  virtual traffic sent() const = 0;
};

}  // namespace troupe::comm
