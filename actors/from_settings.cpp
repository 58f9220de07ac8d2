#include "actors/from_settings.hpp"

#include <algorithm>

#include "actors/machine.hpp"

namespace troupe::actors {
namespace {

std::size_t size(std::int64_t value) {
  ensure(value >= 0, "a size from the settings is negative although the settings were checked");
  return static_cast<std::size_t>(value);
}

model::data::data_format format_of(config::source_format format) {
  switch (format) {
    case config::source_format::automatic:
      return model::data::data_format::automatic;
    case config::source_format::llmc:
      return model::data::data_format::llmc;
    case config::source_format::text:
      return model::data::data_format::text;
    case config::source_format::jsonl:
      return model::data::data_format::jsonl;
  }
  return model::data::data_format::automatic;
}

model::decay_shape shape_of(config::decay_type type) {
  switch (type) {
    case config::decay_type::linear:
      return model::decay_shape::linear;
    case config::decay_type::cosine:
      return model::decay_shape::cosine;
    case config::decay_type::sqrt:
      return model::decay_shape::sqrt;
    case config::decay_type::constant:
      return model::decay_shape::constant;
  }
  return model::decay_shape::cosine;
}

// What training and validation data have in common.
model::data::dataset_options common_data(const config::settings& s) {
  model::data::dataset_options options;
  options.seq_len = size(s.training.seq_len);
  options.vocabulary = size(s.model.vocab_size);
  options.add_eos = s.tokenizer.add_eos.value_or(true);
  options.seed = s.training.seed;
  options.eod_mask_loss = s.data.eod_mask_loss;
  if (s.data.eod_token >= 0) options.eod_token = static_cast<std::uint32_t>(s.data.eod_token);
  return options;
}

}  // namespace

model::description description_from(const config::settings& s) {
  model::description d;
  d.family =
      s.model.model_type == config::model_family::gpt2 ? model::family::gpt2 : model::family::llama;
  d.vocabulary = size(s.model.vocab_size);
  d.width = size(s.model.hidden_size);
  d.inner = size(s.model.intermediate_size);
  d.layers = size(s.model.num_hidden_layers);
  d.heads = size(s.model.num_attention_heads);
  d.kv_heads = size(s.model.num_key_value_heads);
  d.head_dim = size(s.model.head_dim);
  d.positions = size(s.model.max_position_embeddings);
  d.norm_epsilon = s.model.norm_eps;
  d.rope_theta = s.model.rope_theta;
  if (s.model.rope_scaling) {
    const config::rope_scaling& r = *s.model.rope_scaling;
    d.rope_scaling = model::rope_scaling{r.factor, r.low_freq_factor, r.high_freq_factor,
                                         size(r.original_max_position_embeddings)};
  }
  const bool gpt2 = d.family == model::family::gpt2;
  d.tied = s.model.tie_word_embeddings.value_or(gpt2);
  d.bias = s.model.bias.value_or(gpt2);
  d.initializer_range = s.model.initializer_range;
  d.dropout = s.model.dropout;
  return d;
}

trainer_settings trainer_settings_from(const config::settings& s) {
  trainer_settings t;
  t.batch = {.global_batch = size(s.training.global_batch_size),
             .virtual_ranks = size(s.parallelism.virtual_ranks),
             .micro_batch = size(s.training.micro_batch_size)};
  t.seq_len = size(s.training.seq_len);
  t.seed = s.training.seed;
  t.max_norm = s.training.max_norm;
  t.skip_nonfinite = s.training.skip_nonfinite;
  t.schedule = {.lr = s.optimizer.lr,
                .warmup_steps = size(s.lr_scheduler.warmup_steps),
                .total_steps = size(s.lr_scheduler.total_steps),
                .decay_ratio = s.lr_scheduler.decay_ratio,
                .shape = shape_of(s.lr_scheduler.decay_type),
                .min_factor = s.lr_scheduler.min_lr_factor};
  t.adamw = {s.optimizer.beta1, s.optimizer.beta2, s.optimizer.eps, s.optimizer.weight_decay};
  return t;
}

model::data::dataset_options training_data_from(const config::settings& s) {
  model::data::dataset_options options = common_data(s);
  options.shuffle = s.data.shuffle;
  for (const config::settings::source& source : s.data.sources) {
    options.sources.push_back({source.path, format_of(source.format), source.text_key});
  }
  return options;
}

model::data::dataset_options validation_data_from(const config::settings& s) {
  ensure(s.validation.enable, "validation data were asked for although validation is off");
  model::data::dataset_options options = common_data(s);
  options.shuffle = false;
  const bool like_training = !s.data.sources.empty();  // text_key and format of the first source
  options.sources.push_back({s.validation.path, model::data::data_format::automatic,
                             like_training ? s.data.sources.front().text_key : "text"});
  return options;
}

std::unique_ptr<compute::executor> executor_from(const config::settings& s) {
  const int threads = s.compute.threads > 0 ? static_cast<int>(s.compute.threads) : usable_cores();
  return compute::make_cpu_executor(threads);
}

}  // namespace troupe::actors
