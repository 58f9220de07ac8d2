#include "comm/wire/handshake_message.hpp"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <fmt/format.h>
#include <handshake.capnp.h>

#include <algorithm>
#include <cstring>

namespace troupe::comm {
namespace {

using type = handshake_message::type;

error broken(std::string_view why) {
  return {exit_code::bad_data, fmt::format("a handshake is broken: {}", why)};
}

kj::ArrayPtr<const capnp::byte> as_kj(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const capnp::byte*>(bytes.data()), bytes.size()};
}

capnp::Text::Reader as_kj(const std::string& text) { return {text.data(), text.size()}; }

std::string to_string(capnp::Text::Reader text) { return {text.begin(), text.size()}; }

status is_text(const char* name, const std::string& text, std::size_t limit) {
  if (text.size() > limit) {
    return broken(fmt::format("{} has {} bytes, at most {} are allowed", name, text.size(), limit));
  }
  const auto controls = [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; };
  if (std::ranges::any_of(text, controls)) {
    return broken(fmt::format("{} contains a control character", name));
  }
  return done{};
}

void fill(wire::Facts::Builder to, const facts& who) {
  to.setRunId(as_kj(who.run_id));
  to.setBuild(as_kj(who.build));
  to.setConfigDigest(as_kj(who.config_digest));
  to.setNumericsClass(as_kj(who.numerics_class));
  to.setSlot(as_kj(who.slot));
  to.setHasWish(who.wish.has_value());
  to.setWish(who.wish.value_or(member_id{}).value);
  to.setLife(who.life.value);
  to.setAddress(as_kj(who.address));
  to.setHost(as_kj(who.host));
  to.setDomain(as_kj(who.domain));
  to.setKind(static_cast<wire::ProcessKind>(who.kind));
  to.setComputes(who.computes);
  to.setThreads(who.threads);
  to.setMemoryBytes(who.memory_bytes);
  to.setSpeed(who.speed);
}

result<facts> read(wire::Facts::Reader from) {
  if (from.getKind() > wire::ProcessKind::CLIENT) {
    return broken(fmt::format("{} is no kind of process", static_cast<unsigned>(from.getKind())));
  }
  facts who{.run_id = to_string(from.getRunId()),
            .build = to_string(from.getBuild()),
            .config_digest = to_string(from.getConfigDigest()),
            .numerics_class = to_string(from.getNumericsClass()),
            .slot = to_string(from.getSlot()),
            .wish = {},
            .life = incarnation(from.getLife()),
            .address = to_string(from.getAddress()),
            .host = to_string(from.getHost()),
            .domain = to_string(from.getDomain()),
            .kind = static_cast<process_kind>(from.getKind()),
            .computes = from.getComputes(),
            .threads = from.getThreads(),
            .memory_bytes = from.getMemoryBytes(),
            .speed = from.getSpeed()};
  if (from.getHasWish()) who.wish = member_id(from.getWish());
  if (auto s = fits(who); !s) return s.failure();
  return who;
}

status copy(capnp::Data::Reader from, std::array<std::byte, 32>& to, const char* name) {
  if (from.size() != to.size()) {
    return broken(fmt::format("{} has {} bytes instead of {}", name, from.size(), to.size()));
  }
  std::memcpy(to.data(), from.begin(), to.size());
  return done{};
}

status introduce(wire::Introduction::Reader from, handshake_message& m) {
  if (auto s = copy(from.getNonce(), m.number, "a nonce"); !s) return s;
  auto who = read(from.getFacts());
  if (!who) return who.failure();
  m.who = *std::move(who);
  return done{};
}

status fill(wire::Handshake::Reader from, handshake_message& m) {
  switch (from.which()) {
    case wire::Handshake::HELLO:
      m.what = type::hello;
      return introduce(from.getHello(), m);
    case wire::Handshake::CHALLENGE: {
      m.what = type::challenge;
      const auto challenge = from.getChallenge();  // once: each read counts against the limit
      if (auto s = introduce(challenge.getIntroduction(), m); !s) return s;
      return copy(challenge.getProof(), m.shown, "a proof");
    }
    case wire::Handshake::ANSWER:
      m.what = type::answer;
      return copy(from.getAnswer(), m.shown, "a proof");
    case wire::Handshake::WELCOME:
      m.what = type::welcome;
      return done{};
    case wire::Handshake::REFUSAL:
      m.what = type::refusal;
      m.reason = to_string(from.getRefusal());
      return is_text("a refusal", m.reason, max_reason_bytes);
  }
  return broken("it says nothing that this build knows");
}

void introduce(wire::Introduction::Builder to, const handshake_message& m) {
  to.setNonce(as_kj(m.number));
  fill(to.initFacts(), m.who);
}

}  // namespace

status fits(const facts& who) {
  const std::pair<const char*, const std::string*> texts[] = {
      {"the run id", &who.run_id},
      {"the build", &who.build},
      {"the configuration's digest", &who.config_digest},
      {"the numerics class", &who.numerics_class},
      {"the slot's name", &who.slot},
      {"the address", &who.address},
      {"the host", &who.host},
      {"the domain", &who.domain}};
  for (const auto& [name, text] : texts) {
    if (auto s = is_text(name, *text, max_fact_bytes); !s) return s;
  }
  return done{};
}

std::vector<std::byte> encode(const handshake_message& m) {
  capnp::MallocMessageBuilder builder;
  auto to = builder.initRoot<wire::Handshake>();
  switch (m.what) {
    case type::hello:
      introduce(to.initHello(), m);
      break;
    case type::challenge: {
      auto challenge = to.initChallenge();
      introduce(challenge.initIntroduction(), m);
      challenge.setProof(as_kj(m.shown));
      break;
    }
    case type::answer:
      to.setAnswer(as_kj(m.shown));
      break;
    case type::welcome:
      to.setWelcome();
      break;
    case type::refusal:
      to.setRefusal(as_kj(m.reason));
      break;
  }
  const auto words = capnp::messageToFlatArray(builder);
  const auto* begin = reinterpret_cast<const std::byte*>(words.begin());
  return {begin, begin + words.size() * sizeof(capnp::word)};
}

result<handshake_message> decode_handshake(std::span<const std::byte> bytes) {
  if (bytes.size() % sizeof(capnp::word) != 0) {
    return broken(fmt::format("{} bytes can be none", bytes.size()));
  }
  std::vector<capnp::word> aligned(bytes.size() / sizeof(capnp::word));
  if (!bytes.empty()) std::memcpy(aligned.data(), bytes.data(), bytes.size());
  const capnp::ReaderOptions limits{.traversalLimitInWords = aligned.size() + 1, .nestingLimit = 8};
  try {
    capnp::FlatArrayMessageReader reader({aligned.data(), aligned.size()}, limits);
    handshake_message m;
    if (auto s = fill(reader.getRoot<wire::Handshake>(), m); !s) return s.failure();
    return m;
  } catch (const kj::Exception& e) {
    return broken(e.getDescription().cStr());
  }
}

}  // namespace troupe::comm
