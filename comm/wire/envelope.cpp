#include "comm/wire/envelope.hpp"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <envelope.capnp.h>
#include <fmt/format.h>

#include <cstring>

#include "config/base/hash.hpp"

namespace troupe::comm {
namespace {

constexpr std::size_t word_bytes = sizeof(capnp::word);
constexpr std::size_t checksum_bytes = word_bytes;
constexpr std::size_t segment_table_bytes = word_bytes;  // of a message with one segment
constexpr std::size_t header_bytes = checksum_bytes + segment_table_bytes;

// Deeper than envelope.capnp will ever be.
constexpr int nesting_limit = 8;

error broken(std::string why) {
  return {exit_code::bad_data, "a frame is no envelope: " + std::move(why)};
}

std::size_t words(std::size_t bytes) { return (bytes + word_bytes - 1) / word_bytes; }

kj::ArrayPtr<const capnp::byte> as_kj(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const capnp::byte*>(bytes.data()), bytes.size()};
}

// Words of the one segment, exactly: a root pointer, the struct, the text with its end, the data.
std::size_t segment_words(const envelope& what, std::span<const std::byte> payload) {
  return 1 + capnp::sizeInWords<wire::Envelope>() + words(what.run_id.size() + 1) +
         words(payload.size());
}

void fill(wire::Envelope::Builder to, const envelope& what, std::span<const std::byte> payload) {
  to.setRun(capnp::Text::Reader(what.run_id.data(), what.run_id.size()));
  to.setPlan(what.plan.value);
  to.setFrom(what.from.value);
  to.setTo(what.to.value);
  to.setFromLife(what.from_life.value);
  to.setToLife(what.to_life.value);
  to.setSequence(what.sequence);
  to.setAcknowledged(what.acknowledged);
  to.setKind(static_cast<wire::FrameKind>(what.kind));
  to.setPayload(as_kj(payload));
}

result<envelope> read(wire::Envelope::Reader from) {
  const auto run = from.getRun();
  if (run.size() > max_run_id_bytes) {
    return broken(fmt::format("its run id has {} bytes, at most {} are allowed", run.size(),
                              max_run_id_bytes));
  }
  if (from.getKind() > wire::FrameKind::HANDSHAKE) {
    return broken(fmt::format("{} is no kind of frame", static_cast<unsigned>(from.getKind())));
  }
  const auto payload = from.getPayload();
  const auto* begin = reinterpret_cast<const std::byte*>(payload.begin());
  return envelope{.run_id = std::string(run.begin(), run.size()),
                  .plan = generation(from.getPlan()),
                  .from = member_id(from.getFrom()),
                  .to = member_id(from.getTo()),
                  .from_life = incarnation(from.getFromLife()),
                  .to_life = incarnation(from.getToLife()),
                  .sequence = from.getSequence(),
                  .acknowledged = from.getAcknowledged(),
                  .kind = static_cast<frame_kind>(from.getKind()),
                  .payload = {begin, begin + payload.size()}};
}

result<envelope> read_message(kj::ArrayPtr<const capnp::word> message) {
  const capnp::ReaderOptions limits{.traversalLimitInWords = message.size() + 1,
                                    .nestingLimit = nesting_limit};
  try {
    capnp::FlatArrayMessageReader reader(message, limits);
    return read(reader.getRoot<wire::Envelope>());
  } catch (const kj::Exception& e) {
    return broken(e.getDescription().cStr());
  }
}

}  // namespace

std::vector<std::byte> encode(const envelope& what) { return encode(what, what.payload); }

std::vector<std::byte> encode(const envelope& what, std::span<const std::byte> payload) {
  ensure(what.run_id.size() <= max_run_id_bytes, "a run id is longer than the wire allows");
  const std::size_t segment = segment_words(what, payload);
  ensure(segment <= UINT32_MAX, "an envelope is larger than one segment can be");
  // The size is known beforehand, so the message is built where it is sent from: one allocation and
  // one copy of the payload. A table with one segment is two 32-bit numbers: count - 1, words.
  std::vector<std::byte> frame(header_bytes + segment * word_bytes);
  const std::uint32_t table[] = {0, static_cast<std::uint32_t>(segment)};
  std::memcpy(frame.data() + checksum_bytes, table, sizeof table);
  try {
    capnp::FlatMessageBuilder builder(
        {reinterpret_cast<capnp::word*>(frame.data() + header_bytes), segment});
    fill(builder.initRoot<wire::Envelope>(), what, payload);
    builder.requireFilled();
  } catch (const kj::Exception& e) {
    ensure(false, std::string("an envelope did not fit its frame: ") + e.getDescription().cStr());
  }
  const std::uint64_t sum = hash64_bytes(std::span(frame).subspan(checksum_bytes));
  std::memcpy(frame.data(), &sum, sizeof sum);
  return frame;
}

result<envelope> decode(std::span<const std::byte> frame) {
  if (frame.size() <= header_bytes || frame.size() % word_bytes != 0) {
    return broken(fmt::format("{} bytes can be none", frame.size()));
  }
  std::uint64_t sum = 0;
  std::memcpy(&sum, frame.data(), sizeof sum);
  const auto message = frame.subspan(checksum_bytes);
  if (const std::uint64_t found = hash64_bytes(message); found != sum) {
    return broken(fmt::format("its checksum is {:016x}, that of its {} bytes is {:016x}", sum,
                              message.size(), found));
  }
  const std::size_t count = message.size() / word_bytes;
  if (reinterpret_cast<std::uintptr_t>(message.data()) % alignof(capnp::word) == 0) {
    return read_message({reinterpret_cast<const capnp::word*>(message.data()), count});
  }
  std::vector<capnp::word> aligned(count);
  std::memcpy(aligned.data(), message.data(), message.size());
  return read_message({aligned.data(), count});
}

}  // namespace troupe::comm
