// `troupe eval`: the loss of a trained model on a data set, and its logits for comparison with
// other programs.

#include <fmt/format.h>

#include <algorithm>

#include "actors/cli/command_line.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/loaded_model.hpp"
#include "actors/validation.hpp"
#include "config/base/json.hpp"
#include "model/data/dataset.hpp"
#include "model/hub/safetensors.hpp"

namespace troupe::actors::cli {
namespace {

struct request {
  std::string run_dir, data, logits;
  std::size_t seq_len = 0, batch = 8;
  std::uint64_t windows = 0;
  int threads = 0;
  bool json = false;
};

result<model::data::dataset> open_data(const request& r, const loaded_model& m) {
  model::data::dataset_options options;
  options.sources.push_back({r.data, model::data::data_format::automatic, "text"});
  options.seq_len = r.seq_len;
  options.vocabulary = m.description.vocabulary;
  options.add_eos = m.description.vocabulary > model::data::byte_end_of_text;
  options.shuffle = false;
  return model::data::dataset::open(options);
}

// One tensor "logits" [windows, T, V], F32, written window by window.
status write_logits(const request& r, const loaded_model& m, model::evaluation& evaluation,
                    const model::data::dataset& data, std::uint64_t windows) {
  const std::size_t vocabulary = m.description.vocabulary;
  const std::vector<model::tensor_shape> tensors = {
      {"logits", model::tensor_type::f32, {windows, r.seq_len, vocabulary}}};
  result<std::string> header = model::make_safetensors_header(tensors, {{"format", "pt"}});
  if (!header) return header.failure();
  result<std::unique_ptr<file>> into = real_file_system().open(r.logits, open_mode::truncate);
  if (!into) return into.failure();
  if (status s = (*into)->write_at(0, std::as_bytes(std::span(*header))); !s) return s;
  std::vector<std::int32_t> tokens(r.seq_len), targets(r.seq_len);
  std::vector<float> logits(r.seq_len * vocabulary);
  for (std::uint64_t w = 0; w < windows; ++w) {
    result<std::size_t> filled = data.fill(w, tokens, targets);
    if (!filled) return filled.failure();
    evaluation.logits(m.state, 1, r.seq_len, tokens, false, logits);
    const std::span<const std::byte> bytes = std::as_bytes(std::span(logits));
    if (status s = (*into)->write_at(header->size() + w * bytes.size(), bytes); !s) return s;
  }
  return (*into)->sync();
}

}  // namespace

int eval_command(arguments args, std::ostream& out, std::ostream& err) {
  command_line line("eval", "The loss of a run's newest checkpoint on a data set, in nats a token.",
                    "  troupe eval outputs/quickstart --data valid.txt\n"
                    "  troupe eval outputs/quickstart --data valid.txt --windows 4 --logits "
                    "logits.safetensors\n");
  request r;
  line.app().add_option("RUN_DIR", r.run_dir, "run directory")->required();
  line.app()
      .add_option("--data", r.data, "file or pattern: text, JSON lines or llm.c tokens")
      ->required();
  line.app()
      .add_option("--seq-len", r.seq_len, "window [tokens]; 0: the model's longest")
      ->check(CLI::NonNegativeNumber);
  line.app()
      .add_option("--windows", r.windows, "at most this many windows; 0: all")
      ->check(CLI::NonNegativeNumber);
  line.app()
      .add_option("--batch", r.batch, "windows computed at once")
      ->check(CLI::Range(1, 1 << 20));
  line.app().add_option("--logits", r.logits,
                        "write the logits [windows, T, V] to this safetensors file");
  line.app()
      .add_option("--threads", r.threads, "threads (0: all cores)")
      ->check(CLI::Range(0, 1024));
  line.app().add_flag("--json", r.json, "one JSON object instead of text");
  if (const auto code = line.parse(args, out, err)) return *code;
  result<loaded_model> m = load_model(r.run_dir, r.threads);
  if (!m) return fail(m.failure(), err);
  if (r.seq_len == 0) r.seq_len = m->positions();
  if (r.seq_len > m->positions()) {
    return fail(
        {exit_code::usage, fmt::format("--seq-len {}: the model has positions for {} tokens",
                                       r.seq_len, m->positions())},
        err);
  }
  result<model::data::dataset> data = open_data(r, *m);
  if (!data) return fail(data.failure(), err);
  const std::uint64_t windows =
      r.windows == 0 ? data->windows() : std::min(r.windows, data->windows());
  const model::network net(*m->device, m->description, m->layout, r.seq_len, 0);
  model::evaluation evaluation(net, std::min<std::uint64_t>(r.batch, windows) * r.seq_len);
  result<validation_result> measured = validate(evaluation, m->state, r.seq_len, windows, 1,
                                                [&](std::uint64_t w, std::span<std::int32_t> tokens,
                                                    std::span<std::int32_t> targets) -> status {
                                                  result<std::size_t> filled =
                                                      data->fill(w, tokens, targets);
                                                  if (!filled) return filled.failure();
                                                  return done{};
                                                });
  if (!measured) return fail(measured.failure(), err);
  if (!r.logits.empty()) {
    if (status written = write_logits(r, *m, evaluation, *data, windows); !written) {
      return fail(written.failure(), err);
    }
  }
  if (r.json) {
    json_page page;
    page.u64("step", m->step)
        .number("loss", measured->loss)
        .u64("tokens", static_cast<std::uint64_t>(measured->tokens))
        .u64("windows", windows)
        .text("weights_hash", m->weights_hash);
    out << page.finish();
  } else {
    out << fmt::format("step {}  loss {:.6f}  tokens {}  windows {}\n", m->step, measured->loss,
                       static_cast<std::uint64_t>(measured->tokens), windows);
  }
  return 0;
}

}  // namespace troupe::actors::cli
