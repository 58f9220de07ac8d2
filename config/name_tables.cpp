// The lists behind known_names.hpp.
#include <array>

#include "config/known_names.hpp"

namespace troupe::config {

std::span<const std::string_view> absent_names() {
  static constexpr std::string_view all[] = {
      "model.hf_assets_path",
      "tokenizer.path",
      "tokenizer.add_bos",
      "data.sources[].weight",
      "data.sources[].dtype",
      "data.split",
      "data.reset_position_ids",
      "data.reset_attention_mask",
      "data.prefetch",
      "training.mixed_precision_param",
      "training.mixed_precision_reduce",
      "parallelism.tensor_slices",
      "parallelism.tensor_parallel_degree",
      "parallelism.zero_stage",
      "parallelism.pipeline_parallel_degree",
      "parallelism.pipeline_parallel_schedule",
      "checkpoint.interval",
      "checkpoint.interval_seconds",
      "checkpoint.keep_latest_k",
      "checkpoint.keep_every",
      "checkpoint.async_mode",
      "checkpoint.initial_load_path",
      "checkpoint.initial_load_in_hf",
      "checkpoint.initial_load_model_only",
      "checkpoint.exclude_from_loading",
      "checkpoint.last_save_in_hf",
      "checkpoint.last_save_model_only",
      "checkpoint.export_dtype",
      "activation_checkpoint.mode",
      "fault_tolerance.give_up_seconds",
      "fault_tolerance.hash_interval",
      "fault_tolerance.audit_interval",
      "metrics.enable_tensorboard",
      "metrics.save_tb_folder",
      "profiling.enable_profiling",
      "profiling.save_traces_folder",
      "profiling.profile_freq",
      "profiling.profiler_active",
      "profiling.profiler_warmup",
      "dashboard.enable",
      "dashboard.listen",
      "dashboard.read_only",
      "chaos.scenario",
  };
  return all;
}

std::span<const unsupported_name> unsupported_names() {
  static constexpr std::string_view world =
      "the world decides: every worker that is there computes, start more or fewer of them "
      "(`--workers N`)";
  static constexpr unsupported_name all[] = {
      {"parallelism.data_parallel_degree", world},
      {"parallelism.data_parallel_shard_degree", world},
      {"parallelism.data_parallel_replicate_degree", world},
      {"parallelism.context_parallel_degree",
       "windows are not cut across workers; attention needs no memory for long ones, raise "
       "training.seq_len"},
      {"parallelism.expert_parallel_degree", "the llama and gpt2 families have no experts"},
      {"metrics.enable_wandb",
       "send the run directory's steps.jsonl to W&B with a script: one wandb.log a line"},
  };
  return all;
}

std::span<const foreign_name> foreign_names() {
  static constexpr std::string_view per_update =
      "sequences per update are "
      "training.global_batch_size";
  static constexpr std::string_view sequences = "counted in sequences, not in tokens";
  static constexpr std::string_view relative = "a share of optimizer.lr, not a rate";
  static constexpr std::string_view opposite = "with the opposite meaning";
  static constexpr foreign_name all[] = {
      // window
      {"block_size", "training.seq_len"},
      {"seq_length", "training.seq_len"},
      {"sequence_len", "training.seq_len"},
      {"sequence_length", "training.seq_len"},
      {"max_seq_len", "training.seq_len"},
      {"max_seq_length", "training.seq_len"},
      {"context_length", "training.seq_len"},
      {"n_positions", "model.max_position_embeddings"},
      {"n_ctx", "model.max_position_embeddings"},
      // batch
      {"local_batch_size", "training.micro_batch_size", per_update},
      {"batch_size", "training.micro_batch_size", per_update},
      {"device_batch_size", "training.micro_batch_size", per_update},
      {"per_device_train_batch_size", "training.micro_batch_size", per_update},
      {"per_device_eval_batch_size", "validation.micro_batch_size"},
      {"total_batch_size", "training.global_batch_size", sequences},
      {"train_batch_size", "training.global_batch_size", sequences},
      {"gradient_accumulation_steps", "training.global_batch_size",
       "accumulation follows from it and training.micro_batch_size"},
      // length of the run
      {"train_iters", "training.steps"},
      {"max_iters", "training.steps"},
      {"max_steps", "training.steps"},
      {"train_steps", "training.steps"},
      {"num_iterations", "training.steps"},
      {"num_train_epochs", "training.steps", "counted in updates, not in epochs"},
      // clipping
      {"clip_grad", "training.max_norm"},
      {"grad_clip", "training.max_norm"},
      {"max_grad_norm", "training.max_norm"},
      {"grad_clip_norm", "training.max_norm"},
      {"gradient_clipping", "training.max_norm"},
      // seed, type
      {"random_seed", "training.seed"},
      {"manual_seed", "training.seed"},
      {"torch_dtype", "training.dtype"},
      // optimizer
      {"learning_rate", "optimizer.lr"},
      {"max_lr", "optimizer.lr"},
      {"adam_beta1", "optimizer.beta1"},
      {"adam_beta2", "optimizer.beta2"},
      {"betas", "optimizer.beta1", "and optimizer.beta2, one number each"},
      {"adam_eps", "optimizer.eps"},
      {"adam_epsilon", "optimizer.eps"},
      {"optim", "optimizer.name"},
      {"optimizer_name", "optimizer.name"},
      // schedule
      {"lr_warmup_iters", "lr_scheduler.warmup_steps"},
      {"warmup_iters", "lr_scheduler.warmup_steps"},
      {"num_warmup_steps", "lr_scheduler.warmup_steps"},
      {"warmup_ratio", "lr_scheduler.warmup_steps", "counted in updates, not as a share"},
      {"min_lr", "lr_scheduler.min_lr_factor", relative},
      {"lr_min", "lr_scheduler.min_lr_factor", relative},
      {"min_lr_ratio", "lr_scheduler.min_lr_factor"},
      {"final_lr_frac", "lr_scheduler.min_lr_factor"},
      {"lr_decay_style", "lr_scheduler.decay_type"},
      {"lr_scheduler_type", "lr_scheduler.decay_type"},
      {"scheduler.name", "lr_scheduler.decay_type"},
      {"lr_decay_iters", "lr_scheduler.total_steps"},
      // keeping
      {"save_interval", "checkpoint.interval"},
      {"save_steps", "checkpoint.interval"},
      {"save_total_limit", "checkpoint.keep_latest_k"},
      {"most_recent_k", "checkpoint.keep_latest_k"},
      {"keep_last_n", "checkpoint.keep_latest_k"},
      {"save_retain_interval", "checkpoint.keep_every"},
      {"enable_checkpoint", "checkpoint.enable"},
      {"checkpoint.load_step", "`--resume STEP`", "an option of the command line"},
      {"resume_from_checkpoint", "`--resume auto`", "an option of the command line"},
      {"init_from", "`--resume auto`", "an option of the command line"},
      {"load_path", "checkpoint.initial_load_path"},
      {"dump_folder", "job.run_dir"},
      {"out_dir", "job.run_dir"},
      {"output_dir", "job.run_dir"},
      {"checkpoint.dir", "job.run_dir"},
      {"run_name", "job.name"},
      {"wandb_run_name", "job.name"},
      {"wandb_project", "metrics.enable_wandb", "which is not supported"},
      {"tensorboard_dir", "metrics.save_tb_folder"},
      // saying and measuring
      {"log_interval", "metrics.log_freq"},
      {"logging_steps", "metrics.log_freq"},
      {"eval_interval", "validation.freq"},
      {"eval_steps", "validation.freq", "how much is measured is validation.steps"},
      {"val_loss_every", "validation.freq"},
      {"eval.interval", "validation.freq"},
      {"eval.steps", "validation.steps"},
      {"eval_iters", "validation.steps"},
      {"val_max_steps", "validation.steps"},
      {"validation_path", "validation.path"},
      // model
      {"architecture", "model.model_type"},
      {"n_layer", "model.num_hidden_layers"},
      {"n_layers", "model.num_hidden_layers"},
      {"num_layers", "model.num_hidden_layers"},
      {"n_head", "model.num_attention_heads"},
      {"n_heads", "model.num_attention_heads"},
      {"num_heads", "model.num_attention_heads"},
      {"n_kv_heads", "model.num_key_value_heads"},
      {"num_kv_heads", "model.num_key_value_heads"},
      {"num_query_groups", "model.num_key_value_heads"},
      {"n_embd", "model.hidden_size"},
      {"d_model", "model.hidden_size"},
      {"model.dim", "model.hidden_size"},
      {"n_inner", "model.intermediate_size"},
      {"ffn_hidden_size", "model.intermediate_size"},
      {"d_ff", "model.intermediate_size"},
      {"kv_channels", "model.head_dim"},
      {"rms_norm_eps", "model.norm_eps"},
      {"layer_norm_epsilon", "model.norm_eps"},
      {"layer_norm_eps", "model.norm_eps"},
      {"layernorm_epsilon", "model.norm_eps"},
      {"rotary_base", "model.rope_theta"},
      {"tie_embeddings", "model.tie_word_embeddings"},
      {"untie_embeddings_and_output_weights", "model.tie_word_embeddings", opposite},
      {"init_std", "model.initializer_range"},
      {"init_method_std", "model.initializer_range"},
      {"hidden_dropout", "model.dropout"},
      {"attention_dropout", "model.dropout"},
      {"resid_pdrop", "model.dropout"},
      {"embd_pdrop", "model.dropout"},
      {"attn_pdrop", "model.dropout"},
      {"add_bias_linear", "model.bias"},
      {"disable_bias_linear", "model.bias", opposite},
      // data and tokens
      {"data_path", "data.sources[].path", "a [[data.sources]] table"},
      {"dataset_path", "data.sources[].path", "a [[data.sources]] table"},
      {"dataset", "data.sources[].path", "a [[data.sources]] table"},
      {"data.path", "data.sources[].path", "a [[data.sources]] table"},
      {"tokenizer_type", "tokenizer.type"},
      {"tokenizer_path", "tokenizer.path"},
      {"append_eod", "tokenizer.add_eos"},
      {"eos_token_id", "data.eod_token"},
      {"num_workers", "data.prefetch"},
      // machine
      {"device", "compute.backend"},
      {"num_threads", "compute.threads"},
      // the world
      {"min_replica_size", "elastic.min_members"},
      {"min_replicas", "elastic.min_members"},
      {"nnodes", "elastic.min_members", "and elastic.max_members"},
      {"join_timeout", "elastic.wait_timeout_seconds"},
      {"rdzv_timeout", "elastic.wait_timeout_seconds"},
      {"rdzv_last_call_timeout", "elastic.join_window_seconds"},
      {"replication_factor", "fault_tolerance.backups", "copies besides the one that is trained"},
      {"heartbeat_interval", "fault_tolerance.heartbeat_ms", "in milliseconds"},
      {"heartbeat_timeout", "fault_tolerance.evict_ms", "in milliseconds"},
      {"train_timeout_seconds", "fault_tolerance.stall_seconds"},
      {"rdzv_endpoint", "`--run-dir DIR`", "members meet through the run directory"},
      {"master_addr", "comm.listen"},
      {"master_port", "comm.listen"},
      // spreading and recomputing
      {"tensor_model_parallel_size", "parallelism.tensor_parallel_degree"},
      {"pipeline_model_parallel_size", "parallelism.pipeline_parallel_degree"},
      {"use_distributed_optimizer", "parallelism.zero_stage"},
      {"gradient_checkpointing", "activation_checkpoint.mode"},
      {"activation_checkpointing", "activation_checkpoint.mode"},
      {"recompute_granularity", "activation_checkpoint.mode"},
      {"mixed_precision", "training.mixed_precision_param"},
  };
  return all;
}

}  // namespace troupe::config
