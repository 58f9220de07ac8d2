#include "config/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/options.hpp"
#include "config/world_check.hpp"

namespace troupe::config {
namespace {

constexpr std::int64_t byte_values = 256;  // token 256 is end of text

using problems = std::vector<problem>;

bool is_blank(const value& v) {
  return v == value(std::int64_t{0}) || v == value(0.0) || v == value(std::string());
}

void check_model(const settings& s, problems& list) {
  const auto& m = s.model;
  if (m.head_dim == 0) {
    list.push_back({"model.num_attention_heads",
                    fmt::format("{} heads do not divide hidden_size = {}; change one of the two or "
                                "set model.head_dim",
                                m.num_attention_heads, m.hidden_size)});
  }
  if (m.num_attention_heads % m.num_key_value_heads != 0) {
    list.push_back(
        {"model.num_key_value_heads", fmt::format("{} does not divide num_attention_heads = {}",
                                                  m.num_key_value_heads, m.num_attention_heads)});
  }
  if (m.model_type == model_family::gpt2) {
    if (m.num_key_value_heads != m.num_attention_heads) {
      list.push_back(
          {"model.num_key_value_heads",
           fmt::format("{} is not num_attention_heads = {}, but the gpt2 family shares no "
                       "key/value heads; leave it out or set model_type = \"llama\"",
                       m.num_key_value_heads, m.num_attention_heads)});
    }
    if (m.head_dim != 0 && m.num_attention_heads * m.head_dim != m.hidden_size) {
      list.push_back({"model.head_dim",
                      fmt::format("{} heads x {} is not hidden_size = {}, as the gpt2 family needs",
                                  m.num_attention_heads, m.head_dim, m.hidden_size)});
    }
    if (m.rope_scaling) {
      list.push_back(
          {"model.rope_scaling", "the gpt2 family has no rotary embedding; take it out"});
    }
  } else {
    if (*m.bias) {
      list.push_back({"model.bias", "the llama family has no biases; take it out"});
    }
    if (m.head_dim % 2 != 0) {
      list.push_back({"model.head_dim",
                      fmt::format("{} is odd, but rotary embedding turns pairs", m.head_dim)});
    }
  }
  if (m.head_dim > 256) {
    list.push_back({"model.head_dim",
                    fmt::format("heads of {} elements are not supported, 256 is the largest; raise "
                                "model.num_attention_heads",
                                m.head_dim)});
  }
  if (s.training.seq_len > m.max_position_embeddings) {
    list.push_back(
        {"training.seq_len", fmt::format("{} is longer than model.max_position_embeddings = {}",
                                         s.training.seq_len, m.max_position_embeddings)});
  }
  if (m.rope_scaling && m.rope_scaling->low_freq_factor >= m.rope_scaling->high_freq_factor) {
    list.push_back(
        {"model.rope_scaling.low_freq_factor",
         fmt::format("{} is not below high_freq_factor = {}", m.rope_scaling->low_freq_factor,
                     m.rope_scaling->high_freq_factor)});
  }
}

void check_tokens(const settings& s, problems& list) {
  const auto text = std::find_if(s.data.sources.begin(), s.data.sources.end(), reads_text);
  const bool has_text = text != s.data.sources.end();
  const std::int64_t needed = byte_values + (*s.tokenizer.add_eos ? 1 : 0);
  if (has_text && s.model.vocab_size < needed) {
    list.push_back(
        {"model.vocab_size",
         fmt::format(
             "{} is too small: the byte tokenizer has {} tokens{}", s.model.vocab_size, needed,
             *s.tokenizer.add_eos ? ", one of them the end of text (tokenizer.add_eos)" : "")});
  }
  if (s.data.eod_token >= s.model.vocab_size) {
    list.push_back({"data.eod_token", fmt::format("{} is not below model.vocab_size = {}",
                                                  s.data.eod_token, s.model.vocab_size)});
  }
  if (s.data.eod_mask_loss && s.data.eod_token < 0) {
    list.push_back({"data.eod_mask_loss",
                    "needs to know the end-of-text token; set data.eod_token, or for text "
                    "tokenizer.add_eos = true"});
  }
}

// "2 and 5": the divisors of `batch` next to `ranks`.
std::string nearest_divisors(std::int64_t batch, std::int64_t ranks) {
  std::int64_t below = 1;
  std::int64_t above = batch;
  for (std::int64_t d = 1; d <= batch / d; ++d) {
    if (batch % d != 0) continue;
    for (const std::int64_t divisor : {d, batch / d}) {
      if (divisor < ranks) below = std::max(below, divisor);
      if (divisor > ranks) above = std::min(above, divisor);
    }
  }
  return ranks > batch ? fmt::format("{}", batch) : fmt::format("{} and {}", below, above);
}

void check_batch(const settings& s, problems& list) {
  const std::int64_t batch = s.training.global_batch_size;
  const std::int64_t ranks = s.parallelism.virtual_ranks;
  if (batch % ranks != 0) {
    const std::int64_t lower = batch / ranks * ranks;
    const std::string batches = lower > 0 ? fmt::format("{} or {}", lower, lower + ranks)
                                          : fmt::format("{}", lower + ranks);
    list.push_back({"parallelism.virtual_ranks",
                    fmt::format("{} does not divide training.global_batch_size = {}; the nearest "
                                "that do: {}; the nearest batch for it: {}",
                                ranks, batch, nearest_divisors(batch, ranks), batches)});
  }
}

void check_schedule(const settings& s, problems& list) {
  const auto& l = s.lr_scheduler;
  const bool own_length = l.total_steps != s.training.steps;
  const std::string length =
      own_length ? fmt::format("the rate's curve (lr_scheduler.total_steps = {})", l.total_steps)
                 : fmt::format("the run (training.steps = {})", s.training.steps);
  if (l.warmup_steps > l.total_steps) {
    list.push_back(
        {"lr_scheduler.warmup_steps", fmt::format("{} is longer than {}; a tenth of it would be {}",
                                                  l.warmup_steps, length, l.total_steps / 10)});
  } else if (l.decay_ratio && l.decay_type != decay_type::constant) {
    const double falling = std::floor(static_cast<double>(l.total_steps) * *l.decay_ratio + 0.5);
    if (static_cast<double>(l.warmup_steps) + falling > static_cast<double>(l.total_steps)) {
      list.push_back({"lr_scheduler.decay_ratio",
                      fmt::format("{} falling steps after {} of warm-up are longer than {}",
                                  falling, l.warmup_steps, length)});
    }
  }
}

void check_places(const settings& s, problems& list) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  if (!std::all_of(s.job.name.begin(), s.job.name.end(), allowed) || s.job.name.starts_with('.')) {
    list.push_back(
        {"job.name", fmt::format("{} is no name for a folder: letters, digits, '.', '_' and '-', "
                                 "not beginning with '.'",
                                 print_quoted(s.job.name))});
  }
  const std::string folder = "/" + s.checkpoint.folder + "/";
  if (s.checkpoint.folder.starts_with('/') || folder.find("/../") != std::string::npos) {
    list.push_back({"checkpoint.folder", fmt::format("{} is not below the run directory",
                                                     print_quoted(s.checkpoint.folder))});
  }
  if (s.validation.enable && s.validation.path.empty()) {
    list.push_back({"validation.path", "is required when validation.enable is true"});
  }
  if (s.validation.steps == 0) {
    list.push_back({"validation.steps",
                    "0 measures nothing; write -1 for all, or validation.enable "
                    "= false"});
  }
}

}  // namespace

bool reads_text(const settings::source& source) {
  if (source.format != source_format::automatic) return source.format != source_format::llmc;
  return !source.path.ends_with(".bin");
}

std::int64_t default_virtual_ranks(std::int64_t batch) {
  std::int64_t ranks = std::min<std::int64_t>(16, batch);
  while (batch % ranks != 0) --ranks;
  return ranks;
}

std::vector<problem> row_problems(const settings& s) {
  problems list;
  if (s.data.sources.empty()) {
    list.push_back({"data.sources",
                    "is required: say what to train on, [[data.sources]] and in it "
                    "path = \"...\""});
  }
  for (const setting& one : list_settings(s)) {
    if (one.option->required && one.option->standard.empty() && is_blank(one.value)) {
      list.push_back({one.key, fmt::format("is required: {}", one.option->sentence)});
      continue;
    }
    const auto fitted = fit(*one.option, {one.value, print_value(one.value)});
    if (!fitted) list.push_back({one.key, fitted.failure().message});
  }
  return list;
}

settings derive(settings s) {
  auto& m = s.model;
  const bool gpt2 = m.model_type == model_family::gpt2;
  if (s.job.name.empty()) s.job.name = "run";
  const std::string placeholder = "{name}";
  if (const auto at = s.job.run_dir.find(placeholder); at != std::string::npos) {
    s.job.run_dir.replace(at, placeholder.size(), s.job.name);
  }
  if (s.tokenizer.type == "auto") s.tokenizer.type = "byte";
  if (s.compute.backend == "auto") s.compute.backend = "cpu";
  if (s.comm.transport == "auto") s.comm.transport = "ucx";

  if (!s.tokenizer.add_eos) s.tokenizer.add_eos = m.vocab_size == 0 || m.vocab_size > byte_values;
  if (m.vocab_size == 0) m.vocab_size = byte_values + (*s.tokenizer.add_eos ? 1 : 0);
  const bool byte_tokens = m.vocab_size == byte_values + 1 ||
                           std::any_of(s.data.sources.begin(), s.data.sources.end(), reads_text);
  if (s.data.eod_token < 0 && *s.tokenizer.add_eos && byte_tokens) s.data.eod_token = byte_values;

  if (!m.tie_word_embeddings) m.tie_word_embeddings = gpt2;
  if (!m.bias) m.bias = gpt2;
  if (m.intermediate_size == 0) {
    m.intermediate_size = gpt2 ? 4 * m.hidden_size : (8 * m.hidden_size / 3 + 255) / 256 * 256;
  }
  if (m.num_key_value_heads == 0) m.num_key_value_heads = m.num_attention_heads;
  if (m.head_dim == 0 && m.hidden_size % m.num_attention_heads == 0) {
    m.head_dim = m.hidden_size / m.num_attention_heads;
  }
  if (m.max_position_embeddings == 0) m.max_position_embeddings = s.training.seq_len;

  auto& t = s.training;
  t.micro_batch_size = std::min(t.micro_batch_size, t.global_batch_size);
  if (s.validation.micro_batch_size == 0) s.validation.micro_batch_size = t.micro_batch_size;
  if (s.parallelism.virtual_ranks == 0) {
    s.parallelism.virtual_ranks = default_virtual_ranks(t.global_batch_size);
  }
  if (s.lr_scheduler.total_steps == 0) s.lr_scheduler.total_steps = t.steps;
  return s;
}

std::vector<problem> cross_problems(const settings& derived) {
  problems list;
  check_places(derived, list);
  check_model(derived, list);
  check_tokens(derived, list);
  check_batch(derived, list);
  check_schedule(derived, list);
  const problems world = world_problems(derived);
  list.insert(list.end(), world.begin(), world.end());
  return list;
}

result<settings> resolve(const settings& s) {
  problems list = row_problems(s);
  settings derived = s;
  if (list.empty()) {
    derived = derive(s);
    list = cross_problems(derived);
  }
  if (list.empty()) return derived;
  std::string text;
  for (const problem& p : list) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", p.key, p.message);
  }
  return error{exit_code::bad_config, text};
}

}  // namespace troupe::config
