#include "actors/protocol/held_block.hpp"

#include <algorithm>

namespace troupe::actors::protocol {
namespace {

std::string name_of(block_id block) {
  return "block " + std::to_string(block.block) + " of layer " + std::to_string(block.layer);
}

error failure(block_id block, std::uint64_t version, std::uint64_t step, const std::string& what) {
  return {exit_code::defect, name_of(block) + " at version " + std::to_string(version) + ", step " +
                                 std::to_string(step) + ": " + what};
}

}  // namespace

primary_block::primary_block(block_id block, std::uint64_t version,
                             const std::vector<node_key>& inputs,
                             const std::vector<member_id>& backups)
    : block_(block),
      version_(version),
      inputs_(inputs),
      backups_(backups),
      missing_(inputs.begin(), inputs.end()) {
  std::ranges::sort(inputs_);
  ensure(!inputs.empty() && missing_.size() == inputs.size(),
         "a primary needs its inputs, each once");
}

error primary_block::wrong(std::uint64_t step, const std::string& what) const {
  return failure(block_, version_, step, what);
}

void primary_block::add_backup(member_id who) {
  ensure(may_take_backup() && std::ranges::find(backups_, who) == backups_.end(),
         "a copy was begun at the wrong moment, or twice");
  backups_.push_back(who);
}

result<primary_block::order> primary_block::node_arrived(std::uint64_t step, const node_key& key) {
  const bool summed = state_ == state::ready || state_ == state::applying;
  const bool next = step == version_ + 2 && summed;
  if (!next && (step != version_ + 1 || state_ != state::collecting)) {
    return wrong(step, "a gradient node came that this step does not wait for");
  }
  const bool fresh = next ? std::ranges::binary_search(inputs_, key) && early_.insert(key).second
                          : missing_.erase(key) > 0;
  if (!fresh) {
    return wrong(step, "gradient node " + std::to_string(key.node.first) + "+" +
                           std::to_string(key.node.leaves) +
                           " came twice or is none of this block's inputs");
  }
  if (next || !missing_.empty()) return order::none;
  state_ = state::reducing;
  return order::reduce;
}

result<primary_block::order> primary_block::reduced(std::uint64_t step, const block_sum& sum) {
  if (step != version_ + 1 || state_ != state::reducing) {
    return wrong(step, "a sum was completed that nobody asked for");
  }
  sum_ = sum;
  state_ = state::forwarding;
  waiting_for_ = {backups_.begin(), backups_.end()};
  if (waiting_for_.empty()) return ready_if_all_hold();
  return order::forward;
}

result<primary_block::order> primary_block::held(member_id by, std::uint64_t step,
                                                 const hash128& hash) {
  if (step != version_ + 1 || state_ != state::forwarding) {
    return wrong(step, "member " + std::to_string(by.value) + " holds a sum that was not sent");
  }
  if (waiting_for_.erase(by) == 0) {
    return wrong(step, "member " + std::to_string(by.value) +
                           " acknowledged twice or is no backup of this block");
  }
  if (hash != sum_.hash) {
    return wrong(step, "member " + std::to_string(by.value) + " holds a sum with hash " +
                           hash.hex() + ", the primary's is " + sum_.hash.hex() +
                           ": bits were changed on the way or in memory");
  }
  return ready_if_all_hold();
}

primary_block::order primary_block::ready_if_all_hold() {
  if (!waiting_for_.empty()) return order::none;
  state_ = state::ready;
  return order::vote;
}

result<primary_block::order> primary_block::decided(std::uint64_t step) {
  if (step != version_ + 1 || state_ != state::ready) {
    return wrong(step, "a decision came before this block was ready for it");
  }
  state_ = state::applying;
  return order::apply;
}

result<primary_block::order> primary_block::applied(std::uint64_t step) {
  if (step != version_ + 1 || state_ != state::applying) {
    return wrong(step, "an update ended that was not begun");
  }
  version_ = step;
  state_ = state::collecting;
  missing_ = {inputs_.begin(), inputs_.end()};
  for (const node_key& key : early_) missing_.erase(key);
  early_.clear();
  return order::publish;
}

primary_block::order primary_block::published() {
  if (state_ != state::collecting || !missing_.empty()) return order::none;
  state_ = state::reducing;
  return order::reduce;
}

backup_block::backup_block(block_id block, std::uint64_t version)
    : block_(block), version_(version) {}

backup_block::backup_block(block_id block) : block_(block), version_(0), here_(false) {}

backup_block::order backup_block::copied(std::uint64_t version) {
  ensure(!here_, "a copy came for a block that is here");
  here_ = true;
  version_ = version;
  const auto next = std::ranges::find(arrivals_, version_ + 1, &arrival::step);
  if (next == arrivals_.end() || !next->verified) return order::none;
  held_ = next->announced;
  return order::acknowledge;
}

error backup_block::wrong(std::uint64_t step, const std::string& what) const {
  return failure(block_, version_, step, what);
}

result<backup_block::order> backup_block::sum_arrived(std::uint64_t step,
                                                      const hash128& announced) {
  const bool next = step == version_ + 1;
  const bool one_after =
      step == version_ + 2 && std::ranges::any_of(arrivals_, [&](const arrival& a) {
        return a.step == version_ + 1 && a.verified;
      });
  // Before the copy is here, what follows on it is not known: its primary sends one sum at most.
  if (here_ && !next && !one_after)
    return wrong(step, "a gradient sum came that this version cannot take");
  if (std::ranges::any_of(arrivals_, [&](const arrival& a) { return a.step == step; })) {
    return wrong(step, "a gradient sum came twice");
  }
  arrivals_.push_back({step, announced, false});
  return order::verify;
}

result<backup_block::order> backup_block::verified(std::uint64_t step, const hash128& hash) {
  const auto it = std::ranges::find(arrivals_, step, &arrival::step);
  if (it == arrivals_.end() || it->verified) {
    return wrong(step, "a hash came of a sum that did not arrive");
  }
  if (hash != it->announced) {
    return wrong(step, "the gradient sum has hash " + hash.hex() + ", its primary sent " +
                           it->announced.hex() + ": bits were changed on the way or in memory");
  }
  it->verified = true;
  // Acknowledged once the step before is applied, or the copy is here.
  if (!here_ || step != version_ + 1) return order::none;
  held_ = hash;
  return order::acknowledge;
}

result<backup_block::order> backup_block::decided(std::uint64_t step) {
  const auto it = std::ranges::find(arrivals_, step, &arrival::step);
  if (step != version_ + 1 || applying_ || it == arrivals_.end() || !it->verified) {
    return wrong(step, "a decision came before this block was ready for it");
  }
  applying_ = true;
  return order::apply;
}

result<backup_block::order> backup_block::applied(std::uint64_t step) {
  if (step != version_ + 1 || !applying_) return wrong(step, "an update ended that was not begun");
  applying_ = false;
  version_ = step;
  std::erase_if(arrivals_, [&](const arrival& a) { return a.step == step; });
  const auto next = std::ranges::find(arrivals_, version_ + 1, &arrival::step);
  if (next == arrivals_.end() || !next->verified) return order::none;
  held_ = next->announced;
  return order::acknowledge;
}

}  // namespace troupe::actors::protocol
