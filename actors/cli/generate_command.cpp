// `troupe generate`: continues a prompt with a trained model. The prompt's bytes are the tokens;
// once the window is full it slides, so text of any length can be made.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "actors/cli/command_line.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/loaded_model.hpp"
#include "model/data/tokens.hpp"
#include "model/sampling.hpp"

namespace troupe::actors::cli {
namespace {

struct request {
  std::string run_dir, prompt;
  std::size_t tokens = 200;
  std::uint64_t samples = 1;
  int threads = 0;
  bool ignore_end = false;
  model::sampling_settings sampling;
};

// Where a document begins, the model has seen the end of the one before.
std::vector<std::int32_t> prompt_tokens(const request& r, const loaded_model& m) {
  std::vector<std::int32_t> tokens;
  for (char c : r.prompt) tokens.push_back(static_cast<unsigned char>(c));
  if (tokens.empty()) {
    const bool has_end = m.description.vocabulary > model::data::byte_end_of_text;
    tokens.push_back(has_end ? static_cast<std::int32_t>(model::data::byte_end_of_text) : '\n');
  }
  return tokens;
}

status write_sample(const request& r, const loaded_model& m, model::evaluation& evaluation,
                    std::uint64_t sample, std::ostream& out) {
  std::vector<std::int32_t> tokens = prompt_tokens(r, m);
  std::vector<float> logits(m.description.vocabulary);
  out << r.prompt;
  for (std::size_t made = 0; made < r.tokens; ++made) {
    const std::size_t window = std::min(tokens.size(), m.positions());
    evaluation.logits(m.state, 1, window, std::span<const std::int32_t>(tokens).last(window), true,
                      logits);
    if (!std::ranges::all_of(logits, [](float v) { return std::isfinite(v); })) {
      return error{exit_code::bad_data,
                   fmt::format("the model of step {} in {} gives logits that are not finite: its "
                               "training went wrong",
                               m.step, r.run_dir)};
    }
    const std::int32_t next = model::draw_token(logits, r.sampling, sample, made);
    tokens.push_back(next);
    if (next < 256) {
      out << static_cast<char>(next);
    } else if (r.ignore_end) {
      out << "\n";
    } else {
      break;
    }
    out.flush();
  }
  out << "\n";
  return done{};
}

}  // namespace

int generate_command(arguments args, std::ostream& out, std::ostream& err) {
  command_line line(
      "generate", "Continues a prompt with the newest checkpoint of a run.",
      "  troupe generate outputs/quickstart --prompt \"The computer\" --temperature 0.8\n"
      "  troupe generate outputs/quickstart --tokens 500 --samples 3 --seed 7\n");
  request r;
  line.app().add_option("RUN_DIR", r.run_dir, "run directory")->required();
  line.app().add_option("--prompt", r.prompt, "text to continue; empty: a new document");
  line.app()
      .add_option("--tokens", r.tokens, "most tokens to make a sample")
      ->check(CLI::NonNegativeNumber);
  line.app()
      .add_option("--temperature", r.sampling.temperature, "0: always the most probable token")
      ->check(CLI::Range(0.0, 100.0));
  line.app().add_option(
      "--top-k", r.sampling.top_k,
      "draw from the k most probable tokens->check(CLI::NonNegativeNumber); 0: from all");
  line.app()
      .add_option("--seed", r.sampling.seed, "the same seed gives the same text")
      ->check(CLI::NonNegativeNumber);
  line.app().add_option("--samples", r.samples, "how many")->check(CLI::NonNegativeNumber);
  line.app().add_flag("--ignore-end", r.ignore_end, "go on after the model ends the document");
  line.app()
      .add_option("--threads", r.threads, "threads (0: all cores)")
      ->check(CLI::Range(0, 1024));
  if (const auto code = line.parse(args, out, err)) return *code;
  if (!std::isfinite(r.sampling.temperature)) {
    err << "troupe: --temperature has to be a number from 0 to 100\n";
    return static_cast<int>(exit_code::usage);
  }
  result<loaded_model> m = load_model(r.run_dir, r.threads);
  if (!m) return fail(m.failure(), err);
  const model::network net(*m->device, m->description, m->layout, m->positions(), 0);
  model::evaluation evaluation(net, m->positions());
  for (std::uint64_t sample = 0; sample < r.samples; ++sample) {
    if (sample > 0) out << "---\n";
    if (status written = write_sample(r, *m, evaluation, sample, out); !written) {
      out << "\n";
      err << "troupe: " << written.failure().message << "\n";
      return static_cast<int>(written.failure().code);
    }
  }
  return 0;
}

}  // namespace troupe::actors::cli
