#include "actors/sim/toy_computation.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "config/base/error.hpp"

namespace troupe::actors::sim {

toy_computation::toy_computation(const toy_shape& toy, timeline& time, const clock_source& clock,
                                 toy_speed speed, std::function<void(std::function<void()>)> post,
                                 std::function<void(std::uint64_t, std::uint32_t)> computed)
    : toy_(toy),
      shape_(shape_of(toy)),
      time_(time),
      clock_(clock),
      speed_(std::move(speed)),
      post_(std::move(post)),
      computed_(std::move(computed)) {}

void toy_computation::adopt(const member_share& share) {
  ++share_number_;  // what the share before has still to do reads memory that ends here
  share_ = share;
  held_ = {share.primary.begin(), share.primary.end()};
  held_.insert(share.backup.begin(), share.backup.end());
  slots_.clear();
  const std::vector<tree_node> own =
      complete_nodes(share.first_leaf, share.leaves, share.virtual_ranks);
  nodes_.clear();
  for (std::uint32_t layer = 0; layer < shape_.layers.size(); ++layer) {
    for (std::uint32_t block = 0; block < shape_.layers[layer].size(); ++block) {
      states_[{layer, block}];
      for (std::uint8_t s = 0; s < shape_.layers[layer][block].sources.size(); ++s) {
        for (const tree_node& node : own) nodes_[{{layer, block}, s, node}];
      }
    }
  }
  for (const block_id block : held_) {
    sums_[{block, 0}];
    sums_[{block, 1}];
  }
}

void toy_computation::initialize(completion done) {
  for (auto& [id, state] : states_) state = first_state(toy_, id);
  torn_.clear();
  post_([done = std::move(done)] { done(nullptr); });
}

// --- jobs ---

void toy_computation::queue(std::deque<job>& jobs, time_since_start takes,
                            std::function<void()> work, std::function<void()> begin) {
  const auto of_this_share = [this](std::function<void()> what) {
    return [this, number = share_number_, what = std::move(what)] {
      if (number == share_number_) what();
    };
  };
  jobs.push_back({takes, of_this_share(std::move(work)), of_this_share(std::move(begin))});
  if (!busy_) run_next();
}

void toy_computation::run_next() {
  std::deque<job>& from = protocol_jobs_.empty() ? compute_jobs_ : protocol_jobs_;
  if (from.empty()) return;
  job next = std::move(from.front());
  from.pop_front();
  busy_ = true;
  next.begin();
  time_.at(clock_.now() + next.takes,
           [this, alive = std::weak_ptr(alive_), work = std::move(next.work)] {
             if (alive.expired()) return;
             busy_ = false;
             work();
             if (!busy_) run_next();
           });
}

// --- a step ---

void toy_computation::load(std::uint64_t, completion done) {
  time_.at(clock_.now() + speed_.load(),
           [this, alive = std::weak_ptr(alive_), done = std::move(done)] {
             if (!alive.expired()) post_([done] { done(nullptr); });
           });
}

void toy_computation::start(std::uint64_t step, step_events events) {
  ensure(!events_, "a step was started while another one is computed");
  step_ = step;
  ++attempt_;
  events_ = std::move(events);
  open_.clear();
  next_forward_ = 0;
  forward_queued_ = false;
  activations_.assign(toy_.layers + 1, std::vector<toy_activation>(share_.leaves));
  for (std::uint32_t i = 0; i < share_.leaves; ++i) {
    activations_[0][i] = first_activation(step, share_.first_leaf + i);
  }
}

void toy_computation::open(std::uint32_t layer) {
  open_.insert(layer);
  forward_next();
}

std::vector<const toy_block*> toy_computation::parameters_of(std::uint32_t layer) const {
  std::vector<const toy_block*> used;
  for (std::uint32_t block = 0; block < toy_.blocks; ++block) {
    used.push_back(&states_.at({layer, block}).parameters);
  }
  if (toy_.tied && layer + 1 == toy_.layers) used.push_back(&states_.at({0, 0}).parameters);
  return used;
}

// Layers run in order, each once it is open.
void toy_computation::forward_next() {
  if (!events_ || forward_queued_ || next_forward_ == toy_.layers) return;
  if (!open_.contains(next_forward_)) return;
  forward_queued_ = true;
  queue(compute_jobs_, speed_.layer(), [this, attempt = attempt_] {
    if (attempt_ != attempt) return;  // cancelled meanwhile
    const std::uint32_t layer = next_forward_;
    computed_(step_, layer);
    const std::vector<const toy_block*> used = parameters_of(layer);
    for (std::uint32_t i = 0; i < share_.leaves; ++i) {
      activations_[layer + 1][i] = through_layer(activations_[layer][i], layer, used);
    }
    forward_queued_ = false;
    ++next_forward_;
    if (next_forward_ < toy_.layers) return forward_next();
    backward(toy_.layers - 1);
  });
}

void toy_computation::backward(std::uint32_t layer) {
  queue(compute_jobs_, speed_.layer(), [this, attempt = attempt_, layer] {
    if (attempt_ != attempt) return;
    const auto ready = [this](std::uint32_t of, std::uint8_t source) {
      make_nodes(of, source);
      post_([call = events_->nodes_ready, of, source] { call(of, source); });
    };
    if (toy_.tied && layer + 1 == toy_.layers) ready(0, 1);
    ready(layer, 0);
    if (layer > 0) return backward(layer - 1);
    std::vector<leaf_loss> losses;
    for (std::uint32_t i = 0; i < share_.leaves; ++i) {
      losses.push_back(loss_of(share_.first_leaf + i, activations_.back()[i]));
    }
    if (events_->micro_batch_done) post_(events_->micro_batch_done);
    post_([call = std::move(events_->finished), losses] { call(nullptr, losses); });
    events_.reset();
  });
}

// The nodes of the share, from its leaves, in the fixed order.
void toy_computation::make_nodes(std::uint32_t layer, std::uint8_t source) {
  for (auto& [key, value] : nodes_) {
    if (key.block.layer != layer || key.source != source) continue;
    const auto sum = [&, k = key](auto& self, tree_node at) -> toy_block {
      if (at.leaves == 1) {
        const std::uint32_t i = at.first - share_.first_leaf;
        return gradient_of({k.block, k.source, at}, activations_[layer + 1][i],
                           activations_.back()[i]);
      }
      const auto [left, right] = halves(at);
      return add(self(self, left), self(self, right));
    };
    value = sum(sum, key.node);
  }
}

void toy_computation::cancel() {
  if (!events_) return;
  ++attempt_;
  post_([call = std::move(events_->finished)] {
    call(std::make_exception_ptr(std::runtime_error("cancelled")), {});
  });
  events_.reset();
}

std::span<const std::byte> toy_computation::node(const node_key& key) const {
  const auto it = nodes_.find(key);
  if (it == nodes_.end()) return {};
  const std::size_t elements = key.source == 0 ? toy_elements : toy_tied_elements;
  return std::as_bytes(std::span(it->second).first(elements));
}

// --- held blocks ---

std::span<std::byte> toy_computation::slot(const node_key& key) {
  if (!std::ranges::binary_search(share_.primary, key.block)) return {};
  if (key.source >= shape_.layers[key.block.layer][key.block.block].sources.size() ||
      !is_node(key.node, share_.virtual_ranks) || nodes_.contains(key)) {
    return {};
  }
  const std::size_t elements = key.source == 0 ? toy_elements : toy_tied_elements;
  return std::as_writable_bytes(std::span(slots_[key]).first(elements));
}

toy_block toy_computation::tree(block_id block, std::uint8_t source, tree_node at) const {
  const node_key key{block, source, at};
  if (const auto own = nodes_.find(key); own != nodes_.end()) return own->second;
  if (const auto other = slots_.find(key); other != slots_.end()) return other->second;
  const auto [left, right] = halves(at);
  return add(tree(block, source, left), tree(block, source, right));
}

void toy_computation::reduce(block_id block, std::uint64_t step, answer<sum_facts> done) {
  queue(protocol_jobs_, speed_.protocol(), [this, block, step, done = std::move(done)] {
    const tree_node root{0, share_.virtual_ranks};
    const bool tied = shape_.layers[block.layer][block.block].sources.size() > 1;
    const toy_block own = tree(block, 0, root);
    const toy_block second = tied ? tree(block, 1, root) : toy_block{};
    toy_block& sum = sums_.at({block, step % 2});
    sum = join(own, tied ? &second : nullptr);
    post_([done, facts = sum_facts{hash_of(sum), squares_of(sum)}] { done(nullptr, facts); });
  });
}

std::span<std::byte> toy_computation::sum(block_id block, std::uint64_t step) {
  const auto it = sums_.find({block, step % 2});
  if (it == sums_.end()) return {};
  return std::as_writable_bytes(std::span(it->second));
}

void toy_computation::hash_sum(block_id block, std::uint64_t step, answer<hash128> done) {
  queue(protocol_jobs_, speed_.protocol(), [this, block, step, done = std::move(done)] {
    post_([done, hash = hash_of(sums_.at({block, step % 2}))] { done(nullptr, hash); });
  });
}

void toy_computation::apply(block_id block, const protocol::decision_record& record,
                            completion done) {
  // While it runs, the block is half written: whoever reads it then reads nonsense.
  const auto tear = [this, block] {
    toy_state& state = states_.at(block);
    torn_[block] = state;
    for (toy_block* part : {&state.parameters, &state.first_moments, &state.second_moments}) {
      for (std::size_t i = 0; i < part->size() / 2; ++i) (*part)[i] += 1.0f;
    }
  };
  queue(
      protocol_jobs_, speed_.protocol(),
      [this, block, record, done = std::move(done)] {
        states_.at(block) = torn_.at(block);
        torn_.erase(block);
        sim::apply(record, sums_.at({block, record.step % 2}), states_.at(block));
        post_([done] { done(nullptr); });
      },
      tear);
}

std::span<std::byte> toy_computation::parameters(block_id block) {
  const auto it = states_.find(block);
  if (it == states_.end()) return {};
  return std::as_writable_bytes(std::span(it->second.parameters));
}

void toy_computation::hash_state(block_id block, answer<block_hashes> done) {
  queue(protocol_jobs_, speed_.protocol(), [this, block, done = std::move(done)] {
    post_([done, hashes = hashes_of(states_.at(block))] { done(nullptr, hashes); });
  });
}

block_memory toy_computation::memory(block_id block) {
  if (!held_.contains(block)) return {};
  toy_state& s = states_.at(block);
  return {s.parameters, s.first_moments, s.second_moments};
}

void toy_computation::copy_state(block_id block, answer<state_copy> done) {
  queue(protocol_jobs_, speed_.protocol(), [this, block, done = std::move(done)] {
    const toy_state& s = states_.at(block);
    auto bytes = std::make_shared<std::vector<std::byte>>();
    for (const toy_block* part : {&s.parameters, &s.first_moments, &s.second_moments}) {
      const auto more = std::as_bytes(std::span(*part));
      bytes->insert(bytes->end(), more.begin(), more.end());
    }
    post_([done, copy = state_copy{bytes, hash_bytes(*bytes)}] { done(nullptr, copy); });
  });
}

void toy_computation::make_room(block_id block) {
  held_.insert(block);
  sums_[{block, 0}];
  sums_[{block, 1}];
}

void toy_computation::take_state(block_id block,
                                 std::shared_ptr<const std::vector<std::byte>> bytes,
                                 const hash128& hash, completion done) {
  queue(protocol_jobs_, speed_.protocol(), [this, block, bytes, hash, done = std::move(done)] {
    if (hash_bytes(*bytes) != hash || bytes->size() != 3 * sizeof(toy_block)) {
      return post_([done] {
        done(std::make_exception_ptr(std::runtime_error("a copy does not fit its hash")));
      });
    }
    toy_state& s = states_.at(block);
    const std::byte* from = bytes->data();
    for (toy_block* part : {&s.parameters, &s.first_moments, &s.second_moments}) {
      // Where it computes, its parameters are there.
      if (part != &s.parameters || share_.leaves == 0) {
        std::memcpy(part->data(), from, sizeof(toy_block));
      }
      from += sizeof(toy_block);
    }
    post_([done] { done(nullptr); });
  });
}

void toy_computation::evaluate(answer<std::vector<leaf_loss>> done) {
  queue(compute_jobs_, speed_.layer(), [this, done = std::move(done)] {
    std::vector<leaf_loss> losses;
    for (std::uint32_t i = 0; i < share_.leaves; ++i) {
      toy_activation at = first_activation(0, share_.first_leaf + i);
      for (std::uint32_t layer = 0; layer < toy_.layers; ++layer) {
        at = through_layer(at, layer, parameters_of(layer));
      }
      losses.push_back(loss_of(share_.first_leaf + i, at));
    }
    post_([done, losses] { done(nullptr, losses); });
  });
}

}  // namespace troupe::actors::sim
