// How two processes that never met find out that they belong to the same run before either believes
// a word of the other:
//
//   connector -> acceptor   hello      nonce, facts
//   acceptor  -> connector  challenge  nonce, facts, proof
//   connector -> acceptor   answer     proof
//   acceptor  -> connector  welcome
//
// or, from any side at any time, a refusal with its reason. A proof is a keyed hash, under the
// run's secret, over the prover's role, both nonces and both sides' facts: so the secret never
// travels, nothing can be replayed or reflected, and no fact can be changed on the way. Facts are
// compared before proofs, because who holds another run's secret is helped by "this run is a, you
// are of run b" and not by "wrong secret". What is not promised: the frames that follow are neither
// signed nor encrypted.
//
// Pure: frames in, frames out. A side that stays silent is given up by the owner's deadline. TLS
// was not chosen: it would bring certificates where one file is shared anyway.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "comm/secret.hpp"
#include "comm/transport.hpp"
#include "comm/wire/handshake_message.hpp"

namespace troupe::comm {

inline constexpr std::size_t max_handshake_bytes = std::size_t{64} << 10;

// Why `mine` does not take `theirs` into its run, said to them; nothing: it does. A client (the
// launcher, the command line) only has to know the same run and build.
std::optional<std::string> refuse(const facts& mine, const facts& theirs);

nonce fresh_nonce();

class handshake {
 public:
  enum class role : std::uint8_t { connector, acceptor };

  // Why a process that has proven itself is not taken in all the same; asked by the acceptor.
  using admission = std::function<std::optional<std::string>(const facts& theirs)>;

  // `mine` keeps to fits(); `number` is used once.
  handshake(role side, facts mine, const secret& key, const nonce& number, admission admit = {});

  // The connector's first frame; call it once the link is open.
  bytes start() const;

  struct step {
    std::optional<bytes> reply;  // to be sent before anything else
    bool accepted = false;       // both sides are proven; theirs() is true
    std::string refused;         // why this ends without success: send the reply, close the link
    bool garbled = false;        // ... because a frame cannot be read: nobody has refused anybody
  };
  // Until accepted, everything that comes from the link. What is no handshake, and what was already
  // answered, is passed over: a network may repeat and reorder.
  step receive(bytes_view frame);

  // What the other side said of itself; to be believed once accepted.
  const facts& theirs() const { return theirs_; }

 private:
  enum class state : std::uint8_t { begun, answered, accepted, refused };

  step on_hello(const handshake_message& m);
  step on_challenge(const handshake_message& m);
  step on_answer(const handshake_message& m);
  step refuse_with(const std::string& reason);
  step end_with(std::string reason, bool garbled = false);
  proof proof_of(role side) const;
  bytes frame_of(const handshake_message& m) const;
  std::string their_name() const;

  role side_;
  state state_ = state::begun;
  facts mine_, theirs_;
  secret key_;
  nonce number_, their_number_{};
  admission admit_;
};

}  // namespace troupe::comm
