#include "model/network.hpp"

#include <algorithm>

#include "config/base/error.hpp"
#include "model/job_chain.hpp"

namespace troupe::model {

using compute::const_view;
using compute::dtype;
using compute::ops;
using compute::view;

namespace {

// 16 MiB of logits at once: large enough for full speed, small beside any model's activations.
constexpr std::size_t head_chunk_elements = std::size_t{1} << 22;

}  // namespace

network::network(compute::executor& device, const description& d, const model_layout& layout,
                 std::size_t seq_len, std::uint64_t seed)
    : device_(device), d_(d), layout_(layout), seq_len_(seq_len), seed_(seed) {
  ensure(seq_len <= d.positions, "a network was made for windows longer than its positions");
  for (std::size_t i = 0; i < d.layers; ++i) {
    layers_.emplace_back(d, layout_[transformer_index(i)], i, seed);
  }
  if (d.family == family::llama) rotary_ = make_rotary_tables(device, d, seq_len);
}

const_view network::head_matrix(const model_state& state) const {
  const std::size_t layer = d_.tied ? embedding_layer() : head_layer();
  const tensor_info* t =
      layout_[layer].find(d_.tied ? tensor_role::token_table : tensor_role::head);
  ensure(t != nullptr, "the model has no matrix for its head");
  return state.layers[layer].parameters.part(t->offset, t->size);
}

compute::dropout_mask network::embedding_mask(const micro_batch& batch, bool wanted) const {
  compute::dropout_mask m;
  m.probability = wanted ? static_cast<float>(d_.dropout) : 0.0f;
  m.seed = seed_;
  m.purpose = compute::random_purpose::dropout_embedding;
  m.step = batch.step;
  m.first_sequence = batch.first_sequence;
  return m;
}

void network::embed(ops& ops, const model_state& state, const micro_batch& batch,
                    std::size_t seq_len, bool dropout, const_view tokens, view out) const {
  const layer_layout& layer = layout_[embedding_layer()];
  const const_view flat = state.layers[embedding_layer()].parameters.all();
  const tensor_info* table = layer.find(tensor_role::token_table);
  const tensor_info* positions = layer.find(tensor_role::position_table);
  ops.embedding({.rows = batch.sequences * seq_len,
                 .seq_len = seq_len,
                 .width = d_.width,
                 .vocabulary = d_.vocabulary,
                 .tokens = tokens,
                 .table = flat.part(table->offset, table->size),
                 .positions = positions == nullptr ? const_view{}
                                                   : flat.part(positions->offset, positions->size),
                 .dropout = embedding_mask(batch, dropout),
                 .out = out});
}

void network::final_norm(ops& ops, const model_state& state, std::size_t rows, const_view x,
                         view out, view mean, view rstd) const {
  const layer_layout& layer = layout_[head_layer()];
  const const_view flat = state.layers[head_layer()].parameters.all();
  const tensor_info* gain = layer.find(tensor_role::final_norm);
  const tensor_info* bias = layer.find(tensor_role::final_norm_bias);
  ops.norm({.kind = d_.family == family::gpt2 ? compute::norm_kind::layer : compute::norm_kind::rms,
            .rows = rows,
            .width = d_.width,
            .epsilon = static_cast<float>(d_.norm_epsilon),
            .x = x,
            .gain = flat.part(gain->offset, gain->size),
            .bias = bias == nullptr ? const_view{} : flat.part(bias->offset, bias->size),
            .y = out,
            .mean = mean,
            .rstd = rstd});
}

std::size_t network::head_chunk(std::size_t rows) const {
  return std::clamp(head_chunk_elements / d_.vocabulary, std::size_t{1}, rows);
}

evaluation::evaluation(const network& net, std::size_t rows)
    : net_(net), rows_(rows), kept_(net.device(), net.described(), rows) {
  compute::executor& device = net.device();
  const description& d = net.described();
  tokens_ = device.allocate(rows, dtype::int32);
  targets_ = device.allocate(rows, dtype::int32);
  out_ = device.allocate(rows * d.width, dtype::float32);
  branch_ = device.allocate(rows * d.width, dtype::float32);
  normed_ = device.allocate(rows * d.width, dtype::float32);
  if (d.family == family::gpt2) mean_ = device.allocate(rows, dtype::float32);
  rstd_ = device.allocate(rows, dtype::float32);
  logits_ = device.allocate(net.head_chunk(rows) * d.vocabulary, dtype::float32);
  losses_ = device.allocate(rows, dtype::float32);
}

std::size_t evaluation::bytes() const {
  std::size_t bytes = kept_.bytes();
  for (const compute::buffer* b :
       {&tokens_, &targets_, &out_, &branch_, &normed_, &mean_, &rstd_, &logits_, &losses_}) {
    bytes += b->bytes();
  }
  return bytes;
}

void evaluation::forward(const model_state& state, std::size_t sequences, std::size_t seq_len,
                         std::span<const std::int32_t> tokens) {
  const std::size_t rows = sequences * seq_len;
  ensure(rows <= rows_ && tokens.size() == rows,
         "an evaluation was given more rows than it has room for");
  const micro_batch batch{.step = 0, .first_sequence = 0, .sequences = sequences};
  const std::size_t elements = rows * net_.described().width;
  job_chain jobs(net_.device());
  jobs.add([&](ops& ops) {
    ops.copy(compute::host_view(tokens), tokens_.part(0, rows));
    net_.embed(ops, state, batch, seq_len, false, tokens_.part(0, rows), kept_.input.all());
  });
  for (std::size_t i = 0; i < net_.layers().size(); ++i) {
    jobs.add([&, i](ops& ops) {
      const const_view parameters = state.layers[net_.transformer_index(i)].parameters.all();
      net_.layers()[i].forward(ops, parameters, net_.rotary(), batch, seq_len, false, kept_,
                               branch_.all(), out_.all());
      ops.copy(out_.part(0, elements), kept_.input.part(0, elements));
    });
  }
  jobs.add([&](ops& ops) {
    net_.final_norm(ops, state, rows, kept_.input.all(), normed_.all(), mean_.all(), rstd_.all());
  });
  jobs.wait();
}

void evaluation::losses(const model_state& state, std::size_t sequences, std::size_t seq_len,
                        std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets,
                        std::span<float> losses) {
  forward(state, sequences, seq_len, tokens);
  const std::size_t rows = sequences * seq_len;
  const std::size_t width = net_.described().width, vocabulary = net_.described().vocabulary;
  ensure(targets.size() == rows && losses.size() == rows,
         "losses need one target and one place a token");
  job_chain jobs(net_.device());
  jobs.add([&](ops& ops) {
    ops.copy(compute::host_view(targets), targets_.part(0, rows));
    const std::size_t chunk = net_.head_chunk(rows_);
    for (std::size_t at = 0; at < rows; at += chunk) {
      const std::size_t count = std::min(chunk, rows - at);
      ops.linear({.rows = count,
                  .in = width,
                  .out = vocabulary,
                  .x = normed_.part(at * width, count * width),
                  .w = net_.head_matrix(state),
                  .y = logits_.all()});
      ops.cross_entropy({.rows = count,
                         .vocabulary = vocabulary,
                         .targets = targets_.part(at, count),
                         .logits = logits_.all(),
                         .losses = losses_.part(at, count),
                         .gradient = false});
    }
    ops.copy(losses_.part(0, rows), compute::host_view(losses));
  });
  jobs.wait();
}

void evaluation::logits(const model_state& state, std::size_t sequences, std::size_t seq_len,
                        std::span<const std::int32_t> tokens, bool last_only,
                        std::span<float> logits) {
  forward(state, sequences, seq_len, tokens);
  const std::size_t width = net_.described().width, vocabulary = net_.described().vocabulary;
  const std::size_t wanted = last_only ? sequences : sequences * seq_len;
  ensure(logits.size() == wanted * vocabulary, "logits need room for every wanted row");
  job_chain jobs(net_.device());
  jobs.add([&](ops& ops) {
    const std::size_t chunk = last_only ? 1 : net_.head_chunk(rows_);
    for (std::size_t at = 0; at < wanted; at += chunk) {
      const std::size_t count = std::min(chunk, wanted - at);
      const std::size_t row = last_only ? (at + 1) * seq_len - 1 : at;
      ops.linear({.rows = count,
                  .in = width,
                  .out = vocabulary,
                  .x = normed_.part(row * width, count * width),
                  .w = net_.head_matrix(state),
                  .y = logits_.all()});
      ops.copy(logits_.part(0, count * vocabulary),
               compute::host_view(logits.subspan(at * vocabulary, count * vocabulary)));
    }
  });
  jobs.wait();
}

}  // namespace troupe::model
