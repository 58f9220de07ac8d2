// The rows about the model, its data and its training; those about the world that trains are in
// world_options.cpp. Read `options.hpp` first; to add an option, add its member to `settings` and a
// row here or there, then print the page again: `troupe config reference > docs/configuration.md`.
#include "config/option_rows.hpp"

namespace troupe::config {
namespace {

constexpr std::array<std::string_view, 3> later_formats{"megatron", "raw", "npy"};
constexpr std::array<std::string_view, 2> tokenizer_types{"auto", "byte"};
constexpr std::array<std::string_view, 3> later_tokenizers{"hf", "tiktoken", "sentencepiece"};
constexpr std::array<std::string_view, 1> dtypes{"float32"};
constexpr std::array<std::string_view, 3> later_dtypes{"bfloat16", "float16", "float64"};
constexpr std::array<std::string_view, 2> backends{"auto", "cpu"};
constexpr std::array<std::string_view, 1> later_backends{"cuda"};
constexpr std::array<std::string_view, 1> optimizers{"AdamW"};
constexpr std::array<std::string_view, 1> rope_types{"llama3"};
constexpr std::array<std::string_view, 3> later_rope_types{"linear", "dynamic", "yarn"};

std::vector<option> make_options() {
  return {
      // [job]
      text("job.name", "", bits::no,
           "Name of the run; the configuration's file name without its ending if not given. "
           "Letters, digits, '.', '_' and '-'.",
           MEMBER(job.name)),
      text("job.description", "", bits::no, "A line for people.", MEMBER(job.description)),
      text("job.run_dir", "outputs/{name}", bits::no,
           "Where the run keeps its records and checkpoints; {name} stands for job.name. Relative "
           "to the working directory, as all paths are.",
           MEMBER(job.run_dir)),

      // [model]
      choice("model.model_type", "llama", family_names, {}, bits::yes, "Family of the model.",
             MEMBER(model.model_type)),
      text(
          "model.flavor", "", bits::through,
          "A preset that stands below the file: debugmodel, 124M, 350M, 774M, 1558M (gpt2), 1B, 8B "
          "or 70B (llama).",
          MEMBER(model.flavor)),
      integer("model.vocab_size", "0", count_or_0, "tokens", bits::yes,
              "Entries of the vocabulary; 0 = as many as the tokenizer has.",
              MEMBER(model.vocab_size)),
      integer("model.hidden_size", "512", count, "", bits::yes, "Width of the residual stream.",
              MEMBER(model.hidden_size)),
      integer(
          "model.intermediate_size", "0", count_or_0, "", bits::yes,
          "Width inside the feed-forward block; 0 = the family's rule: 4 x hidden_size for gpt2, "
          "8/3 x hidden_size rounded up to a multiple of 256 for llama.",
          MEMBER(model.intermediate_size)),
      integer("model.num_hidden_layers", "8", {1, 65535}, "", bits::yes, "Transformer layers.",
              MEMBER(model.num_hidden_layers)),
      integer("model.num_attention_heads", "8", {1, 65535}, "", bits::yes, "Attention heads.",
              MEMBER(model.num_attention_heads)),
      integer("model.num_key_value_heads", "0", {0, 65535}, "", bits::yes,
              "Heads of keys and values, each shared by a group of attention heads; 0 = "
              "num_attention_heads.",
              MEMBER(model.num_key_value_heads)),
      integer("model.head_dim", "0", {0, 256}, "", bits::yes,
              "Size of one head; 0 = hidden_size / num_attention_heads.", MEMBER(model.head_dim)),
      integer("model.max_position_embeddings", "0", count_or_0, "tokens", bits::yes,
              "The longest window the model can see, for gpt2 the rows of its position table; 0 = "
              "training.seq_len.",
              MEMBER(model.max_position_embeddings)),
      number("model.norm_eps", "1e-5", above_0, "", bits::yes,
             "Added to the variance in LayerNorm and RMSNorm.", MEMBER(model.norm_eps)),
      number("model.rope_theta", "10000", above_0, "", bits::yes,
             "Base of the rotary embedding's wavelengths (llama).", MEMBER(model.rope_theta)),
      boolean(
          "model.tie_word_embeddings", "", bits::yes,
          "The head multiplies with the token embedding; if not given: true for gpt2, false for "
          "llama.",
          MEMBER(model.tie_word_embeddings)),
      number("model.initializer_range", "0.02", above_0, "", bits::yes,
             "Standard deviation of the initial weights.", MEMBER(model.initializer_range)),
      number("model.dropout", "0", below_1, "", bits::yes,
             "Dropout after the embedding, on each residual branch and on attention probabilities.",
             MEMBER(model.dropout)),
      boolean("model.bias", "", bits::yes,
              "Biases in the matrices and norms; if not given: true for gpt2, false for llama "
              "(which has none).",
              MEMBER(model.bias)),
      {"model.rope_scaling",
       kind::table,
       "",
       {},
       "",
       "Stretches the rotary embedding for windows longer than the original (llama).",
       scope::run,
       bits::yes,
       [](const settings& s, std::size_t) -> value { return s.model.rope_scaling.has_value(); },
       [](settings& s, std::size_t, const value&) { s.model.rope_scaling.emplace(); }},
      choice("model.rope_scaling.rope_type", "llama3", rope_types, later_rope_types, bits::yes,
             "Kind of scaling.",
             {[](const settings& s, std::size_t) -> value {
                return s.model.rope_scaling ? value("llama3") : value();
              },
              [](settings& s, std::size_t, const value&) {
                if (!s.model.rope_scaling) s.model.rope_scaling.emplace();
              }}),
      required(number("model.rope_scaling.factor", "", {1, largest}, "", bits::yes,
                      "Long wavelengths are stretched by this.", ROPE(factor))),
      required(number("model.rope_scaling.low_freq_factor", "", above_0, "", bits::yes,
                      "Wavelengths above original_max_position_embeddings / this are long.",
                      ROPE(low_freq_factor))),
      required(number("model.rope_scaling.high_freq_factor", "", above_0, "", bits::yes,
                      "Wavelengths below original_max_position_embeddings / this stay as they are.",
                      ROPE(high_freq_factor))),
      required(integer("model.rope_scaling.original_max_position_embeddings", "", count, "tokens",
                       bits::yes, "The window that the model was first made for.",
                       ROPE(original_max_position_embeddings))),

      // [tokenizer]
      choice("tokenizer.type", "auto", tokenizer_types, later_tokenizers, bits::yes,
             "How text becomes tokens; byte: one token a byte (auto means byte).",
             MEMBER(tokenizer.type)),
      boolean(
          "tokenizer.add_eos", "", bits::yes,
          "Ends each document with an end-of-text token (256 for bytes); if not given: where the "
          "vocabulary has room for it.",
          MEMBER(tokenizer.add_eos)),

      // [data]
      boolean("data.shuffle", "true", bits::yes,
              "Takes the windows of an epoch in an order drawn from training.seed.",
              MEMBER(data.shuffle)),
      integer("data.eod_token", "-1", {-1, int31}, "token id", bits::yes,
              "The token that ends a document; -1 = the tokenizer's.", MEMBER(data.eod_token)),
      boolean(
          "data.eod_mask_loss", "false", bits::yes,
          "What follows an end-of-text token, the next document's first token, does not count in "
          "the loss.",
          MEMBER(data.eod_mask_loss)),
      required({"data.sources",
                kind::tables,
                "",
                {},
                "",
                "The corpora, one [[data.sources]] table each.",
                scope::run,
                bits::through,
                [](const settings& s, std::size_t) -> value {
                  return static_cast<std::int64_t>(s.data.sources.size());
                },
                [](settings& s, std::size_t, const value& v) {
                  reset_sources(s, static_cast<std::size_t>(std::get<std::int64_t>(v)));
                }}),
      required(text("data.sources[].path", "", bits::through,
                    "A file, or a pattern such as x/*.txt.", SOURCE(path))),
      text("data.sources[].name", "", bits::no,
           "Name of the corpus in records; the file's name if not given.", SOURCE(name)),
      choice(
          "data.sources[].format", "auto", format_names, later_formats, bits::through,
          "llmc: a token file of llm.c; text: one document a file; jsonl: one JSON object a line; "
          "auto: by the file's beginning and ending.",
          SOURCE(format)),
      required(text("data.sources[].text_key", "text", bits::through,
                    "The field of a JSON line that holds the text.", SOURCE(text_key))),

      // [training]
      integer("training.seq_len", "2048", {1, 16777216}, "tokens", bits::yes,
              "Length of a training window.", MEMBER(training.seq_len)),
      integer("training.micro_batch_size", "8", count, "sequences", bits::no,
              "How many sequences are computed at once: a matter of memory only. More than the "
              "global batch means the whole batch.",
              MEMBER(training.micro_batch_size)),
      required(integer("training.global_batch_size", "", count, "sequences", bits::yes,
                       "Sequences per update, whatever the number of workers.",
                       MEMBER(training.global_batch_size))),
      integer(
          "training.steps", "10000", long_count, "updates", bits::through,
          "Length of the run. May grow on resume if lr_scheduler.total_steps is set or the rate "
          "is constant.",
          MEMBER(training.steps)),
      number("training.max_norm", "1.0", not_negative, "", bits::yes,
             "Gradients are clipped to this global norm; 0 = never.", MEMBER(training.max_norm)),
      integer("training.seed", "1234", {0, 9223372036854775807.0}, "", bits::yes,
              "Seed of everything random: weights, order of the data, dropout.",
              MEMBER(training.seed)),
      choice("training.dtype", "float32", dtypes, later_dtypes, bits::yes,
             "Type of parameters and optimizer state.", MEMBER(training.dtype)),
      boolean("training.skip_nonfinite", "true", bits::yes,
              "A step whose gradient is not finite changes nothing and is counted as skipped.",
              MEMBER(training.skip_nonfinite)),
      integer("training.max_skipped_steps", "10", count, "updates", bits::no,
              "More skipped steps in a row than this end the run with exit code 65.",
              MEMBER(training.max_skipped_steps)),

      // [compute]
      choice("compute.backend", "auto", backends, later_backends, bits::yes,
             "Device that computes; auto means cpu.", MEMBER(compute.backend)),
      of_member(
          integer("compute.threads", "0", {0, 1024}, "threads", bits::no,
                  "Threads of this member; 0 = the machine's cores shared evenly by its local "
                  "members.",
                  MEMBER(compute.threads))),

      // [optimizer]
      choice("optimizer.name", "AdamW", optimizers, {}, bits::yes, "The update rule.",
             MEMBER(optimizer.name)),
      number("optimizer.lr", "3e-4", above_0, "", bits::yes, "Highest learning rate.",
             MEMBER(optimizer.lr)),
      number("optimizer.beta1", "0.9", below_1, "", bits::yes, "Decay of the first moment.",
             MEMBER(optimizer.beta1)),
      number("optimizer.beta2", "0.95", below_1, "", bits::yes, "Decay of the second moment.",
             MEMBER(optimizer.beta2)),
      number("optimizer.eps", "1e-8", above_0, "", bits::yes,
             "Added to the root of the second moment.", MEMBER(optimizer.eps)),
      number("optimizer.weight_decay", "0.1", not_negative, "", bits::yes,
             "Decay of tensors with two or more dimensions; biases and norms never decay.",
             MEMBER(optimizer.weight_decay)),

      // [lr_scheduler]
      integer("lr_scheduler.warmup_steps", "200", {0, int53}, "updates", bits::yes,
              "The rate rises linearly over so many steps.", MEMBER(lr_scheduler.warmup_steps)),
      integer("lr_scheduler.total_steps", "0", {0, int53}, "updates", bits::yes,
              "Length of the rate's curve; 0 = training.steps.", MEMBER(lr_scheduler.total_steps)),
      number("lr_scheduler.decay_ratio", "", share, "", bits::yes,
             "Share of total_steps over which the rate falls; if not given: all after the warm-up.",
             MEMBER(lr_scheduler.decay_ratio)),
      choice("lr_scheduler.decay_type", "cosine", decay_names, {}, bits::yes,
             "Shape of the falling part.", MEMBER(lr_scheduler.decay_type)),
      number("lr_scheduler.min_lr_factor", "0.1", share, "", bits::yes,
             "The lowest rate, as a share of optimizer.lr.", MEMBER(lr_scheduler.min_lr_factor)),

      // [parallelism]
      integer(
          "parallelism.virtual_ranks", "0", count_or_0, "", bits::yes,
          "Fixed shares of the global batch that workers take whole; divides global_batch_size, "
          "bounds the number of workers that compute, and costs one gradient buffer a doubling. "
          "0 = the batch's largest divisor up to 16.",
          MEMBER(parallelism.virtual_ranks)),

      // [checkpoint]
      boolean("checkpoint.enable", "true", bits::no,
              "Saves the run at its end and whenever it is stopped in order.",
              MEMBER(checkpoint.enable)),
      required(text("checkpoint.folder", "checkpoints", bits::no, "Folder below the run directory.",
                    MEMBER(checkpoint.folder))),

      // [validation]
      boolean("validation.enable", "false", bits::no,
              "Measures the loss on other data on the way; disturbs nothing.",
              MEMBER(validation.enable)),
      text("validation.path", "", bits::no, "The validation data: a file or a pattern.",
           MEMBER(validation.path)),
      integer("validation.freq", "250", long_count, "updates", bits::no,
              "Every so many steps, and after the last.", MEMBER(validation.freq)),
      integer("validation.steps", "20", {-1, int53}, "batches", bits::no,
              "How much is measured each time, in batches of global_batch_size; -1 = all.",
              MEMBER(validation.steps)),
      integer("validation.micro_batch_size", "0", count_or_0, "sequences", bits::no,
              "Sequences computed at once; 0 = training.micro_batch_size.",
              MEMBER(validation.micro_batch_size)),
  };
}

}  // namespace

std::span<const option> options() {
  static const std::vector<option> all = [] {
    std::vector<option> rows = make_options();
    const std::vector<option> world = world_options();
    rows.insert(rows.end(), world.begin(), world.end());
    return rows;
  }();
  return all;
}

std::span<const section> sections() {
  static constexpr std::array<section, 17> all{{
      {"job", "The run as a whole."},
      {"model",
       "What is trained. Names are those of Hugging Face's config.json, for both families."},
      {"model.rope_scaling", "As in Llama 3.1 and later; all keys are required once it is there."},
      {"tokenizer", "How text becomes tokens."},
      {"data", "What it is trained on."},
      {"data.sources[]", "One [[data.sources]] table a corpus."},
      {"training", "How long and on how much at once."},
      {"compute", "What computes."},
      {"optimizer",
       "AdamW. Weight decay touches only tensors with two or more dimensions, as in nanoGPT and "
       "llm.c; trainers that decay everything reach another loss with the same numbers."},
      {"lr_scheduler",
       "Warm-up, a flat part, then a fall to min_lr_factor. With s finished steps the warm-up's "
       "factor is (s+1)/warmup_steps."},
      {"parallelism", "How the batch is cut; the world itself may change at any time."},
      {"checkpoint", "What is kept."},
      {"validation", "Loss on other data."},
      {"elastic", "How many workers there may be, and what is done when they come and go."},
      {"fault_tolerance",
       "What is kept twice, and when a silent member counts as lost. A killed process is noticed "
       "by "
       "its endpoints at once; the times here are for machines and links that fall silent."},
      {"comm", "How the workers of a world reach one another."},
      {"metrics", "What is said on the way."},
  }};
  return all;
}

std::string_view name_of(model_family f) { return family_names[static_cast<std::size_t>(f)]; }
std::string_view name_of(decay_type d) { return decay_names[static_cast<std::size_t>(d)]; }
std::string_view name_of(source_format f) { return format_names[static_cast<std::size_t>(f)]; }

}  // namespace troupe::config
