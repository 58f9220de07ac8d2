// `troupe diff`: are two runs the same bits? Compares step by step, then the tensors of the newest
// step that both have on disk, and names the first difference. Exit code 0: the same bits, 1: not,
// as diff(1).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "actors/cli/command_line.hpp"
#include "actors/cli/commands.hpp"
#include "actors/records.hpp"
#include "actors/run_directory.hpp"
#include "config/base/json.hpp"
#include "config/load.hpp"
#include "model/checkpoint/choose.hpp"

namespace troupe::actors::cli {
namespace {

struct run_contents {
  std::string path;
  std::vector<step_record> steps;
  std::vector<checkpoint::listed> checkpoints;
};

struct verdict {
  bool same = true;
  std::string text;  // "same bits: ..." or the first difference
};

result<run_contents> read_run(const std::string& path) {
  result<run_directory> run = run_directory::open(real_file_system(), path);
  if (!run) return run.failure();
  result<config::loaded> config = config::load(
      {.file = run->file("config.toml"), .text = {}, .environment = {}, .overrides = {}});
  if (!config) return config.failure();
  result<std::vector<step_record>> steps = read_steps(real_file_system(), run->file("steps.jsonl"));
  if (!steps) return steps.failure();
  result<std::vector<checkpoint::listed>> checkpoints =
      checkpoint::list(real_file_system(), run->file(config->settings.checkpoint.folder));
  if (!checkpoints) return checkpoints.failure();
  return run_contents{path, std::move(*steps), std::move(*checkpoints)};
}

std::optional<std::string> first_step_difference(const run_contents& a, const run_contents& b) {
  const std::size_t common = std::min(a.steps.size(), b.steps.size());
  for (std::size_t i = 0; i < common; ++i) {
    const step_record &x = a.steps[i], &y = b.steps[i];
    if (x.same_bits(y)) continue;
    return fmt::format(
        "first difference at step {}: loss {} and {}, grad_norm {} and {}, lr {} and {}", x.step,
        json_number(x.loss), json_number(y.loss), json_number(x.grad_norm),
        json_number(y.grad_norm), json_number(x.lr), json_number(y.lr));
  }
  return std::nullopt;
}

struct full_state {
  model::model_layout layout;
  std::vector<std::vector<float>> parameters, first, second;
};

result<full_state> read_state(const checkpoint::listed& from) {
  full_state s;
  s.layout = model::make_layout(from.contents->about.model);
  std::vector<checkpoint::state_memory> memory;
  for (const model::layer_layout& layer : s.layout) {
    for (auto* kind : {&s.parameters, &s.first, &s.second}) kind->emplace_back(layer.elements);
    memory.push_back({s.parameters.back(), s.first.back(), s.second.back()});
  }
  result<checkpoint::manifest> read = checkpoint::load(real_file_system(), from.folder, s.layout,
                                                       checkpoint::whole_layers(s.layout, memory));
  if (!read) return read.failure();
  return s;
}

// "layer-0003 ... parameters: 17 of 4096 elements differ, first at 12: 0.1 and 0.2"
std::optional<std::string> first_tensor_difference(const full_state& a, const full_state& b) {
  const auto compare = [&](const char* kind, const auto& all_x,
                           const auto& all_y) -> std::optional<std::string> {
    for (std::size_t l = 0; l < a.layout.size(); ++l) {
      for (const model::tensor_info& t : a.layout[l].tensors) {
        const auto x = std::span(all_x[l]).subspan(t.offset, t.size);
        const auto y = std::span(all_y[l]).subspan(t.offset, t.size);
        if (std::memcmp(x.data(), y.data(), x.size_bytes()) == 0) continue;
        std::size_t differing = 0, first = t.size;
        for (std::size_t i = 0; i < t.size; ++i) {
          if (std::memcmp(&x[i], &y[i], sizeof(float)) == 0) continue;
          first = std::min(first, i);
          ++differing;
        }
        return fmt::format("{} ({}): {} of {} elements differ, first at {}: {} and {}", t.name,
                           kind, differing, t.size, first,
                           json_number(static_cast<double>(x[first])),
                           json_number(static_cast<double>(y[first])));
      }
    }
    return std::nullopt;
  };
  if (auto d = compare("parameters", a.parameters, b.parameters)) return d;
  if (auto d = compare("first moments", a.first, b.first)) return d;
  return compare("second moments", a.second, b.second);
}

// The newest step of which both runs have a whole checkpoint.
std::optional<std::pair<std::size_t, std::size_t>> newest_common(const run_contents& a,
                                                                 const run_contents& b) {
  using enum checkpoint::condition;
  for (std::size_t i = a.checkpoints.size(); i-- > 0;) {
    if (a.checkpoints[i].state != whole) continue;
    for (std::size_t j = b.checkpoints.size(); j-- > 0;) {
      if (b.checkpoints[j].state == whole && b.checkpoints[j].step == a.checkpoints[i].step)
        return {{i, j}};
    }
  }
  return std::nullopt;
}

result<verdict> compare(const run_contents& a, const run_contents& b) {
  if (const auto difference = first_step_difference(a, b)) return verdict{false, *difference};
  const std::size_t common = std::min(a.steps.size(), b.steps.size());
  std::string text = fmt::format("same bits in steps 1 to {}", common);
  if (common == 0) text = "no step is in both runs";
  if (a.steps.size() != b.steps.size()) {
    text +=
        fmt::format("; {} has {} steps, {} has {}", a.path, a.steps.size(), b.path, b.steps.size());
  }
  const auto both = newest_common(a, b);
  if (!both) return verdict{common > 0, text + "; no step is saved in both runs"};
  const checkpoint::listed &x = a.checkpoints[both->first], &y = b.checkpoints[both->second];
  if (!(x.contents->about.model == y.contents->about.model)) {
    return verdict{
        false, text + fmt::format("; the models saved at step {} have different shapes", x.step)};
  }
  if (x.contents->state_hash == y.contents->state_hash) {
    return verdict{true, text + fmt::format(" and in all tensors of step {} (state_hash {})",
                                            x.step, x.contents->state_hash.hex())};
  }
  result<full_state> left = read_state(x), right = read_state(y);
  if (!left) return left.failure();
  if (!right) return right.failure();
  const auto difference = first_tensor_difference(*left, *right);
  return verdict{false, fmt::format("first difference in the tensors of step {}: {}", x.step,
                                    difference ? *difference : "step or data position")};
}

}  // namespace

int diff_command(arguments args, std::ostream& out, std::ostream& err) {
  command_line line(
      "diff",
      "Compares two runs step by step and tensor by tensor (exit code 0: same bits, 1: not).",
      "  troupe diff outputs/a outputs/b\n"
      "  troupe diff outputs/a outputs/b --json\n");
  std::string a_path, b_path;
  bool json = false;
  line.app().add_option("RUN_A", a_path, "run directory")->required();
  line.app().add_option("RUN_B", b_path, "run directory")->required();
  line.app().add_flag("--json", json, "one JSON object instead of text");
  if (const auto code = line.parse(args, out, err)) return *code;
  result<run_contents> a = read_run(a_path), b = read_run(b_path);
  if (!a) return fail(a.failure(), err);
  if (!b) return fail(b.failure(), err);
  result<verdict> found = compare(*a, *b);
  if (!found) return fail(found.failure(), err);
  if (json) {
    json_page page;
    page.boolean("same_bits", found->same)
        .text("verdict", found->text)
        .u64("steps_compared", std::min(a->steps.size(), b->steps.size()));
    out << page.finish();
  } else {
    out << found->text << "\n";
  }
  return found->same ? 0 : 1;
}

}  // namespace troupe::actors::cli
