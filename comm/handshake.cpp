#include "comm/handshake.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include "comm/wire/envelope.hpp"

namespace troupe::comm {
namespace {

using type = handshake_message::type;

static_assert(secret::size == crypto_generichash_KEYBYTES);
static_assert(sizeof(proof) == crypto_generichash_BYTES);

void add(crypto_generichash_state& to, bytes_view what) {
  // The length first, so that no two sequences of pieces look the same.
  const std::uint64_t size = what.size();
  crypto_generichash_update(&to, reinterpret_cast<const unsigned char*>(&size), sizeof size);
  crypto_generichash_update(&to, reinterpret_cast<const unsigned char*>(what.data()), what.size());
}

bytes introduction(const nonce& number, const facts& who) {
  return encode({.what = type::hello, .number = number, .who = who, .shown = {}, .reason = {}});
}

bool is_equal(const proof& a, const proof& b) {
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::optional<std::string> refuse(const facts& mine, const facts& theirs) {
  if (mine.run_id != theirs.run_id) {
    return fmt::format(
        "this run is \"{}\", you are of run \"{}\": look for the right address, or "
        "start in the right run directory",
        mine.run_id, theirs.run_id);
  }
  if (mine.build != theirs.build) {
    return fmt::format("this run's build is {}, yours is {}: use the same program everywhere",
                       mine.build, theirs.build);
  }
  if (mine.kind == process_kind::client || theirs.kind == process_kind::client) return std::nullopt;
  if (mine.config_digest != theirs.config_digest) {
    return fmt::format(
        "this run's configuration is {}, yours is {}: start with the same "
        "configuration file and overrides",
        mine.config_digest, theirs.config_digest);
  }
  const bool both_compute = !mine.numerics_class.empty() && !theirs.numerics_class.empty();
  if (both_compute && mine.numerics_class != theirs.numerics_class) {
    return fmt::format(
        "this run computes in numerics class {}, you in {}: its results would not "
        "stay the same bits; use devices and libraries of one kind",
        mine.numerics_class, theirs.numerics_class);
  }
  return std::nullopt;
}

nonce fresh_nonce() {
  ensure(sodium_init() >= 0, "libsodium finds no source of random numbers");
  nonce made;
  randombytes_buf(made.data(), made.size());
  return made;
}

handshake::handshake(role side, facts mine, const secret& key, const nonce& number, admission admit)
    : side_(side), mine_(std::move(mine)), key_(key), number_(number), admit_(std::move(admit)) {
  const status proper = fits(mine_);
  ensure(proper, "a process cannot introduce itself: " + (proper ? "" : proper.failure().message));
  ensure(mine_.run_id.size() <= max_run_id_bytes, "a run id is longer than an envelope allows");
}

bytes handshake::start() const {
  ensure(side_ == role::connector, "who was connected to does not begin the handshake");
  return frame_of(
      {.what = type::hello, .number = number_, .who = mine_, .shown = {}, .reason = {}});
}

handshake::step handshake::receive(bytes_view frame) {
  if (state_ == state::accepted) return {};
  if (state_ == state::refused) return end_with("the handshake was refused before");
  if (frame.size() > max_handshake_bytes) {
    return end_with(fmt::format("a handshake of {} bytes came, at most {} are allowed",
                                frame.size(), max_handshake_bytes),
                    true);
  }
  const auto outer = decode(frame);
  if (!outer) return end_with(outer.failure().message, true);
  if (outer->kind != frame_kind::handshake) return {};
  const auto m = decode_handshake(outer->payload);
  if (!m) return end_with(m.failure().message, true);

  if (m->what == type::refusal) return end_with("the other side refused: " + m->reason);
  if (side_ == role::acceptor) {
    if (m->what == type::hello) return state_ == state::begun ? on_hello(*m) : step{};
    if (m->what == type::answer && state_ == state::answered) return on_answer(*m);
  } else {
    if (m->what == type::challenge) return state_ == state::begun ? on_challenge(*m) : step{};
    if (m->what == type::welcome && state_ == state::answered) {
      state_ = state::accepted;
      return {.reply = {}, .accepted = true, .refused = {}};
    }
  }
  return refuse_with("this does not belong here in a handshake");
}

handshake::step handshake::on_hello(const handshake_message& m) {
  theirs_ = m.who;
  their_number_ = m.number;
  if (const auto why = refuse(mine_, theirs_)) return refuse_with(*why);
  state_ = state::answered;
  return {.reply = frame_of({.what = type::challenge,
                             .number = number_,
                             .who = mine_,
                             .shown = proof_of(role::acceptor),
                             .reason = {}}),
          .accepted = false,
          .refused = {}};
}

handshake::step handshake::on_challenge(const handshake_message& m) {
  theirs_ = m.who;
  their_number_ = m.number;
  if (const auto why = refuse(mine_, theirs_)) return refuse_with(*why);
  if (!is_equal(m.shown, proof_of(role::acceptor))) {
    return refuse_with(
        fmt::format("your secret is not the one of {} for run \"{}\": both sides "
                    "must read the same secret file",
                    mine_.slot, mine_.run_id));
  }
  state_ = state::answered;
  return {.reply = frame_of({.what = type::answer,
                             .number = {},
                             .who = {},
                             .shown = proof_of(role::connector),
                             .reason = {}}),
          .accepted = false,
          .refused = {}};
}

handshake::step handshake::on_answer(const handshake_message& m) {
  if (!is_equal(m.shown, proof_of(role::connector))) {
    return refuse_with(
        fmt::format("your secret is not that of run \"{}\": use the file \"secret\" "
                    "of its run directory",
                    mine_.run_id));
  }
  if (admit_) {
    if (const auto why = admit_(theirs_)) return refuse_with(*why);
  }
  state_ = state::accepted;
  return {.reply =
              frame_of({.what = type::welcome, .number = {}, .who = {}, .shown = {}, .reason = {}}),
          .accepted = true,
          .refused = {}};
}

handshake::step handshake::refuse_with(const std::string& reason) {
  step last = end_with(fmt::format("refused {}: {}", their_name(), reason));
  last.reply = frame_of({.what = type::refusal,
                         .number = {},
                         .who = {},
                         .shown = {},
                         .reason = reason.substr(0, max_reason_bytes)});
  return last;
}

handshake::step handshake::end_with(std::string reason, bool garbled) {
  state_ = state::refused;
  return {.reply = {}, .accepted = false, .refused = std::move(reason), .garbled = garbled};
}

std::string handshake::their_name() const {
  if (theirs_.slot.empty() && theirs_.address.empty()) return "a process that gave no name";
  return fmt::format("{} ({}, {})", theirs_.slot, theirs_.host, theirs_.address);
}

proof handshake::proof_of(role prover) const {
  const bool connecting = side_ == role::connector;
  const bytes own = introduction(number_, mine_), other = introduction(their_number_, theirs_);
  const char* name = prover == role::connector ? "troupe connector" : "troupe acceptor";
  crypto_generichash_state hash;
  crypto_generichash_init(&hash, reinterpret_cast<const unsigned char*>(key_.bytes().data()),
                          secret::size, sizeof(proof));
  add(hash, std::as_bytes(std::span(std::string_view(name))));
  add(hash, connecting ? own : other);
  add(hash, connecting ? other : own);
  proof made;
  crypto_generichash_final(&hash, reinterpret_cast<unsigned char*>(made.data()), made.size());
  return made;
}

bytes handshake::frame_of(const handshake_message& m) const {
  const bytes payload = encode(m);
  return encode(envelope{.run_id = mine_.run_id,
                         .plan = {},
                         .from = mine_.wish.value_or(member_id{}),
                         .to = theirs_.wish.value_or(member_id{}),
                         .from_life = mine_.life,
                         .to_life = theirs_.life,
                         .sequence = 0,
                         .acknowledged = 0,
                         .kind = frame_kind::handshake,
                         .payload = {}},
                payload);
}

}  // namespace troupe::comm
