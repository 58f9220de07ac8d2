// The effective configuration of a run as plain values, one struct a TOML table. What each key
// means, its unit, bounds and default stand in one place, the option table (options.cpp); the
// members here carry no defaults on purpose, `default_settings()` takes them from the table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::config {

enum class model_family : std::uint8_t { llama, gpt2 };
enum class decay_type : std::uint8_t { linear, cosine, sqrt, constant };
enum class source_format : std::uint8_t { automatic, llmc, text, jsonl };

struct rope_scaling {  // Llama-3 kind
  double factor, low_freq_factor, high_freq_factor;
  std::int64_t original_max_position_embeddings;
  friend bool operator==(const rope_scaling&, const rope_scaling&) = default;
};

struct settings {
  struct {
    std::string name, description, run_dir;
  } job;
  struct {
    model_family model_type;
    std::string flavor;
    std::int64_t vocab_size, hidden_size, intermediate_size, num_hidden_layers, num_attention_heads,
        num_key_value_heads, head_dim, max_position_embeddings;
    double norm_eps, rope_theta;
    std::optional<config::rope_scaling> rope_scaling;
    std::optional<bool> tie_word_embeddings, bias;  // unset: the family's habit
    double initializer_range, dropout;
  } model;
  struct {
    std::string path, type;
    std::optional<bool> add_eos;  // unset: true where the vocabulary has room for it
  } tokenizer;
  struct source {
    std::string path, name;
    source_format format;
    std::string text_key;  // JSON lines: the field that holds the text
  };
  struct {
    std::vector<source> sources;
    bool shuffle, eod_mask_loss;
    std::int64_t eod_token;  // -1: from the tokenizer
  } data;
  struct {
    std::int64_t seq_len, micro_batch_size, global_batch_size, steps;
    double max_norm;
    std::uint64_t seed;
    std::string dtype;
    bool skip_nonfinite;
    std::int64_t max_skipped_steps;
  } training;
  struct {
    std::string backend;
    std::int64_t threads;
  } compute;
  struct {
    std::string name;
    double lr, beta1, beta2, eps, weight_decay;
  } optimizer;
  struct {
    std::int64_t warmup_steps, total_steps;
    std::optional<double> decay_ratio;
    config::decay_type decay_type;
    double min_lr_factor;
  } lr_scheduler;
  struct {
    std::int64_t virtual_ranks;
  } parallelism;
  struct {
    bool enable;
    std::string folder;
  } checkpoint;
  struct {
    bool enable;
    std::string path;
    std::int64_t freq, steps, micro_batch_size;
  } validation;
  struct {
    std::int64_t min_members, max_members;
    double wait_timeout_seconds, join_window_seconds;
    std::string spare_policy, domain;
  } elastic;
  struct {
    std::int64_t backups, heartbeat_ms, suspect_ms, evict_ms;
    double stall_seconds, drain_grace_seconds;
    std::int64_t max_restarts;  // -1: no limit
    double restart_window_seconds;
  } fault_tolerance;
  struct {
    std::string transport, listen, advertise;
    double handshake_seconds, init_timeout_seconds;
    std::string secret_file, interfaces;
  } comm;
  struct {
    std::int64_t log_freq;
    bool disable_color_printing;
    double peak_flops;
    std::string prometheus_listen;  // "": off
  } metrics;
};

}  // namespace troupe::config
