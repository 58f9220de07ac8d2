// A small run's state, its checkpoints in a file system, and the verbs of the checkpoint tests.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>

#include "config/base/faulty_file.hpp"
#include "config/base/memory_file.hpp"
#include "model/checkpoint/choose.hpp"
#include "model/checkpoint/folder.hpp"
#include "model/checkpoint/save.hpp"

namespace troupe::checkpoint {

inline const std::string directory = "/run/checkpoints";

inline model::description tiny_model() {
  return {.family = model::family::gpt2,
          .vocabulary = 11,
          .width = 4,
          .inner = 16,
          .layers = 1,
          .heads = 2,
          .kv_heads = 2,
          .head_dim = 2,
          .positions = 6,
          .rope_scaling = {},
          .tied = true,
          .bias = true};
}

// Its embedding has 280,004 elements: two blocks, the second one short.
inline model::description two_block_model() {
  model::description d = tiny_model();
  d.vocabulary = 69'995;
  return d;
}

inline facts facts_at(std::uint64_t step, const model::description& model = tiny_model()) {
  facts a;
  a.run_id = "run-1";
  a.step = step;
  a.data_position = step * 8;
  a.updates = step - 1;
  a.tokens = step * 64;
  a.model = model;
  a.config = {{"optimizer.lr", "0.00029999999999999997"}, {"training.seed", "1234"}};
  a.numerics_class = "cpu-chain";
  a.numerics_version = 1;
  a.data_digest = "00112233445566778899aabbccddeeff";
  a.tokenizer = "byte";
  a.record = {{"step", step}, {"loss_bits", 4607182418800017408u}};
  a.history = {{5, "resumed with training.steps = 60 instead of 10"}};
  return a;
}

// All bits of a run's state as a function of a number; any pattern occurs, also NaN and infinity.
struct run_state {
  explicit run_state(const model::description& model, std::uint64_t number = 0)
      : layout(model::make_layout(model)) {
    std::uint64_t state = number * 0x9E3779B97F4A7C15u + 1;
    for (const auto& layer : layout) {
      for (auto& kind : values) {
        auto& v = kind.emplace_back(layer.elements);
        for (float& x : v) {
          state = state * 6364136223846793005u + 1442695040888963407u;
          const auto bits = static_cast<std::uint32_t>(state >> 32);
          if (number != 0) std::memcpy(&x, &bits, 4);
        }
      }
    }
  }
  std::vector<state_view> views() const {
    std::vector<state_view> all;
    for (std::size_t i = 0; i < layout.size(); ++i) {
      all.push_back({values[0][i], values[1][i], values[2][i]});
    }
    return all;
  }
  // Everything; valid while this object stays where it is.
  block_places memory() {
    return [this](std::size_t layer, std::size_t block) {
      const auto part = [&](std::size_t kind) {
        return std::span(values[kind][layer])
            .subspan(block * model::block_elements, layout[layer].block_size(block));
      };
      return state_memory{part(0), part(1), part(2)};
    };
  }
  bool same_bits(const run_state& other) const {
    for (std::size_t k = 0; k < 3; ++k) {
      for (std::size_t i = 0; i < layout.size(); ++i) {
        const auto& a = values[k][i];
        const auto& b = other.values[k][i];
        if (a.size() != b.size()) return false;
        if (std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) != 0) return false;
      }
    }
    return true;
  }

  model::model_layout layout;
  std::array<std::vector<std::vector<float>>, 3> values;  // by kind, then layer
};

// The state of a step is a function of the step here.
inline result<saved> save_step(file_system& files, std::uint64_t step,
                               const model::description& model = tiny_model()) {
  const run_state state(model, step);
  return save(files, directory, facts_at(step, model), state.views());
}

inline std::string folder_of(std::uint64_t step) { return join_path(directory, folder_name(step)); }

inline std::string reason(const auto& outcome) {
  return outcome ? std::string() : outcome.failure().message;
}

inline std::string content(file_system& files, const std::string& path) {
  return *read_file(files, path, 1 << 24);
}

// Writes in place, as a bad disk would.
inline void put(file_system& files, const std::string& path, std::string_view bytes) {
  auto out = *files.open(path, open_mode::truncate);
  ASSERT_TRUE(out->write_at(0, std::as_bytes(std::span(bytes))));
}

inline std::vector<std::string> names_in(file_system& files, const std::string& path) {
  std::vector<std::string> names;
  const auto entries = files.list(path);
  for (const auto& e : *entries) names.push_back(e.name);
  return names;
}

inline std::vector<std::uint64_t> whole_steps(file_system& files) {
  std::vector<std::uint64_t> steps;
  const auto all = list(files, directory);
  for (const auto& e : *all) {
    if (e.state == condition::whole) steps.push_back(e.step);
  }
  return steps;
}

}  // namespace troupe::checkpoint
