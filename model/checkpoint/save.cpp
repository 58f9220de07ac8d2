#include "model/checkpoint/save.hpp"

#include <fmt/format.h>

#include <array>

#include "model/checkpoint/folder.hpp"
#include "model/checkpoint/load.hpp"

namespace troupe::checkpoint {
namespace {

using model::layer_layout;
using model::model_layout;

std::array<std::span<const float>, 3> by_kind(const state_view& s) {
  return {s.parameters, s.first_moments, s.second_moments};
}

std::span<const float> block_of(std::span<const float> values, const layer_layout& layer,
                                std::size_t block) {
  return values.subspan(block * model::block_elements, layer.block_size(block));
}

// Everything that one save needs to know, decided before the first byte is written.
struct plan {
  model_layout layout;
  std::span<const state_view> layers;
  std::vector<std::string> headers;  // one a layer
  manifest contents;
  std::string manifest_text;
  std::uint64_t bytes = 0;
  std::string directory, folder, partial, replaced;
};

status write_layer_file(file_system& files, const std::string& path, const std::string& header,
                        const layer_layout& layer, std::span<const float> values) {
  auto out = files.open(path, open_mode::create);
  if (!out) return out.failure();
  if (auto s = (*out)->write_at(0, std::as_bytes(std::span(header))); !s) return s;
  for (std::size_t b = 0; b < layer.blocks(); ++b) {
    const auto bytes = std::as_bytes(block_of(values, layer, b));
    if (auto s = (*out)->write_at(block_offset(header.size(), b), bytes); !s) return s;
  }
  return (*out)->sync();
}

status check_space(file_system& files, const plan& p) {
  auto free = files.free_bytes(p.directory);
  if (!free) return free.failure();
  if (*free >= p.bytes) return done{};
  return to_error({"write", p.folder, ENOSPC, p.bytes, *free});
}

status write_everything(file_system& files, const plan& p) {
  if (auto made = files.make_directory(p.partial); !made) return made.failure();
  for (std::size_t i = 0; i < p.layout.size(); ++i) {
    const auto values = by_kind(p.layers[i]);
    for (std::size_t k = 0; k < 3; ++k) {
      const std::string name = file_name(p.layout[i].name, all_kinds[k]);
      auto s =
          write_layer_file(files, join_path(p.partial, name), p.headers[i], p.layout[i], values[k]);
      if (!s) return s;
    }
  }
  if (auto s = files.sync_directory(p.partial); !s) return s;

  auto there = files.exists(p.folder);  // a damaged checkpoint of this step makes room only now
  if (!there) return there.failure();
  if (*there) {
    if (auto s = files.rename(p.folder, p.replaced); !s) return s;
  }
  if (auto s = files.rename(p.partial, p.folder); !s) return s;
  if (auto s = files.sync_directory(p.directory); !s) return s;
  auto outcome = publish(files, join_path(p.folder, manifest_name), p.manifest_text);
  if (!outcome) return outcome.failure();
  if (*outcome == publish_outcome::published) return done{};
  return error{exit_code::cannot_use,
               fmt::format("{} was published by somebody else meanwhile; one run directory can "
                           "belong to one run only",
                           join_path(p.folder, manifest_name))};
}

// Removes what this save has written. A published manifest stays: its files are durable, so the
// checkpoint is whole even if the save ended with an error after that point.
status clean_up(file_system& files, const plan& p) {
  if (auto s = remove_all(files, p.partial); !s) return s;
  auto there = files.exists(join_path(p.folder, manifest_name));
  if (!there) return there.failure();
  return *there ? status(done{}) : remove_all(files, p.folder);
}

enum class earlier : std::uint8_t { nothing, damaged, same };

// What an earlier save left under this step's names. Unfinished saves are removed at once, so that
// their space is free again.
result<earlier> look_at_earlier(file_system& files, const plan& p) {
  for (const std::string& left : {p.partial, p.replaced}) {
    if (auto s = remove_all(files, left); !s) return s.failure();
  }
  auto finished = files.exists(join_path(p.folder, manifest_name));
  if (!finished) return finished.failure();
  if (!*finished) {
    if (auto s = remove_all(files, p.folder); !s) return s.failure();
    return earlier::nothing;
  }
  const auto old = verify(files, p.folder);
  if (!old) return earlier::damaged;
  if (old->state_hash == p.contents.state_hash && old->about.run_id == p.contents.about.run_id) {
    return earlier::same;
  }
  return error{
      exit_code::cannot_use,
      fmt::format("{} already holds a whole checkpoint with other bits (run {}, state hash "
                  "{}; now run {}, {}); it is not replaced: use another run directory, or "
                  "move it away",
                  p.folder, old->about.run_id, old->state_hash.hex(), p.contents.about.run_id,
                  p.contents.state_hash.hex())};
}

result<plan> make_plan(const std::string& directory, const facts& about,
                       std::span<const state_view> layers) {
  plan p;
  p.layout = model::make_layout(about.model);
  p.layers = layers;
  p.contents = make_manifest(about, p.layout, layers);
  p.manifest_text = to_text(p.contents);
  p.bytes = p.manifest_text.size();
  for (const file_entry& e : p.contents.files) p.bytes += e.size;
  for (const layer_layout& layer : p.layout) {
    auto header = file_header(layer);
    if (!header) return header.failure();
    p.headers.push_back(*std::move(header));
  }
  p.directory = directory;
  p.folder = join_path(directory, folder_name(about.step));
  p.partial = join_path(directory, partial_name(about.step, "0"));
  p.replaced = join_path(directory, partial_name(about.step, "replaced"));
  return p;
}

}  // namespace

manifest make_manifest(const facts& about, const model_layout& layout,
                       std::span<const state_view> layers) {
  ensure(layers.size() == layout.size(), "a checkpoint was to be made of another number of layers");
  manifest m{about, {}, {}, {}};
  std::vector<hash128> states, weights;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const layer_layout& layer = layout[i];
    const auto header = file_header(layer);
    ensure(bool(header), "layer " + layer.name + " has more tensors than a file can name");
    const auto values = by_kind(layers[i]);
    std::array<file_entry, 3> entries;
    for (std::size_t k = 0; k < 3; ++k) {
      ensure(values[k].size() == layer.elements,
             "layer " + layer.name + " was to be saved from memory of another size");
      entries[k].name = file_name(layer.name, all_kinds[k]);
      entries[k].size = header->size() + layer.elements * sizeof(float);
    }
    for (std::size_t b = 0; b < layer.blocks(); ++b) {
      std::array<std::span<const float>, 3> part;
      for (std::size_t k = 0; k < 3; ++k) {
        part[k] = block_of(values[k], layer, b);
        entries[k].blocks.push_back(block_weights_hash(part[k]));
      }
      weights.push_back(entries[0].blocks.back());
      states.push_back(block_state_hash({part[0], part[1], part[2]}));
    }
    for (file_entry& e : entries) m.files.push_back(std::move(e));
  }
  m.weights_hash = weights_hash(weights);
  m.state_hash = state_hash(states, about.step, about.data_position);
  return m;
}

result<saved> save(file_system& files, const std::string& directory, const facts& about,
                   std::span<const state_view> layers) {
  const auto failed = [&](const error& cause) {
    return error{cause.code, fmt::format("the checkpoint of step {} was not saved: {}", about.step,
                                         cause.message)};
  };
  auto p = make_plan(directory, about, layers);
  if (!p) return failed(p.failure());
  if (auto s = make_directories(files, directory); !s) return failed(s.failure());
  const saved outcome{p->folder, p->contents.weights_hash, p->contents.state_hash, p->bytes, false};

  const auto old = look_at_earlier(files, *p);
  if (!old) return failed(old.failure());
  if (*old == earlier::same) {
    saved same = outcome;
    same.was_there = true;
    return same;
  }
  if (auto s = check_space(files, *p); !s) return failed(s.failure());
  if (auto s = write_everything(files, *p); !s) {
    error cause = failed(s.failure());
    if (auto cleaned = clean_up(files, *p); !cleaned) {
      cause.message += "; its partial files could not be removed: " + cleaned.failure().message;
    }
    return cause;
  }
  // The damaged one that was replaced; if it cannot be removed now, the next start does it.
  if (*old == earlier::damaged) (void)remove_all(files, p->replaced);
  return outcome;
}

result<std::vector<std::string>> remove_leftovers(file_system& files,
                                                  const std::string& directory) {
  std::vector<std::string> removed;
  auto there = files.exists(directory);
  if (!there) return there.failure();
  if (!*there) return removed;
  auto entries = files.list(directory);
  if (!entries) return entries.failure();
  for (const directory_entry& e : *entries) {
    const auto id = parse_folder_name(e.name);
    if (!id || !e.is_directory) continue;
    const std::string folder = join_path(directory, e.name);
    auto finished = files.exists(join_path(folder, manifest_name));
    if (!finished) return finished.failure();
    if (*finished && !id->partial) continue;
    if (auto s = remove_all(files, folder); !s) return s.failure();
    removed.push_back(e.name);
  }
  return removed;
}

}  // namespace troupe::checkpoint
