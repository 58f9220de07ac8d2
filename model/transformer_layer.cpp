#include "model/transformer_layer.hpp"

#include <array>
#include <initializer_list>

#include "config/base/error.hpp"

namespace troupe::model {
namespace {

using compute::buffer;
using compute::const_view;
using compute::dtype;
using compute::ops;
using compute::random_purpose;
using compute::view;

std::size_t total_bytes(std::initializer_list<const buffer*> buffers) {
  std::size_t bytes = 0;
  for (const buffer* b : buffers) bytes += b->bytes();
  return bytes;
}

// The flat memory of one tensor, or of several that follow each other.
template <class View>
View tensor(const layer_layout& layout, View flat, tensor_role role) {
  const tensor_info* t = layout.find(role);
  return t == nullptr ? View{} : flat.part(t->offset, t->size);
}

}  // namespace

layer_activations::layer_activations(compute::executor& device, const description& d,
                                     std::size_t rows) {
  const bool gpt2 = d.family == family::gpt2;
  const auto floats = [&](std::size_t columns) {
    return device.allocate(rows * columns, dtype::float32);
  };
  input = floats(d.width);
  attention_normed = floats(d.width);
  qkv = floats((d.heads + 2 * d.kv_heads) * d.head_dim);
  attended = floats(d.heads * d.head_dim);
  lse = floats(d.heads);
  middle = floats(d.width);
  mlp_normed = floats(d.width);
  up = floats(gpt2 ? d.inner : 2 * d.inner);
  activated = floats(d.inner);
  rstd1 = floats(1);
  rstd2 = floats(1);
  if (gpt2) {
    mean1 = floats(1);
    mean2 = floats(1);
  }
}

std::size_t layer_activations::bytes() const {
  return total_bytes({&input, &attention_normed, &qkv, &attended, &lse, &middle, &mlp_normed, &up,
                      &activated, &mean1, &rstd1, &mean2, &rstd2});
}

layer_gradients::layer_gradients(compute::executor& device, const description& d,
                                 std::size_t rows) {
  const bool gpt2 = d.family == family::gpt2;
  const auto floats = [&](std::size_t columns) {
    return device.allocate(rows * columns, dtype::float32);
  };
  up = floats(gpt2 ? d.inner : 2 * d.inner);
  if (!gpt2) activated = floats(d.inner);
  mlp_normed = floats(d.width);
  middle = floats(d.width);
  attended = floats(d.heads * d.head_dim);
  qkv = floats((d.heads + 2 * d.kv_heads) * d.head_dim);
  attention_normed = floats(d.width);
  if (d.dropout > 0) {
    mlp_out = floats(d.width);
    attention_out = floats(d.width);
  }
}

std::size_t layer_gradients::bytes() const {
  return total_bytes({&mlp_out, &activated, &up, &mlp_normed, &middle, &attention_out, &attended,
                      &qkv, &attention_normed});
}

transformer_layer::transformer_layer(const description& d, const layer_layout& layout,
                                     std::size_t index, std::uint64_t seed)
    : d_(d), layout_(layout), index_(index), seed_(seed) {}

const_view transformer_layer::take(const_view flat, tensor_role role) const {
  return tensor(layout_, flat, role);
}

view transformer_layer::take(view flat, tensor_role role) const {
  return tensor(layout_, flat, role);
}

// Query, key and value follow each other in llama's layout and are one tensor in gpt2's.
template <class View>
View transformer_layer::qkv_matrix(View flat) const {
  const tensor_info* first = layout_.find(gpt2() ? tensor_role::qkv : tensor_role::query);
  ensure(first != nullptr, "a transformer layer has no query matrix");
  return flat.part(first->offset, qkv_width() * d_.width);
}

// So do gate and up.
template <class View>
View transformer_layer::up_matrix(View flat) const {
  const tensor_info* first = layout_.find(gpt2() ? tensor_role::mlp_up : tensor_role::mlp_gate);
  ensure(first != nullptr, "a transformer layer has no inner matrix");
  return flat.part(first->offset, up_width() * d_.width);
}

compute::dropout_mask transformer_layer::mask(random_purpose purpose, const micro_batch& batch,
                                              bool wanted) const {
  compute::dropout_mask m;
  m.probability = wanted ? static_cast<float>(d_.dropout) : 0.0f;
  m.seed = seed_;
  m.purpose = purpose;
  m.step = batch.step;
  m.layer = static_cast<std::uint32_t>(index_);
  m.first_sequence = batch.first_sequence;
  return m;
}

void transformer_layer::branch_out(ops& ops, const branch_shape& shape, const branch_tensors& t,
                                   const compute::dropout_mask& mask) const {
  if (mask.probability == 0) {
    ops.linear({.rows = shape.rows,
                .in = shape.in,
                .out = d_.width,
                .x = t.x,
                .w = t.matrix,
                .bias = t.bias,
                .residual = t.residual,
                .y = t.out});
    return;
  }
  ops.linear({.rows = shape.rows,
              .in = shape.in,
              .out = d_.width,
              .x = t.x,
              .w = t.matrix,
              .bias = t.bias,
              .y = t.scratch});
  ops.dropout({.rows = shape.rows,
               .seq_len = shape.seq_len,
               .width = d_.width,
               .x = t.scratch,
               .residual = t.residual,
               .dropout = mask,
               .out = t.out});
}

void transformer_layer::forward(ops& ops, const_view parameters, const rotary_tables& rotary,
                                const micro_batch& batch, std::size_t seq_len, bool dropout,
                                layer_activations& kept, view branch, view out) const {
  const std::size_t rows = batch.sequences * seq_len;
  using enum tensor_role;
  ops.norm({.kind = norm_kind(),
            .rows = rows,
            .width = d_.width,
            .epsilon = static_cast<float>(d_.norm_epsilon),
            .x = kept.input.all(),
            .gain = take(parameters, attention_norm),
            .bias = take(parameters, attention_norm_bias),
            .y = kept.attention_normed.all(),
            .mean = kept.mean1.all(),
            .rstd = kept.rstd1.all()});
  ops.linear({.rows = rows,
              .in = d_.width,
              .out = qkv_width(),
              .x = kept.attention_normed.all(),
              .w = qkv_matrix(parameters),
              .bias = take(parameters, qkv_bias),
              .y = kept.qkv.all()});
  if (!gpt2()) rotate_heads(ops, rotary, rows, seq_len, false, kept.qkv.all());
  ops.attention({.sequences = batch.sequences,
                 .seq_len = seq_len,
                 .heads = d_.heads,
                 .kv_heads = d_.kv_heads,
                 .head_dim = d_.head_dim,
                 .qkv = kept.qkv.part(0, rows * qkv_width()),
                 .dropout = mask(random_purpose::dropout_attention, batch, dropout),
                 .out = kept.attended.part(0, rows * heads_width()),
                 .lse = kept.lse.part(0, rows * d_.heads)});
  branch_out(ops, {rows, seq_len, heads_width()},
             {.x = kept.attended.all(),
              .matrix = take(parameters, attention_out),
              .bias = take(parameters, attention_out_bias),
              .residual = kept.input.all(),
              .scratch = branch,
              .out = kept.middle.all()},
             mask(random_purpose::dropout_attention_branch, batch, dropout));
  ops.norm({.kind = norm_kind(),
            .rows = rows,
            .width = d_.width,
            .epsilon = static_cast<float>(d_.norm_epsilon),
            .x = kept.middle.all(),
            .gain = take(parameters, mlp_norm),
            .bias = take(parameters, mlp_norm_bias),
            .y = kept.mlp_normed.all(),
            .mean = kept.mean2.all(),
            .rstd = kept.rstd2.all()});
  ops.linear({.rows = rows,
              .in = d_.width,
              .out = up_width(),
              .x = kept.mlp_normed.all(),
              .w = up_matrix(parameters),
              .bias = take(parameters, mlp_up_bias),
              .y = kept.up.all(),
              .gelu = gpt2() ? kept.activated.all() : view{}});
  if (!gpt2()) {
    ops.swiglu(
        {.rows = rows, .inner = d_.inner, .gate_up = kept.up.all(), .out = kept.activated.all()});
  }
  branch_out(ops, {rows, seq_len, d_.inner},
             {.x = kept.activated.all(),
              .matrix = take(parameters, mlp_down),
              .bias = take(parameters, mlp_down_bias),
              .residual = kept.middle.all(),
              .scratch = branch,
              .out = out},
             mask(random_purpose::dropout_mlp_branch, batch, dropout));
}

void transformer_layer::rotate_heads(ops& ops, const rotary_tables& rotary, std::size_t rows,
                                     std::size_t seq_len, bool inverse, view qkv) const {
  const std::size_t angles =
      seq_len * d_.head_dim / 2;  // the window may be shorter than the tables
  ops.rotate({.rows = rows,
              .seq_len = seq_len,
              .heads = d_.heads + d_.kv_heads,
              .head_dim = d_.head_dim,
              .row_stride = qkv_width(),
              .cosines = rotary.cosines.part(0, angles),
              .sines = rotary.sines.part(0, angles),
              .inverse = inverse,
              .x = qkv});
}

void transformer_layer::backward_input(ops& ops, const_view parameters, const rotary_tables& rotary,
                                       const micro_batch& batch, std::size_t seq_len,
                                       const layer_activations& kept, layer_gradients& at,
                                       const_view output_gradient, view input_gradient) const {
  const std::size_t rows = batch.sequences * seq_len;
  const bool dropout = d_.dropout > 0;
  using enum tensor_role;

  if (dropout) {
    ops.dropout({.rows = rows,
                 .seq_len = seq_len,
                 .width = d_.width,
                 .x = output_gradient,
                 .dropout = mask(random_purpose::dropout_mlp_branch, batch, true),
                 .out = at.mlp_out.all()});
  }
  ops.linear_backward_input({.rows = rows,
                             .in = d_.inner,
                             .out = d_.width,
                             .dy = dropout ? at.mlp_out.all() : output_gradient,
                             .w = take(parameters, mlp_down),
                             .gelu_input = gpt2() ? const_view(kept.up.all()) : const_view{},
                             .dx = gpt2() ? at.up.all() : at.activated.all()});
  if (!gpt2()) {
    ops.swiglu_backward({.rows = rows,
                         .inner = d_.inner,
                         .dout = at.activated.all(),
                         .gate_up = kept.up.all(),
                         .dgate_up = at.up.all()});
  }
  ops.linear_backward_input({.rows = rows,
                             .in = d_.width,
                             .out = up_width(),
                             .dy = at.up.all(),
                             .w = up_matrix(parameters),
                             .dx = at.mlp_normed.all()});
  ops.norm_backward_input({.kind = norm_kind(),
                           .rows = rows,
                           .width = d_.width,
                           .dy = at.mlp_normed.all(),
                           .x = kept.middle.all(),
                           .gain = take(parameters, mlp_norm),
                           .mean = kept.mean2.all(),
                           .rstd = kept.rstd2.all(),
                           .residual = output_gradient,
                           .dx = at.middle.all()});

  if (dropout) {
    ops.dropout({.rows = rows,
                 .seq_len = seq_len,
                 .width = d_.width,
                 .x = at.middle.all(),
                 .dropout = mask(random_purpose::dropout_attention_branch, batch, true),
                 .out = at.attention_out.all()});
  }
  ops.linear_backward_input({.rows = rows,
                             .in = heads_width(),
                             .out = d_.width,
                             .dy = dropout ? at.attention_out.all() : at.middle.all(),
                             .w = take(parameters, attention_out),
                             .dx = at.attended.all()});
  ops.attention_backward({.sequences = batch.sequences,
                          .seq_len = seq_len,
                          .heads = d_.heads,
                          .kv_heads = d_.kv_heads,
                          .head_dim = d_.head_dim,
                          .qkv = kept.qkv.part(0, rows * qkv_width()),
                          .out = kept.attended.part(0, rows * heads_width()),
                          .lse = kept.lse.part(0, rows * d_.heads),
                          .dout = at.attended.part(0, rows * heads_width()),
                          .dropout = mask(random_purpose::dropout_attention, batch, dropout),
                          .dqkv = at.qkv.part(0, rows * qkv_width())});
  if (!gpt2()) rotate_heads(ops, rotary, rows, seq_len, true, at.qkv.all());
  ops.linear_backward_input({.rows = rows,
                             .in = d_.width,
                             .out = qkv_width(),
                             .dy = at.qkv.all(),
                             .w = qkv_matrix(parameters),
                             .dx = at.attention_normed.all()});
  ops.norm_backward_input({.kind = norm_kind(),
                           .rows = rows,
                           .width = d_.width,
                           .dy = at.attention_normed.all(),
                           .x = kept.input.all(),
                           .gain = take(parameters, attention_norm),
                           .mean = kept.mean1.all(),
                           .rstd = kept.rstd1.all(),
                           .residual = at.middle.all(),
                           .dx = input_gradient});
}

void transformer_layer::backward_weight(ops& ops, const leaf_range& range,
                                        const layer_activations& kept, const layer_gradients& at,
                                        const_view output_gradient, view gradient) const {
  using enum tensor_role;
  const bool dropout = d_.dropout > 0;
  const auto matrix = [&](std::size_t in, std::size_t out, const_view dy, const_view x, view dw,
                          view db) {
    ops.linear_backward_weight({.rows = range.rows,
                                .in = in,
                                .out = out,
                                .dy = dy.part(range.first_row * out, range.rows * out),
                                .x = x.part(range.first_row * in, range.rows * in),
                                .dw = dw,
                                .db = db,
                                .fresh = range.opens});
  };
  const auto norm = [&](const_view dy, const_view x, const buffer& mean, const buffer& rstd,
                        view dgain, view dbias) {
    ops.norm_backward_weight({.kind = norm_kind(),
                              .rows = range.rows,
                              .width = d_.width,
                              .dy = dy.part(range.first_row * d_.width, range.rows * d_.width),
                              .x = x.part(range.first_row * d_.width, range.rows * d_.width),
                              .mean = mean ? mean.part(range.first_row, range.rows) : const_view{},
                              .rstd = rstd.part(range.first_row, range.rows),
                              .dgain = dgain,
                              .dbias = dbias,
                              .fresh = range.opens});
  };
  matrix(d_.inner, d_.width, dropout ? at.mlp_out.all() : output_gradient, kept.activated.all(),
         take(gradient, mlp_down), take(gradient, mlp_down_bias));
  matrix(d_.width, up_width(), at.up.all(), kept.mlp_normed.all(), up_matrix(gradient),
         take(gradient, mlp_up_bias));
  norm(at.mlp_normed.all(), kept.middle.all(), kept.mean2, kept.rstd2, take(gradient, mlp_norm),
       take(gradient, mlp_norm_bias));
  matrix(heads_width(), d_.width, dropout ? at.attention_out.all() : at.middle.all(),
         kept.attended.all(), take(gradient, attention_out), take(gradient, attention_out_bias));
  matrix(d_.width, qkv_width(), at.qkv.all(), kept.attention_normed.all(), qkv_matrix(gradient),
         take(gradient, qkv_bias));
  norm(at.attention_normed.all(), kept.input.all(), kept.mean1, kept.rstd1,
       take(gradient, attention_norm), take(gradient, attention_norm_bias));
}

}  // namespace troupe::model
