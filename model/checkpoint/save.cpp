#include "model/checkpoint/save.hpp"

#include <fmt/format.h>

#include "model/checkpoint/folder.hpp"

namespace troupe::checkpoint {

std::vector<block_to_write> cut_into_blocks(const model::model_layout& layout,
                                            std::span<const state_view> layers) {
  ensure(layers.size() == layout.size(), "a checkpoint was to be made of another number of layers");
  std::vector<block_to_write> blocks;
  for (std::uint32_t l = 0; l < layout.size(); ++l) {
    const state_view& values = layers[l];
    for (const auto& kind : {values.parameters, values.first_moments, values.second_moments}) {
      ensure(kind.size() == layout[l].elements,
             "layer " + layout[l].name + " was to be saved from memory of another size");
    }
    for (std::uint32_t b = 0; b < layout[l].blocks(); ++b) {
      const std::size_t at = b * model::block_elements, size = layout[l].block_size(b);
      blocks.push_back(
          {l,
           b,
           {values.parameters.subspan(at, size), values.first_moments.subspan(at, size),
            values.second_moments.subspan(at, size)}});
    }
  }
  return blocks;
}

manifest make_manifest(const facts& about, const model::model_layout& layout,
                       std::span<const state_view> layers) {
  std::vector<block_record> records;
  for (const block_to_write& block : cut_into_blocks(layout, layers)) {
    records.push_back(record_of(block));
  }
  result<manifest> made = make_manifest(about, records);
  ensure(bool(made), "a manifest could not be made of a whole state");
  return *std::move(made);
}

error not_saved(std::uint64_t step, const error& cause) {
  return {cause.code,
          fmt::format("the checkpoint of step {} was not saved: {}", step, cause.message)};
}

result<saved> save(file_system& files, const std::string& directory, const facts& about,
                   std::span<const state_view> layers) {
  const save_place place{directory, about.step};
  const model::model_layout layout = model::make_layout(about.model);
  auto earlier = begin_save(files, place, about);
  if (!earlier) return not_saved(about.step, earlier.failure());
  if (*earlier) {
    auto same = same_checkpoint(place, **earlier, make_manifest(about, layout, layers));
    return same ? same : not_saved(about.step, same.failure());
  }
  const auto write = [&]() -> result<saved> {
    auto written = write_blocks(files, place, layout, cut_into_blocks(layout, layers));
    if (!written) return written.failure();
    return finish_save(files, place, about, *written);
  };
  auto outcome = write();
  if (outcome) return outcome;
  error cause = not_saved(about.step, outcome.failure());
  if (auto cleaned = abandon_save(files, place); !cleaned) {
    cause.message += "; its partial files could not be removed: " + cleaned.failure().message;
  }
  return cause;
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
