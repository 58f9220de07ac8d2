// Writes what a tiny model computes, one safetensors file a case, for compare_with_torch.py to
// compute again: `dump_gradients FOLDER`.
//
// A file holds the parameters at the start, tokens and targets of every step, logits and losses of
// an evaluation, gradient sums of the first step, parameters and moments behind one AdamW update,
// and the losses of a whole little training run. The description and all settings are the file's
// metadata, so that the other side depends on nothing else.
#include <fmt/format.h>

#include <cstring>
#include <iostream>

#include "actors/trainer.hpp"
#include "model/hub/safetensors.hpp"
#include "tests/support/tiny_model.hpp"

namespace troupe::tests {
namespace {

constexpr std::size_t sequences = 4, virtual_ranks = 2, micro_batch = 3;
constexpr std::uint64_t training_steps = 20, different_batches = 4;

struct dump_case {
  std::string name;
  model::description description;
  std::size_t seq_len;
  double max_norm;
  model::schedule schedule;
  // One update alone is compared element by element. With the usual epsilon an element whose true
  // gradient is zero would move by the full rate in the direction of its rounding error.
  double single_update_epsilon = 1e-3;
};

model::schedule decaying(model::decay_shape shape, std::uint64_t warmup,
                         std::optional<double> decay_ratio = {}) {
  return {.lr = 3e-3,
          .warmup_steps = warmup,
          .total_steps = training_steps,
          .decay_ratio = decay_ratio,
          .shape = shape,
          .min_factor = 0.1};
}

std::vector<dump_case> all_cases() {
  using enum model::decay_shape;
  std::vector<dump_case> cases;
  model::description d = tiny_gpt2();
  cases.push_back({"gpt2_bias_tied", d, 70, 1.0, decaying(cosine, 3)});
  d.tied = false;
  cases.push_back({"gpt2_bias_untied", d, 24, 1.0, decaying(linear, 0)});
  d.bias = false;
  cases.push_back({"gpt2_untied", d, 24, 0.05, decaying(constant, 5)});
  d.tied = true;
  d.vocabulary = 257;
  d.width = 65;  // 5 heads of 13: nothing divides a vector register
  d.head_dim = 13;
  d.inner = 4 * 65;
  cases.push_back({"gpt2_tied_257_odd_width", d, 33, 1.0, decaying(cosine, 2, 0.4)});

  d = tiny_llama();
  cases.push_back({"llama_untied_grouped", d, 70, 1.0, decaying(cosine, 3)});
  d.tied = true;
  d.kv_heads = 6;
  cases.push_back({"llama_tied", d, 24, 100.0, decaying(sqrt, 1), 1e-2});
  d = tiny_llama();
  d.vocabulary = 257;
  d.head_dim = 10;  // 6 heads of 10 are not the width of 48
  d.rope_theta = 500000;
  d.norm_epsilon = 1e-6;
  cases.push_back({"llama_257_wide_heads", d, 24, 1.0, decaying(linear, 4, 0.5)});
  d.tied = true;
  d.head_dim = 16;
  d.kv_heads = 1;
  d.rope_theta = 10000;
  d.rope_scaling = model::rope_scaling{8, 1, 4, 64};  // fast, mixed and slow frequencies
  cases.push_back({"llama_tied_257_rope_scaling", d, 70, 1.0, decaying(cosine, 0)});
  return cases;
}

class tensor_file {
 public:
  template <class T>
  void add(std::string name, std::vector<std::uint64_t> shape, std::span<const T> values) {
    const auto type = std::is_same_v<T, float>    ? model::tensor_type::f32
                      : std::is_same_v<T, double> ? model::tensor_type::f64
                                                  : model::tensor_type::i32;
    tensors_.push_back({std::move(name), type, std::move(shape)});
    data_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  // Each tensor of a layer's flat vector under `prefix`/name.
  void add_layer(const std::string& prefix, const model::layer_layout& layer,
                 compute::const_view flat) {
    for (const model::tensor_info& t : layer.tensors) {
      add(prefix + "/" + t.name, {t.shape.begin(), t.shape.end()},
          flat.part(t.offset, t.size).host<float>());
    }
  }
  status write(const std::string& path, const model::tensor_metadata& metadata) const {
    const result<std::string> header = model::make_safetensors_header(tensors_, metadata);
    if (!header) return header.failure();
    return replace(real_file_system(), path, *header + data_);
  }

 private:
  std::vector<model::tensor_shape> tensors_;
  std::string data_;
};

constexpr model::adamw_settings adamw{
    .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1};
constexpr double single_update_rate = 1e-2;

model::tensor_metadata metadata_of(const dump_case& c) {
  const model::description& d = c.description;
  model::tensor_metadata m{
      {"family", model::name_of(d.family)},
      {"vocabulary", fmt::format("{}", d.vocabulary)},
      {"width", fmt::format("{}", d.width)},
      {"inner", fmt::format("{}", d.inner)},
      {"layers", fmt::format("{}", d.layers)},
      {"heads", fmt::format("{}", d.heads)},
      {"kv_heads", fmt::format("{}", d.kv_heads)},
      {"head_dim", fmt::format("{}", d.head_dim)},
      {"positions", fmt::format("{}", d.positions)},
      {"norm_epsilon", fmt::format("{}", d.norm_epsilon)},
      {"rope_theta", fmt::format("{}", d.rope_theta)},
      {"tied", d.tied ? "1" : "0"},
      {"bias", d.bias ? "1" : "0"},
      {"max_norm", fmt::format("{}", c.max_norm)},
      {"lr", fmt::format("{}", c.schedule.lr)},
      {"warmup_steps", fmt::format("{}", c.schedule.warmup_steps)},
      {"total_steps", fmt::format("{}", c.schedule.total_steps)},
      {"decay_ratio", c.schedule.decay_ratio ? fmt::format("{}", *c.schedule.decay_ratio) : ""},
      {"min_factor", fmt::format("{}", c.schedule.min_factor)},
      {"beta1", fmt::format("{}", adamw.beta1)},
      {"beta2", fmt::format("{}", adamw.beta2)},
      {"epsilon", fmt::format("{}", adamw.epsilon)},
      {"weight_decay", fmt::format("{}", adamw.weight_decay)},
      {"single_update_epsilon", fmt::format("{}", c.single_update_epsilon)},
      {"single_update_rate", fmt::format("{}", single_update_rate)},
  };
  using enum model::decay_shape;
  m["decay_shape"] = c.schedule.shape == linear   ? "linear"
                     : c.schedule.shape == cosine ? "cosine"
                     : c.schedule.shape == sqrt   ? "sqrt"
                                                  : "constant";
  if (d.rope_scaling) {
    m["rope_scaling"] =
        fmt::format("{} {} {} {}", d.rope_scaling->factor, d.rope_scaling->low_freq_factor,
                    d.rope_scaling->high_freq_factor, d.rope_scaling->original_positions);
  }
  return m;
}

std::unique_ptr<actors::trainer> make_trainer(compute::executor& device, const dump_case& c,
                                              const model::schedule& schedule, double epsilon) {
  actors::trainer_settings settings;
  settings.batch = {sequences, virtual_ranks, micro_batch};
  settings.seq_len = c.seq_len;
  settings.seed = 1;
  settings.max_norm = c.max_norm;
  settings.schedule = schedule;
  settings.adamw = adamw;
  settings.adamw.epsilon = epsilon;
  auto made = std::make_unique<actors::trainer>(device, c.description, settings);
  randomize(device, made->layout(), 7, made->state());
  return made;
}

token_batch batch_of(const dump_case& c, std::uint64_t step) {
  return random_batch(3, (step - 1) % different_batches, sequences * c.seq_len,
                      c.description.vocabulary);
}

void dump_evaluation(actors::trainer& trainer, const dump_case& c, tensor_file& out) {
  const token_batch batch = batch_of(c, 1);
  model::evaluation evaluation(trainer.network(), sequences * c.seq_len);
  std::vector<float> losses(batch.tokens.size());
  std::vector<float> logits(batch.tokens.size() * c.description.vocabulary);
  evaluation.losses(trainer.state(), sequences, c.seq_len, batch.tokens, batch.targets, losses);
  evaluation.logits(trainer.state(), sequences, c.seq_len, batch.tokens, false, logits);
  out.add<float>("evaluation_losses", {sequences, c.seq_len}, losses);
  out.add<float>("logits", {sequences, c.seq_len, c.description.vocabulary}, logits);
}

void dump_single_update(compute::executor& device, const dump_case& c, tensor_file& out) {
  const model::schedule constant{.lr = single_update_rate,
                                 .warmup_steps = 0,
                                 .total_steps = 1,
                                 .decay_ratio = {},
                                 .shape = model::decay_shape::constant,
                                 .min_factor = 0};
  const auto trainer = make_trainer(device, c, constant, c.single_update_epsilon);
  dump_evaluation(*trainer, c, out);
  for (std::size_t l = 0; l < trainer->layout().size(); ++l) {
    out.add_layer("parameters", trainer->layout()[l], trainer->state().layers[l].parameters.all());
  }
  const token_batch batch = batch_of(c, 1);
  trainer->step(1, 0, batch.tokens, batch.targets);
  for (std::size_t l = 0; l < trainer->layout().size(); ++l) {
    const model::layer_layout& layer = trainer->layout()[l];
    model::layer_state& state = trainer->state().layers[l];
    out.add_layer("gradients", layer, trainer->gradient(l));
    out.add_layer("updated", layer, state.parameters.all());
    out.add_layer("first_moment", layer, state.first_moment.all());
    out.add_layer("second_moment", layer, state.second_moment.all());
  }
}

void dump_training(compute::executor& device, const dump_case& c, tensor_file& out) {
  const auto trainer = make_trainer(device, c, c.schedule, adamw.epsilon);
  std::vector<std::int32_t> tokens, targets;
  std::vector<double> losses, norms;
  std::vector<float> rates;
  std::uint64_t updates = 0;
  for (std::uint64_t step = 1; step <= training_steps; ++step) {
    const token_batch batch = batch_of(c, step);
    tokens.insert(tokens.end(), batch.tokens.begin(), batch.tokens.end());
    targets.insert(targets.end(), batch.targets.begin(), batch.targets.end());
    const auto record = *trainer->step(step, updates, batch.tokens, batch.targets);
    updates = record.updates;
    losses.push_back(record.loss);
    norms.push_back(record.grad_norm);
    rates.push_back(record.lr);
  }
  out.add<std::int32_t>("tokens", {training_steps, sequences, c.seq_len}, tokens);
  out.add<std::int32_t>("targets", {training_steps, sequences, c.seq_len}, targets);
  out.add<double>("losses", {training_steps}, losses);
  out.add<double>("gradient_norms", {training_steps}, norms);
  out.add<float>("rates", {training_steps}, rates);
}

int run(const std::string& folder) {
  const std::unique_ptr<compute::executor> device = compute::make_cpu_executor(2);
  for (const dump_case& c : all_cases()) {
    ensure(static_cast<bool>(model::check(c.description)), "a case's description is not valid");
    tensor_file out;
    dump_single_update(*device, c, out);
    dump_training(*device, c, out);
    const status written = out.write(join_path(folder, c.name + ".safetensors"), metadata_of(c));
    if (!written) {
      std::cerr << "dump_gradients: " << written.failure().message << "\n";
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace troupe::tests

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: dump_gradients FOLDER\n";
    return 64;
  }
  return troupe::tests::run(argv[1]);
}
