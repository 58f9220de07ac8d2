#include "actors/cli/loaded_model.hpp"

#include <fmt/format.h>

#include "actors/from_settings.hpp"
#include "actors/run_directory.hpp"
#include "config/load.hpp"
#include "model/checkpoint/choose.hpp"

namespace troupe::actors::cli {

result<loaded_model> load_model(const std::string& run_dir, int threads) {
  result<run_directory> run = run_directory::open(real_file_system(), run_dir);
  if (!run) return run.failure();
  result<config::loaded> config = config::load(
      {.file = run->file("config.toml"), .text = {}, .environment = {}, .overrides = {}});
  if (!config) return config.failure();
  config::settings settings = config->settings;
  if (threads > 0) settings.compute.threads = threads;

  const std::string folder = run->file(settings.checkpoint.folder);
  result<std::vector<checkpoint::listed>> all = checkpoint::list(real_file_system(), folder);
  if (!all) return all.failure();
  result<checkpoint::choice> chosen = checkpoint::choose(*all, {});
  if (!chosen) return chosen.failure();
  if (!chosen->index) {
    return error{exit_code::bad_data,
                 fmt::format("{} holds no whole checkpoint: train it first", folder)};
  }
  const checkpoint::listed& newest = (*all)[*chosen->index];

  loaded_model m;
  m.device = executor_from(settings);
  m.description = newest.contents->about.model;
  m.layout = model::make_layout(m.description);
  m.state = model::allocate_state(*m.device, m.layout, false);
  const std::vector<checkpoint::state_memory> memory = checkpoint::memory_of(m.state);
  result<checkpoint::manifest> loaded = checkpoint::load(
      real_file_system(), newest.folder, m.layout, checkpoint::whole_layers(m.layout, memory));
  if (!loaded) return loaded.failure();
  m.step = loaded->about.step;
  m.tokenizer = loaded->about.tokenizer;
  m.weights_hash = loaded->weights_hash.hex();
  return m;
}

}  // namespace troupe::actors::cli
