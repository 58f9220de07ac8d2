// A trained model as commands that only read it need it: the newest whole checkpoint of a run
// directory, on a device of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "compute/executor.hpp"
#include "config/base/error.hpp"
#include "model/network.hpp"

namespace troupe::actors::cli {

struct loaded_model {
  std::unique_ptr<compute::executor> device;
  model::description description;
  model::model_layout layout;
  model::model_state state;
  std::uint64_t step = 0;
  std::string tokenizer;  // "byte"
  std::string weights_hash;
  std::size_t positions() const { return description.positions; }
};

// threads 0: all cores.
result<loaded_model> load_model(const std::string& run_dir, int threads);

}  // namespace troupe::actors::cli
