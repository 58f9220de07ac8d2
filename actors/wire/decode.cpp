// Bytes to values. The bytes come from a network: every length is checked, here or in the library,
// which throws; what it throws ends in decode_as().
#include <actors/wire/messages.capnp.h>  // generated from messages.capnp
#include <capnp/serialize.h>
#include <fmt/format.h>
#include <kj/exception.h>

#include <cstring>
#include <string>
#include <type_traits>
#include <variant>

#include "actors/wire/codec.hpp"

namespace troupe::actors::wire {
namespace {

using protocol::phase;

// Tags are alternatives counted from 1, so that a forgotten or misplaced one does not compile.
template <class Variant, class T, auto tag>
constexpr bool is_at =
    std::is_same_v<std::variant_alternative_t<static_cast<std::size_t>(tag) - 1, Variant>, T>;

using tag = schema::Message::Which;
static_assert(std::variant_size_v<protocol::message> == static_cast<std::size_t>(tag::COPIES_HELD));
static_assert(std::variant_size_v<protocol::bulk_header> ==
              static_cast<std::size_t>(schema::BulkHeader::STATE));

static_assert(static_cast<int>(schema::Phase::STARTING) == static_cast<int>(phase::starting));
static_assert(static_cast<int>(schema::Phase::COMPUTING) == static_cast<int>(phase::computing));
static_assert(static_cast<int>(schema::Phase::WAITING) == static_cast<int>(phase::waiting));
static_assert(static_cast<int>(schema::Phase::VALIDATING) == static_cast<int>(phase::validating));
static_assert(static_cast<int>(schema::Phase::SAVING) == static_cast<int>(phase::saving));
static_assert(static_cast<int>(schema::Phase::ENDING) == static_cast<int>(phase::ending));

std::string get(capnp::Text::Reader from) { return {from.begin(), from.size()}; }

template <class Reader>
protocol::block_id get_block(Reader from) {
  return {from.getLayer(), from.getBlock()};
}

template <class Reader>
hash128 get_hash(Reader from) {
  return {from.getHashHigh(), from.getHashLow()};
}

hash128 get(schema::Hash::Reader from) { return {from.getHigh(), from.getLow()}; }

protocol::leaf_loss get(schema::LeafLoss::Reader from) {
  return {from.getLeaf(), from.getLossSum(), from.getTokens()};
}

protocol::block_sum get(schema::BlockSum::Reader from) {
  return {get_block(from), get_hash(from), from.getSquares()};
}

protocol::saved_block get(schema::SavedBlock::Reader from) {
  return {.block = get_block(from),
          .weights = get(from.getWeights()),
          .state = get(from.getState()),
          .parameters = get(from.getParameters()),
          .first_moments = get(from.getFirstMoments()),
          .second_moments = get(from.getSecondMoments())};
}

protocol::member_address get(schema::MemberAddress::Reader from) {
  const auto data = from.getWhere();  // once: each read counts against the limit
  const auto where = std::as_bytes(std::span(data.begin(), data.size()));
  return {member_id(from.getMember()), {where.begin(), where.end()}};
}

protocol::step_facts get(schema::StepFacts::Reader from) {
  return {.data = from.getData(),
          .forward = from.getForward(),
          .backward = from.getBackward(),
          .reduce = from.getReduce(),
          .apply = from.getApply(),
          .wait = from.getWait(),
          .control_bytes = from.getControlBytes(),
          .bulk_bytes = from.getBulkBytes(),
          .peak_memory = from.getPeakMemory(),
          .activation_bytes = from.getActivationBytes()};
}

protocol::decision_record get(schema::DecisionRecord::Reader from) {
  return {.step = from.getStep(),
          .updates = from.getUpdates(),
          .skip = from.getSkip(),
          .why_skipped = get(from.getWhySkipped()),
          .scale = from.getScale(),
          .lr = from.getLr(),
          .loss = from.getLoss(),
          .grad_norm = from.getGradNorm(),
          .tokens = from.getTokens()};
}

protocol::record_notice get(schema::RecordNotice::Reader from) {
  return {.record = get(from.getRecord()),
          .last = from.getLast(),
          .validate = from.getValidate(),
          .lines = from.getLines(),
          .total_tokens = from.getTotalTokens(),
          .skipped_in_a_row = from.getSkippedInARow(),
          .plan = generation(from.getPlan()),
          .world = from.getWorld()};
}

protocol::held_fact get(schema::HeldFact::Reader from) {
  return {get_block(from), from.getVersion(), from.getNextSum(), from.getLost()};
}

protocol::copy_plan::copy get(schema::BlockCopy::Reader from) {
  return {get_block(from), member_id(from.getTo())};
}

// A list of bytes may pass for one of structs, each of which would become a value of a hundred.
// Ours have all their fields, so what cannot fit into the message is no list of ours.
template <class T, class Struct>
std::vector<T> get_all(typename capnp::List<Struct>::Reader from, std::size_t message_words) {
  if (from.size() > message_words / capnp::sizeInWords<Struct>())
    KJ_FAIL_REQUIRE("a list has more elements than fit into the message");
  std::vector<T> all;
  all.reserve(from.size());
  for (const auto& one : from) all.push_back(get(one));
  return all;
}

result<protocol::message> get(schema::Message::Reader from, std::size_t words) {
  using protocol::message;
  switch (from.which()) {
    case tag::NOTHING:
      break;
    case tag::PLAN_NOTICE:
      static_assert(is_at<message, protocol::plan_notice, tag::PLAN_NOTICE>);
      return message(protocol::plan_notice{get(from.getPlanNotice())});
    case tag::BULK_ADDRESS: {
      static_assert(is_at<message, protocol::bulk_address, tag::BULK_ADDRESS>);
      const auto data = from.getBulkAddress();
      const auto where = std::as_bytes(std::span(data.begin(), data.size()));
      return message(protocol::bulk_address{{where.begin(), where.end()}});
    }
    case tag::READY:
      static_assert(is_at<message, protocol::ready, tag::READY>);
      return message(protocol::ready{from.getReady()});
    case tag::GO: {
      static_assert(is_at<message, protocol::go, tag::GO>);
      const auto m = from.getGo();
      protocol::go start;
      const auto list = m.getWithoutParameters();
      if (list.size() > 2 * words) KJ_FAIL_REQUIRE("a list has more elements than can fit");
      for (const std::uint32_t id : list) start.without_parameters.emplace_back(id);
      start.validate = m.getValidate();
      return message(std::move(start));
    }
    case tag::SUM_HELD: {
      static_assert(is_at<message, protocol::sum_held, tag::SUM_HELD>);
      const auto m = from.getSumHeld();
      return message(protocol::sum_held{m.getStep(), get_block(m), get_hash(m)});
    }
    case tag::VOTE: {
      static_assert(is_at<message, protocol::vote, tag::VOTE>);
      const auto m = from.getVote();
      return message(protocol::vote{
          .step = m.getStep(),
          .sums = get_all<protocol::block_sum, schema::BlockSum>(m.getSums(), words),
          .losses = get_all<protocol::leaf_loss, schema::LeafLoss>(m.getLosses(), words),
          .facts = get(m.getFacts())});
    }
    case tag::RECORD_NOTICE:
      static_assert(is_at<message, protocol::record_notice, tag::RECORD_NOTICE>);
      return message(get(from.getRecordNotice()));
    case tag::RECORDED:
      static_assert(is_at<message, protocol::recorded, tag::RECORDED>);
      return message(protocol::recorded{from.getRecorded()});
    case tag::VALIDATION_SHARE: {
      static_assert(is_at<message, protocol::validation_share, tag::VALIDATION_SHARE>);
      const auto m = from.getValidationShare();
      return message(protocol::validation_share{
          m.getStep(), get_all<protocol::leaf_loss, schema::LeafLoss>(m.getLosses(), words)});
    }
    case tag::SAVE_REQUEST: {
      static_assert(is_at<message, protocol::save_request, tag::SAVE_REQUEST>);
      const auto m = from.getSaveRequest();
      return message(protocol::save_request{m.getStep(), get(m.getFolder())});
    }
    case tag::SAVE_SHARE: {
      static_assert(is_at<message, protocol::save_share, tag::SAVE_SHARE>);
      const auto m = from.getSaveShare();
      return message(protocol::save_share{
          .step = m.getStep(),
          .blocks = get_all<protocol::saved_block, schema::SavedBlock>(m.getBlocks(), words),
          .failure = m.getFailure(),
          .message = get(m.getMessage()),
          .not_finite_in = get(m.getNotFiniteIn())});
    }
    case tag::HEARTBEAT: {
      static_assert(is_at<message, protocol::heartbeat, tag::HEARTBEAT>);
      const auto m = from.getHeartbeat();
      const auto doing = static_cast<std::uint16_t>(m.getDoing());
      if (doing > static_cast<std::uint16_t>(phase::ending))
        return error{exit_code::bad_data, fmt::format("there is no phase {}", doing)};
      return message(protocol::heartbeat{m.getStep(), static_cast<phase>(doing)});
    }
    case tag::STOP_WISH: {
      static_assert(is_at<message, protocol::stop_wish, tag::STOP_WISH>);
      const auto m = from.getStopWish();
      return message(protocol::stop_wish{get(m.getWhy()), m.getWholeRun(), m.getDrained()});
    }
    case tag::FAREWELL: {
      static_assert(is_at<message, protocol::farewell, tag::FAREWELL>);
      const auto m = from.getFarewell();
      return message(protocol::farewell{m.getCode(), get(m.getWhy())});
    }
    case tag::ADDRESS_TABLE:
      static_assert(is_at<message, protocol::address_table, tag::ADDRESS_TABLE>);
      return message(protocol::address_table{
          get_all<protocol::member_address, schema::MemberAddress>(from.getAddressTable(), words)});
    case tag::COLLECT: {
      static_assert(is_at<message, protocol::collect, tag::COLLECT>);
      const auto m = from.getCollect();
      return message(
          protocol::collect{generation(m.getPresent()), generation(m.getNext()), get(m.getWhy())});
    }
    case tag::PROMISE: {
      static_assert(is_at<message, protocol::promise, tag::PROMISE>);
      const auto m = from.getPromise();
      return message(protocol::promise{
          .next = generation(m.getNext()),
          .of_plan = m.getOfPlan(),
          .seen = m.getSeen(),
          .records = get_all<protocol::record_notice, schema::RecordNotice>(m.getRecords(), words),
          .blocks = get_all<protocol::held_fact, schema::HeldFact>(m.getBlocks(), words)});
    }
    case tag::PROMISE_REFUSED: {
      static_assert(is_at<message, protocol::promise_refused, tag::PROMISE_REFUSED>);
      const auto m = from.getPromiseRefused();
      return message(
          protocol::promise_refused{generation(m.getAsked()), generation(m.getPromised())});
    }
    case tag::MEMBER_GONE: {
      static_assert(is_at<message, protocol::member_gone, tag::MEMBER_GONE>);
      const auto m = from.getMemberGone();
      return message(protocol::member_gone{member_id(m.getWho()), incarnation(m.getLife()),
                                           m.getProven(), get(m.getHow())});
    }
    case tag::COPY_PLAN:
      static_assert(is_at<message, protocol::copy_plan, tag::COPY_PLAN>);
      return message(protocol::copy_plan{
          get_all<protocol::copy_plan::copy, schema::BlockCopy>(from.getCopyPlan(), words)});
    case tag::COPY_WISH:
      static_assert(is_at<message, protocol::copy_wish, tag::COPY_WISH>);
      return message(protocol::copy_wish{get_block(from.getCopyWish())});
    case tag::COPIES_HELD:
      static_assert(is_at<message, protocol::copies_held, tag::COPIES_HELD>);
      return message(protocol::copies_held{});
  }
  return error{exit_code::bad_data,
               fmt::format("there is no kind {}", static_cast<std::uint16_t>(from.which()))};
}

result<protocol::bulk_header> get(schema::BulkHeader::Reader from, std::size_t) {
  using protocol::bulk_header;
  using kind = schema::BulkHeader::Which;
  switch (from.which()) {
    case kind::NOTHING:
      break;
    case kind::NODE: {
      static_assert(is_at<bulk_header, protocol::node_header, kind::NODE>);
      const auto m = from.getNode();
      const tree_node node = {m.getFirst(), m.getLeaves()};
      return bulk_header(protocol::node_header{m.getStep(), {get_block(m), m.getSource(), node}});
    }
    case kind::SUM: {
      static_assert(is_at<bulk_header, protocol::sum_header, kind::SUM>);
      const auto m = from.getSum();
      return bulk_header(protocol::sum_header{m.getStep(), get_block(m), get_hash(m)});
    }
    case kind::PARAMETERS: {
      static_assert(is_at<bulk_header, protocol::parameters_header, kind::PARAMETERS>);
      const auto m = from.getParameters();
      return bulk_header(protocol::parameters_header{get_block(m), get(m.getDecided())});
    }
    case kind::STATE: {
      static_assert(is_at<bulk_header, protocol::state_header, kind::STATE>);
      const auto m = from.getState();
      return bulk_header(protocol::state_header{get_block(m), m.getVersion(), get_hash(m)});
    }
  }
  return error{exit_code::bad_data,
               fmt::format("there is no kind {}", static_cast<std::uint16_t>(from.which()))};
}

template <class Value, class Root>
result<Value> decode_words(kj::ArrayPtr<const capnp::word> words) {
  try {
    capnp::ReaderOptions limits;
    limits.traversalLimitInWords = words.size();  // each word once; pointers may not share
    limits.nestingLimit = 8;
    capnp::FlatArrayMessageReader reader(words, limits);
    if (reader.getEnd() != words.end())
      return error{exit_code::bad_data, "there is something behind its end"};
    return get(reader.getRoot<Root>(), words.size());
  } catch (const kj::Exception& e) {
    return error{exit_code::bad_data, e.getDescription().cStr()};
  }
}

template <class Value, class Root>
result<Value> decode_as(std::span<const std::byte> bytes, const char* name) {
  constexpr std::size_t word = sizeof(capnp::word);
  const auto read = [&]() -> result<Value> {
    const std::size_t count = bytes.size() / word;
    if (bytes.size() % word != 0 || count == 0)
      return error{exit_code::bad_data, "it is no whole number of words of 8 bytes"};
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(capnp::word) == 0)
      return decode_words<Value, Root>({reinterpret_cast<const capnp::word*>(bytes.data()), count});
    std::vector<capnp::word> aligned(count);
    std::memcpy(aligned.data(), bytes.data(), bytes.size());
    return decode_words<Value, Root>({aligned.data(), count});
  };
  auto value = read();
  if (value) return value;
  return error{exit_code::bad_data,
               fmt::format("a {} of {} bytes cannot be read: {}; do all members run the same "
                           "version of troupe?",
                           name, bytes.size(), value.failure().message)};
}

}  // namespace

result<protocol::message> decode(std::span<const std::byte> bytes) {
  return decode_as<protocol::message, schema::Message>(bytes, "message");
}

result<protocol::bulk_header> decode_header(std::span<const std::byte> bytes) {
  return decode_as<protocol::bulk_header, schema::BulkHeader>(bytes, "bulk header");
}

}  // namespace troupe::actors::wire
