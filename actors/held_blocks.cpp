#include "actors/held_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "actors/block_reduction.hpp"
#include "config/base/error.hpp"
#include "model/checkpoint/state_hash.hpp"

namespace troupe::actors {
namespace {

using compute::ops;
using compute::view;

std::span<std::byte> bytes_of(view v) { return std::as_writable_bytes(v.host<float>()); }

std::size_t first_element(block_id block) { return block.block * model::block_elements; }

}  // namespace

held_blocks::held_blocks(const model::network& net, const world_shape& shape,
                         const model::adamw_settings& settings, protocol_jobs jobs,
                         work_seconds& seconds)
    : net_(net), shape_(shape), settings_(settings), jobs_(std::move(jobs)), seconds_(seconds) {}

const held_blocks::held_ptr& held_blocks::at(block_id block) const {
  const auto found = blocks_.find(block);
  ensure(found != blocks_.end(), "a member was asked about a block that it does not hold");
  return found->second;
}

view held_blocks::model_part(model::model_state& state, block_id block) const {
  return state.layers.at(block.layer)
      .parameters.part(first_element(block), shape_of(block).elements);
}

void held_blocks::adopt(const member_share& share, const computing_part& part) {
  std::map<block_id, held_ptr> blocks;
  for (const block_id& b : share.primary) blocks.emplace(b, take_over(b, true, part));
  for (const block_id& b : share.backup) blocks.emplace(b, take_over(b, false, part));
  blocks_ = std::move(blocks);
  part_ = part;
  virtual_ranks_ = share.virtual_ranks;
  own_nodes_ = complete_nodes(share.first_leaf, share.leaves, share.virtual_ranks);
}

held_blocks::held_ptr held_blocks::take_over(block_id block, bool primary,
                                             const computing_part& part) {
  const auto known = blocks_.find(block);
  if (known == blocks_.end()) {
    const auto h = std::make_shared<held>();
    const std::size_t size = shape_of(block).elements;
    h->first_moment = net_.device().allocate(size, compute::dtype::float32);
    h->second_moment = net_.device().allocate(size, compute::dtype::float32);
    h->squares = net_.device().allocate(1, compute::dtype::float64);
    h->arrivals = std::make_shared<slots>();
    h->primary = primary;
    place_parameters(h, block, part);
    return h;
  }
  const held_ptr h = known->second;
  h->primary = primary;
  // Nodes of the share before. A reduction that still runs adds in their memory.
  if (h->reductions > 0) h->arrivals = std::make_shared<slots>();
  for (auto& [key, a] : h->arrivals->filled) h->arrivals->idle.push_back(std::move(a.values));
  h->arrivals->filled.clear();
  if (!primary) h->arrivals->idle.clear();
  keep_sums(h, part);
  place_parameters(h, block, part);
  return h;
}

void held_blocks::place_parameters(const held_ptr& h, block_id block, const computing_part& part) {
  if (h->parameters && h->state == part.state) return;
  const view before = h->parameters;
  // What the job reads must live until it is done.
  const auto keep = std::make_shared<std::pair<compute::buffer, std::shared_ptr<void>>>(
      std::move(h->own_parameters), h->state);
  h->own_parameters = {};
  h->state = part.state;
  if (part.state) {
    h->parameters = model_part(*part.state, block);
  } else {
    h->own_parameters = net_.device().allocate(shape_of(block).elements, compute::dtype::float32);
    h->parameters = h->own_parameters.all();
  }
  if (!before) return;
  jobs_.submit(
      seconds_.apply,
      [h, keep, before, after = h->parameters](ops& ops) { ops.copy(before, after); },
      computation::completion());
}

// Sums that lie in the tree of a pass that ends get memory of their own.
void held_blocks::keep_sums(const held_ptr& h, const computing_part& part) {
  if (part.pass == part_.pass) return;
  for (gradient_sum& sum : h->sums) {
    if (!sum.alias) continue;
    const view from = std::exchange(sum.alias, view{});
    sum.own = net_.device().allocate(from.size, compute::dtype::float32);
    jobs_.submit(
        seconds_.apply,
        [h, keep = part_.pass, from, to = sum.own.all()](ops& ops) { ops.copy(from, to); },
        computation::completion());
  }
}

view held_blocks::own_node(const node_key& key) const {
  ensure(part_.pass != nullptr, "a node was asked of a member that computes nothing");
  const view all = part_.pass->node({key.block.layer, key.source}, key.node);
  const block_shape& shape = shape_of(key.block);
  const std::size_t size = shape.sources.at(key.source);
  if (key.source == 0) return all.part(first_element(key.block), size);
  const model::tensor_info* table =
      net_.layout()[key.block.layer].find(model::tensor_role::token_table);
  const std::size_t begin = first_element(key.block) + shape.tied_offset;
  return all.part(begin - table->offset, size);
}

std::span<std::byte> held_blocks::slot(const node_key& key) {
  const auto found = blocks_.find(key.block);
  if (found == blocks_.end() || !found->second->primary) return {};
  if (key.source >= shape_of(key.block).sources.size() || !is_node(key.node, virtual_ranks_) ||
      std::ranges::find(own_nodes_, key.node) != own_nodes_.end()) {
    return {};
  }
  held& h = *found->second;
  const auto [place, is_new] = h.arrivals->filled.try_emplace({key.source, key.node});
  if (is_new) {
    const std::size_t size = shape_of(key.block).sources.at(key.source);
    std::vector<compute::buffer>& idle = h.arrivals->idle;
    const auto fitting = std::ranges::find(idle, size, [](const auto& b) { return b.size(); });
    if (fitting != idle.end()) {
      place->second.values = std::move(*fitting);
      idle.erase(fitting);
    } else {
      place->second.values = net_.device().allocate(size, compute::dtype::float32);
    }
  }
  place->second.asked_for = true;
  return bytes_of(place->second.values.all());
}

void held_blocks::reduce(block_id block, std::uint64_t step, computation::answer<sum_facts> done) {
  const held_ptr h = at(block);
  ensure(h->primary, "a block was to be summed by a member that is not its primary");
  const block_shape& shape = shape_of(block);
  gradient_sum& sum = h->sums[step % 2];
  std::vector<block_addition> additions;
  std::array<tree_input, 2> roots;
  for (std::uint8_t source = 0; source < shape.sources.size(); ++source) {
    const auto find = [&](tree_node node) -> std::optional<tree_input> {
      const auto arrived = h->arrivals->filled.find({source, node});
      if (arrived != h->arrivals->filled.end() && arrived->second.asked_for) {
        return tree_input{arrived->second.values.all(), true};
      }
      if (std::ranges::find(own_nodes_, node) == own_nodes_.end()) return std::nullopt;
      return tree_input{own_node({block, source, node}), false};
    };
    const planned_sum planned = plan_sum(whole(), find);
    additions.insert(additions.end(), planned.additions.begin(), planned.additions.end());
    roots[source] = planned.root;
  }
  const view total = roots[0].values;
  if (shape.sources.size() > 1) {
    additions.push_back({roots[1].values, total.part(shape.tied_offset, shape.sources[1]), true});
  }
  if (roots[0].writable) {
    auto& filled = h->arrivals->filled;
    const auto result = std::ranges::find_if(
        filled, [&](const auto& slot) { return slot.second.values.all().data == total.data; });
    if (sum.own) h->arrivals->idle.push_back(std::move(sum.own));
    sum = {std::move(result->second.values), {}, step};
    filled.erase(result);
  } else {
    sum.alias = total;
    sum.step = step;
  }
  for (auto& [key, a] : h->arrivals->filled) a.asked_for = false;
  ++h->reductions;
  jobs_.submit<sum_facts>(
      seconds_.reduce,
      [h, slots = h->arrivals, pass = part_.pass, additions = std::move(additions), total](
          ops& ops, sum_facts& facts) {
        for (const block_addition& addition : additions) carry_out(ops, addition);
        facts.hash = hash_bytes(bytes_of(total));
        ops.sum_squares(total, h->squares.all());
        ops.copy(h->squares.all(), compute::host_view(std::span(&facts.squares, 1)));
      },
      [h, done = std::move(done)](std::exception_ptr trouble, const sum_facts& facts) {
        --h->reductions;
        done(trouble, facts);
      });
}

view held_blocks::where(gradient_sum& sum, block_id block) {
  if (sum.alias) return sum.alias;
  if (!sum.own) sum.own = net_.device().allocate(shape_of(block).elements, compute::dtype::float32);
  return sum.own.all();
}

std::span<std::byte> held_blocks::sum(block_id block, std::uint64_t step) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return {};
  gradient_sum& sum = found->second->sums[step % 2];
  if (sum.step != step) sum.alias = {};
  sum.step = step;
  return bytes_of(where(sum, block));
}

void held_blocks::hash_sum(block_id block, std::uint64_t step, computation::answer<hash128> done) {
  const held_ptr h = at(block);
  gradient_sum& sum = h->sums[step % 2];
  ensure(sum.step == step, "a gradient sum was to be hashed that never arrived");
  jobs_.submit<hash128>(
      seconds_.reduce,
      [h, values = where(sum, block)](ops&, hash128& hash) { hash = hash_bytes(bytes_of(values)); },
      std::move(done));
}

void held_blocks::apply(block_id block, const protocol::decision_record& record,
                        computation::completion done) {
  const held_ptr h = at(block);
  if (record.skip) {
    jobs_.submit(
        seconds_.apply, [](ops&) {}, std::move(done));
    return;
  }
  gradient_sum& sum = h->sums[record.step % 2];
  ensure(sum.step == record.step, "a block was to be updated without its gradient sum");
  const model::update_scalars scalars{
      .scale = record.scale,
      .lr = record.lr,
      .correction1 = model::bias_correction(settings_.beta1, record.updates),
      .correction2 = model::bias_correction(settings_.beta2, record.updates)};
  const model::block_values values{.gradient = where(sum, block),
                                   .parameters = h->parameters,
                                   .first_moment = h->first_moment.all(),
                                   .second_moment = h->second_moment.all()};
  jobs_.submit(
      seconds_.apply,
      [this, h, state = h->state, pass = part_.pass, block, scalars, values](ops& ops) {
        model::update_block(ops, net_.layout()[block.layer], block.block, settings_, scalars,
                            values);
      },
      std::move(done));
}

std::span<std::byte> held_blocks::parameters(block_id block) {
  const auto found = blocks_.find(block);
  if (found != blocks_.end()) return bytes_of(found->second->parameters);
  if (!part_.state || !shape_.has(block)) return {};
  return bytes_of(model_part(*part_.state, block));
}

void held_blocks::hash_state(block_id block, computation::answer<block_hashes> done) {
  const held_ptr h = at(block);
  jobs_.submit<block_hashes>(
      seconds_.reduce,
      [h, state = h->state, parameters = h->parameters](ops&, block_hashes& hashes) {
        const std::span<const float> values = parameters.host<float>();
        hashes.weights = checkpoint::block_weights_hash(values);
        hashes.state = checkpoint::block_state_hash(
            {values, h->first_moment.all().host<float>(), h->second_moment.all().host<float>()});
      },
      std::move(done));
}

block_memory held_blocks::memory(block_id block) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return {};
  held& h = *found->second;
  return {h.parameters.host<float>(), h.first_moment.all().host<float>(),
          h.second_moment.all().host<float>()};
}

void held_blocks::copy_state(block_id block, computation::answer<computation::state_copy> done) {
  const held_ptr h = at(block);
  jobs_.submit<computation::state_copy>(
      seconds_.apply,
      [h, state = h->state, parameters = h->parameters](ops&, computation::state_copy& copy) {
        const auto all = std::make_shared<std::vector<std::byte>>();
        all->reserve(3 * parameters.size * sizeof(float));
        for (const view part : {parameters, h->first_moment.all(), h->second_moment.all()}) {
          const std::span<const std::byte> bytes = bytes_of(part);
          all->insert(all->end(), bytes.begin(), bytes.end());
        }
        copy.hash = hash_bytes(*all);
        copy.bytes = all;
      },
      std::move(done));
}

void held_blocks::make_room(block_id block) {
  if (!blocks_.contains(block)) blocks_.emplace(block, take_over(block, false, part_));
}

void held_blocks::take_state(block_id block, std::shared_ptr<const std::vector<std::byte>> bytes,
                             const hash128& hash, computation::completion done) {
  const held_ptr h = at(block);
  jobs_.submit(
      seconds_.apply,
      [h, bytes, hash, parameters = h->parameters, computes = h->state != nullptr](ops&) {
        const std::size_t part = parameters.size * sizeof(float);
        if (bytes->size() != 3 * part || hash_bytes(*bytes) != hash) {
          throw std::runtime_error(
              "the copy of a block has another hash than was sent with it: bits were changed on "
              "the "
              "way or in memory");
        }
        if (!computes) std::memcpy(bytes_of(parameters).data(), bytes->data(), part);
        std::memcpy(bytes_of(h->first_moment.all()).data(), bytes->data() + part, part);
        std::memcpy(bytes_of(h->second_moment.all()).data(), bytes->data() + 2 * part, part);
      },
      std::move(done));
}

std::vector<held_blocks::first_values> held_blocks::begin_again() {
  std::vector<first_values> spare;
  for (const auto& [block, h] : blocks_) {
    jobs_.submit(
        seconds_.apply,
        [h](ops& ops) {
          ops.fill(h->first_moment.all(), 0.0f);
          ops.fill(h->second_moment.all(), 0.0f);
        },
        computation::completion());
    if (!h->state) spare.push_back({block, h->parameters, h});
  }
  return spare;
}

}  // namespace troupe::actors
