// The messages of the handshake (comm/handshake.hpp) and the facts that two processes tell each
// other in it. They come from strangers: decode_handshake() takes nothing that is too long, has
// another size than it must, or would confuse a terminal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/ids.hpp"

namespace troupe::comm {

enum class process_kind : std::uint8_t { member, joiner, client };

struct facts {
  std::string run_id;
  std::string build;           // version and commit
  std::string config_digest;   // of everything that changes bits
  std::string numerics_class;  // "": computes nothing and knows none
  std::string slot;            // its name for people: "worker-3"
  std::optional<member_id> wish;
  incarnation life;
  std::string address;  // of its control lane, HOST:PORT
  std::string host, domain;
  process_kind kind = process_kind::member;
  bool computes = true;
  std::uint64_t threads = 0, memory_bytes = 0;
  std::uint64_t speed = 0;  // in the planner's unit

  friend bool operator==(const facts&, const facts&) = default;
};

using nonce = std::array<std::byte, 32>;
using proof = std::array<std::byte, 32>;

struct handshake_message {
  enum class type : std::uint8_t { hello, challenge, answer, welcome, refusal };
  type what = type::hello;
  nonce number{};      // hello, challenge
  facts who;           // hello, challenge
  proof shown{};       // challenge, answer
  std::string reason;  // refusal

  friend bool operator==(const handshake_message&, const handshake_message&) = default;
};

inline constexpr std::size_t max_fact_bytes = 512;     // of one text
inline constexpr std::size_t max_reason_bytes = 4096;  // of a refusal

// Texts must keep to the limits; see fits().
std::vector<std::byte> encode(const handshake_message& message);
result<handshake_message> decode_handshake(std::span<const std::byte> bytes);

// Whether the other side would take these facts; the error names the text that is too long or holds
// a control character.
status fits(const facts& who);

}  // namespace troupe::comm
