// Values to bytes. Every put() takes its value apart by name, so that a field added to a message
// does not compile until it is sent; a message without put() does not compile either.
#include <actors/wire/messages.capnp.h>  // generated from messages.capnp
#include <capnp/serialize.h>
#include <kj/exception.h>
#include <kj/io.h>

#include <string>
#include <variant>

#include "actors/wire/codec.hpp"

namespace troupe::actors::wire {
namespace {

// Frequent messages and all headers fit, and need no memory but that of their result.
constexpr std::size_t scratch_words = 80;

capnp::Text::Reader text(const std::string& s) { return {s.c_str(), s.size()}; }

template <class Builder>
void put_block(Builder to, const protocol::block_id& from) {
  const auto& [layer, block] = from;
  to.setLayer(layer);
  to.setBlock(block);
}

template <class Builder>
void put_hash(Builder to, const hash128& from) {
  const auto& [high, low] = from;
  to.setHashHigh(high);
  to.setHashLow(low);
}

void put(schema::Hash::Builder to, const hash128& from) {
  const auto& [high, low] = from;
  to.setHigh(high);
  to.setLow(low);
}

void put(schema::MemberAddress::Builder to, const protocol::member_address& from) {
  const auto& [member, where] = from;
  to.setMember(member.value);
  to.setWhere({reinterpret_cast<const kj::byte*>(where.data()), where.size()});
}

void put(schema::LeafLoss::Builder to, const protocol::leaf_loss& from) {
  const auto& [leaf, loss_sum, tokens] = from;
  to.setLeaf(leaf);
  to.setLossSum(loss_sum);
  to.setTokens(tokens);
}

void put(schema::BlockSum::Builder to, const protocol::block_sum& from) {
  const auto& [block, hash, squares] = from;
  put_block(to, block);
  put_hash(to, hash);
  to.setSquares(squares);
}

void put(schema::SavedBlock::Builder to, const protocol::saved_block& from) {
  const auto& [block, weights, state, parameters, first_moments, second_moments] = from;
  put_block(to, block);
  put(to.initWeights(), weights);
  put(to.initState(), state);
  put(to.initParameters(), parameters);
  put(to.initFirstMoments(), first_moments);
  put(to.initSecondMoments(), second_moments);
}

void put(schema::StepFacts::Builder to, const protocol::step_facts& from) {
  const auto& [data, forward, backward, reduce, apply, wait, control_bytes, bulk_bytes, peak_memory,
               activation_bytes] = from;
  to.setData(data);
  to.setForward(forward);
  to.setBackward(backward);
  to.setReduce(reduce);
  to.setApply(apply);
  to.setWait(wait);
  to.setControlBytes(control_bytes);
  to.setBulkBytes(bulk_bytes);
  to.setPeakMemory(peak_memory);
  to.setActivationBytes(activation_bytes);
}

void put(schema::DecisionRecord::Builder to, const protocol::decision_record& from) {
  const auto& [step, updates, skip, why_skipped, scale, lr, loss, grad_norm, tokens] = from;
  to.setStep(step);
  to.setUpdates(updates);
  to.setSkip(skip);
  if (!why_skipped.empty()) to.setWhySkipped(text(why_skipped));
  to.setScale(scale);
  to.setLr(lr);
  to.setLoss(loss);
  to.setGradNorm(grad_norm);
  to.setTokens(tokens);
}

void put(schema::RecordNotice::Builder to, const protocol::record_notice& from) {
  const auto& [record, last, validate, lines, total_tokens, skipped_in_a_row, plan, world] = from;
  put(to.initRecord(), record);
  to.setLast(last);
  to.setValidate(validate);
  to.setLines(lines);
  to.setTotalTokens(total_tokens);
  to.setSkippedInARow(skipped_in_a_row);
  to.setPlan(plan.value);
  to.setWorld(world);
}

void put(schema::HeldFact::Builder to, const protocol::held_fact& from) {
  const auto& [block, version, next_sum, lost] = from;
  put_block(to, block);
  to.setVersion(version);
  to.setNextSum(next_sum);
  to.setLost(lost);
}

void put(schema::BlockCopy::Builder to, const protocol::copy_plan::copy& from) {
  const auto& [block, target] = from;
  put_block(to, block);
  to.setTo(target.value);
}

template <class List, class T>
void put_all(List to, const std::vector<T>& from) {
  for (unsigned i = 0; i < to.size(); ++i) put(to[i], from[i]);
}

// --- messages ---

using message_builder = schema::Message::Builder;

void put(message_builder to, const protocol::plan_notice& from) {
  const auto& [plan] = from;
  to.setPlanNotice(text(plan));
}

void put(message_builder to, const protocol::bulk_address& from) {
  const auto& [where] = from;
  to.setBulkAddress({reinterpret_cast<const kj::byte*>(where.data()), where.size()});
}

void put(message_builder to, const protocol::address_table& from) {
  const auto& [addresses] = from;
  put_all(to.initAddressTable(static_cast<unsigned>(addresses.size())), addresses);
}

void put(message_builder to, const protocol::ready& from) {
  const auto& [without_parameters] = from;
  to.setReady(without_parameters);
}

void put(message_builder root, const protocol::go& from) {
  const auto& [without_parameters, validate] = from;
  auto to = root.initGo();
  auto list = to.initWithoutParameters(static_cast<unsigned>(without_parameters.size()));
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, without_parameters[i].value);
  to.setValidate(validate);
}

void put(message_builder root, const protocol::collect& from) {
  const auto& [present, next, why] = from;
  auto to = root.initCollect();
  to.setPresent(present.value);
  to.setNext(next.value);
  to.setWhy(text(why));
}

void put(message_builder root, const protocol::promise& from) {
  const auto& [next, of_plan, seen, records, blocks] = from;
  auto to = root.initPromise();
  to.setNext(next.value);
  to.setOfPlan(of_plan);
  to.setSeen(seen);
  put_all(to.initRecords(static_cast<unsigned>(records.size())), records);
  put_all(to.initBlocks(static_cast<unsigned>(blocks.size())), blocks);
}

void put(message_builder root, const protocol::promise_refused& from) {
  const auto& [asked, promised] = from;
  auto to = root.initPromiseRefused();
  to.setAsked(asked.value);
  to.setPromised(promised.value);
}

void put(message_builder root, const protocol::member_gone& from) {
  const auto& [who, life, proven, how] = from;
  auto to = root.initMemberGone();
  to.setWho(who.value);
  to.setLife(life.value);
  to.setProven(proven);
  to.setHow(text(how));
}

void put(message_builder to, const protocol::copy_plan& from) {
  const auto& [copies] = from;
  put_all(to.initCopyPlan(static_cast<unsigned>(copies.size())), copies);
}

void put(message_builder root, const protocol::copy_wish& from) {
  const auto& [block] = from;
  put_block(root.initCopyWish(), block);
}

void put(message_builder to, const protocol::copies_held&) { to.setCopiesHeld(); }

void put(message_builder root, const protocol::sum_held& from) {
  const auto& [step, block, hash] = from;
  auto to = root.initSumHeld();
  to.setStep(step);
  put_block(to, block);
  put_hash(to, hash);
}

void put(message_builder root, const protocol::vote& from) {
  const auto& [step, sums, losses, facts] = from;
  auto to = root.initVote();
  to.setStep(step);
  put_all(to.initSums(static_cast<unsigned>(sums.size())), sums);
  put_all(to.initLosses(static_cast<unsigned>(losses.size())), losses);
  put(to.initFacts(), facts);
}

void put(message_builder to, const protocol::record_notice& from) {
  put(to.initRecordNotice(), from);
}

void put(message_builder to, const protocol::recorded& from) {
  const auto& [step] = from;
  to.setRecorded(step);
}

void put(message_builder root, const protocol::validation_share& from) {
  const auto& [step, losses] = from;
  auto to = root.initValidationShare();
  to.setStep(step);
  put_all(to.initLosses(static_cast<unsigned>(losses.size())), losses);
}

void put(message_builder root, const protocol::save_request& from) {
  const auto& [step, folder] = from;
  auto to = root.initSaveRequest();
  to.setStep(step);
  to.setFolder(text(folder));
}

void put(message_builder root, const protocol::save_share& from) {
  const auto& [step, blocks, failure, message, not_finite_in] = from;
  auto to = root.initSaveShare();
  to.setStep(step);
  put_all(to.initBlocks(static_cast<unsigned>(blocks.size())), blocks);
  to.setFailure(failure);
  to.setMessage(text(message));
  to.setNotFiniteIn(text(not_finite_in));
}

void put(message_builder root, const protocol::heartbeat& from) {
  const auto& [step, doing] = from;
  auto to = root.initHeartbeat();
  to.setStep(step);
  to.setDoing(static_cast<schema::Phase>(doing));
}

void put(message_builder root, const protocol::stop_wish& from) {
  const auto& [why, whole_run, drained] = from;
  auto to = root.initStopWish();
  to.setWhy(text(why));
  to.setWholeRun(whole_run);
  to.setDrained(drained);
}

void put(message_builder root, const protocol::farewell& from) {
  const auto& [code, why] = from;
  auto to = root.initFarewell();
  to.setCode(code);
  to.setWhy(text(why));
}

// --- headers ---

using header_builder = schema::BulkHeader::Builder;

void put(header_builder root, const protocol::node_header& from) {
  const auto& [step, key] = from;
  const auto& [block, source, node] = key;
  const auto& [first, leaves] = node;
  auto to = root.initNode();
  to.setStep(step);
  put_block(to, block);
  to.setSource(source);
  to.setFirst(first);
  to.setLeaves(leaves);
}

void put(header_builder root, const protocol::sum_header& from) {
  const auto& [step, block, hash] = from;
  auto to = root.initSum();
  to.setStep(step);
  put_block(to, block);
  put_hash(to, hash);
}

void put(header_builder root, const protocol::state_header& from) {
  const auto& [block, version, hash] = from;
  auto to = root.initState();
  put_block(to, block);
  to.setVersion(version);
  put_hash(to, hash);
}

// At most this many bytes of it, and no character of UTF-8 in halves.
std::string cut(const std::string& s, std::size_t at_most) {
  if (s.size() <= at_most) return s;
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  std::size_t end = at_most;
  for (int i = 0; i < 3 && end > 0 && continues(s[end]); ++i) --end;
  return s.substr(0, end);
}

void put(header_builder root, const protocol::parameters_header& from) {
  const auto& [block, decided] = from;
  auto to = root.initParameters();
  put_block(to, block);
  if (decided.record.why_skipped.size() <= max_header_reason_bytes) {
    put(to.initDecided(), decided);
    return;
  }
  protocol::record_notice shorter = decided;
  shorter.record.why_skipped = cut(decided.record.why_skipped, max_header_reason_bytes);
  put(to.initDecided(), shorter);
}

template <class Root, class Value>
std::vector<std::byte> encode_as(const Value& what) {
  try {
    capnp::word scratch[scratch_words] = {};
    capnp::MallocMessageBuilder builder(kj::arrayPtr(scratch, scratch_words));
    std::visit([to = builder.initRoot<Root>()](const auto& alternative) { put(to, alternative); },
               what);
    std::vector<std::byte> bytes(capnp::computeSerializedSizeInWords(builder) *
                                 sizeof(capnp::word));
    kj::ArrayOutputStream out({reinterpret_cast<kj::byte*>(bytes.data()), bytes.size()});
    capnp::writeMessage(out, builder);
    return bytes;
  } catch (const kj::Exception& e) {
    // Only sizes that no plan leads to: a text or list beyond 2^29 elements.
    ensure(false, std::string("a message cannot be encoded: ") + e.getDescription().cStr());
    return {};
  }
}

}  // namespace

std::vector<std::byte> encode(const protocol::message& what) {
  return encode_as<schema::Message>(what);
}

std::vector<std::byte> encode_header(const protocol::bulk_header& what) {
  return encode_as<schema::BulkHeader>(what);
}

}  // namespace troupe::actors::wire
