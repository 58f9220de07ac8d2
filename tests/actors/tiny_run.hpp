// Whole training runs of a tiny model in this process: a folder with text, runs beside it, and what
// a run left behind. Peak and clock are given, so that no test waits or measures.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "actors/training_run.hpp"
#include "config/load.hpp"
#include "tests/model/data/data_files.hpp"

namespace troupe::actors {

struct run_outcome {
  int code = -1;
  std::string out, err;  // what was shown
  nlohmann::json report;
  std::vector<step_record> steps;

  std::string weights_hash() const { return report.at("weights_hash").get<std::string>(); }
  std::string state_hash() const { return report.at("state_hash").get<std::string>(); }
};

inline void expect_same_bits(const run_outcome& a, const run_outcome& b) {
  EXPECT_EQ(a.weights_hash(), b.weights_hash());
  EXPECT_EQ(a.state_hash(), b.state_hash());
  EXPECT_EQ(a.weights_hash().size(), 32u);
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i)
    EXPECT_TRUE(a.steps[i].same_bits(b.steps[i])) << "step " << i + 1 << " differs";
}

// A notice that comes before the (k + 1)th step of this start.
inline std::function<int(std::uint64_t)> stop_before(std::size_t k) {
  return [first = std::optional<std::uint64_t>(), k](std::uint64_t decided) mutable {
    if (!first) first = decided;
    return decided - *first >= k ? SIGTERM : 0;
  };
}

inline std::string words(std::uint64_t seed, std::size_t bytes) {
  std::string text;
  for (std::uint64_t state = seed; text.size() < bytes;) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text += (state >> 40) % 5 == 0 ? ' ' : static_cast<char>('a' + (state >> 45) % 7);
  }
  return text;
}

struct how_to_run {
  checkpoint::wanted resume = {};
  std::function<int(std::uint64_t)> stop = [](std::uint64_t) { return 0; };
  file_system* files = &real_file_system();
  bool quiet = false;
};

class tiny_run_test : public testing::Test {
 protected:
  // 25 windows of 8 tokens: with 8 windows a step, step 4 begins in one epoch and ends in the next.
  tiny_run_test() {
    (void)place.write("text-c.txt", words(3, 70));
    (void)place.write("text-a.txt", words(1, 60));
    (void)place.write("text-b.txt", words(2, 68));
    (void)place.write("valid.txt", words(4, 100));
  }

  using texts = std::vector<std::string>;

  result<config::loaded> configured(const texts& overrides) const {
    const std::string toml = fmt::format(R"(
[model]
model_type = "llama"
hidden_size = 16
intermediate_size = 32
num_hidden_layers = 1
num_attention_heads = 2
num_key_value_heads = 1
[[data.sources]]
path = "{0}"
[training]
seq_len = 8
global_batch_size = 8
micro_batch_size = 2
steps = 6
[parallelism]
virtual_ranks = 2
[compute]
threads = 1
[optimizer]
lr = 1e-2
[lr_scheduler]
warmup_steps = 2
total_steps = 6
[validation]
path = "{1}"
freq = 2
[metrics]
peak_flops = 1e9
)",
                                         place / "text-*.txt", place / "valid.txt");
    return config::load(
        {.file = "run.toml", .text = toml, .environment = {}, .overrides = overrides});
  }

  // One start of the run `name`, as the worker does it.
  run_outcome train(const std::string& name, const texts& overrides = {},
                    const how_to_run& how = {}) {
    run_outcome o;
    const result<config::loaded> loaded = configured(overrides);
    EXPECT_TRUE(loaded) << loaded.failure().message;
    if (!loaded) return o;
    const result<run_directory> run = run_directory::claim(real_file_system(), place / name, clock);
    EXPECT_TRUE(run) << run.failure().message;
    if (!run) return o;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    {
      console screen({.terminal = false, .color = false, .quiet = how.quiet});
      training_run training(*run, {loaded->settings, how.resume, ""},
                            {*how.files, clock, screen, how.stop});
      o.code = training.run();
    }
    o.out = testing::internal::GetCapturedStdout();
    o.err = testing::internal::GetCapturedStderr();
    const std::string text = file(name, "report.json");
    if (!text.empty()) o.report = nlohmann::json::parse(text);
    const auto steps = read_steps(real_file_system(), place / (name + "/steps.jsonl"));
    if (steps) o.steps = *steps;  // else it has a torn line that is still to be repaired
    return o;
  }

  std::string file(const std::string& run, const std::string& name) const {
    return model::data::read_all(place / (run + "/" + name));
  }
  std::vector<std::string> checkpoints(const std::string& run) const {
    std::vector<std::string> names;
    const auto entries = real_file_system().list(place / (run + "/checkpoints"));
    for (const directory_entry& e : *entries) names.push_back(e.name);
    return names;
  }

  model::data::folder place;
  manual_clock clock;
};

}  // namespace troupe::actors
