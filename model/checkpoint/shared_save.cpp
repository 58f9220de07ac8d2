#include "model/checkpoint/shared_save.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/checkpoint/folder.hpp"
#include "model/checkpoint/load.hpp"

namespace troupe::checkpoint {
namespace {

using model::layer_layout;
using model::model_layout;

std::array<std::span<const float>, 3> by_kind(const state_view& s) {
  return {s.parameters, s.first_moments, s.second_moments};
}

// All files of the model in the order of the manifest; blocks have no hashes yet.
result<std::vector<file_entry>> list_files(const model_layout& layout) {
  std::vector<file_entry> all;
  for (const layer_layout& layer : layout) {
    auto header = file_header(layer);
    if (!header) return header.failure();
    const std::uint64_t size = header->size() + layer.elements * sizeof(float);
    for (const value_kind kind : all_kinds) {
      all.push_back({file_name(layer.name, kind), size, std::vector<hash128>(layer.blocks())});
    }
  }
  return all;
}

std::uint64_t bytes_of(const manifest& m) {
  std::uint64_t bytes = to_text(m).size();
  for (const file_entry& e : m.files) bytes += e.size;
  return bytes;
}

// Hashes have the same length whatever they are, so the size is known before them.
status check_space(file_system& files, const save_place& place, const manifest& without_hashes) {
  const std::uint64_t needed = bytes_of(without_hashes);
  auto free = files.free_bytes(place.directory);
  if (!free) return free.failure();
  if (*free >= needed) return done{};
  return to_error({"write", place.folder(), ENOSPC, needed, *free});
}

// Every unfinished attempt at this step: a save has one coordinator, and it is this one.
status remove_attempts(file_system& files, const save_place& place) {
  auto entries = files.list(place.directory);
  if (!entries) return entries.failure();
  for (const directory_entry& e : *entries) {
    const auto id = parse_folder_name(e.name);
    if (!id || !id->partial || id->step != place.step) continue;
    if (auto s = remove_all(files, join_path(place.directory, e.name)); !s) return s;
  }
  return done{};
}

// A whole checkpoint of the step, if there is one. Unfinished ones are removed at once, so that
// their space is free again; a damaged one makes room only when the new one is complete.
result<std::optional<manifest>> look_at_earlier(file_system& files, const save_place& place) {
  if (auto s = remove_attempts(files, place); !s) return s.failure();
  auto finished = files.exists(join_path(place.folder(), manifest_name));
  if (!finished) return finished.failure();
  if (*finished) {
    auto old = verify(files, place.folder());
    return old ? std::optional(*std::move(old)) : std::optional<manifest>();
  }
  if (auto s = remove_all(files, place.folder()); !s) return s.failure();
  return std::optional<manifest>();
}

// Empty files: whoever writes a layer's first block writes the headers, so that they become durable
// with it.
status make_files(file_system& files, const save_place& place, const manifest& m) {
  if (auto made = files.make_directory(place.partial()); !made) return made.failure();
  for (const file_entry& e : m.files) {
    auto out = files.open(join_path(place.partial(), e.name), open_mode::create);
    if (!out) return out.failure();
  }
  // Writers on other machines have to find the names.
  return files.sync_directory(place.partial());
}

// The three files of one layer, open for writing.
class layer_files {
 public:
  static result<layer_files> open(file_system& files, const save_place& place,
                                  const layer_layout& layer) {
    layer_files opened;
    auto header = file_header(layer);
    if (!header) return header.failure();
    opened.header_ = *std::move(header);
    for (std::size_t k = 0; k < all_kinds.size(); ++k) {
      auto out = files.open(join_path(place.partial(), file_name(layer.name, all_kinds[k])),
                            open_mode::update);
      if (!out) return out.failure();
      opened.files_[k] = *std::move(out);
    }
    return opened;
  }
  status write(const block_to_write& block) {
    const auto values = by_kind(block.values);
    for (std::size_t k = 0; k < files_.size(); ++k) {
      if (block.block == 0) {
        if (auto s = files_[k]->write_at(0, std::as_bytes(std::span(header_))); !s) return s;
      }
      const std::uint64_t at = block_offset(header_.size(), block.block);
      if (auto s = files_[k]->write_at(at, std::as_bytes(values[k])); !s) return s;
    }
    return done{};
  }
  status sync() {
    for (const auto& file : files_) {
      if (auto s = file->sync(); !s) return s;
    }
    return done{};
  }

 private:
  std::array<std::unique_ptr<file>, 3> files_;
  std::string header_;
};

// Whoever told of a block it did not write, or wrote elsewhere, shows here.
status check_sizes(file_system& files, const save_place& place, const manifest& m) {
  for (const file_entry& e : m.files) {
    auto opened = files.open(join_path(place.partial(), e.name), open_mode::read);
    if (!opened) return opened.failure();
    auto size = (*opened)->size();
    if (!size) return size.failure();
    if (*size == e.size) continue;
    return error{exit_code::io, fmt::format("{} has {} bytes instead of {}: not all of its blocks "
                                            "were written, or somebody else has written to it",
                                            (*opened)->path(), *size, e.size)};
  }
  return done{};
}

status publish_save(file_system& files, const save_place& place, const manifest& m) {
  auto there = files.exists(place.folder());  // a damaged checkpoint of this step makes room now
  if (!there) return there.failure();
  if (*there) {
    if (auto s = files.rename(place.folder(), place.replaced()); !s) return s;
  }
  if (auto s = files.rename(place.partial(), place.folder()); !s) return s;
  if (auto s = files.sync_directory(place.directory); !s) return s;
  auto outcome = publish(files, join_path(place.folder(), manifest_name), to_text(m));
  if (!outcome) return outcome.failure();
  if (*outcome != publish_outcome::published) {
    return error{exit_code::cannot_use,
                 fmt::format("{} was published by somebody else meanwhile; one run directory can "
                             "belong to one run only",
                             join_path(place.folder(), manifest_name))};
  }
  // If the damaged one cannot be removed now, the next start does it.
  if (*there) (void)remove_all(files, place.replaced());
  return done{};
}

}  // namespace

std::string save_place::folder() const { return join_path(directory, folder_name(step)); }
std::string save_place::partial() const {
  return join_path(directory, partial_name(step, attempt));
}
std::string save_place::replaced() const {
  return join_path(directory, partial_name(step, "replaced"));
}

block_record record_of(const block_to_write& block) {
  block_record record{block.layer, block.block, {}, block_state_hash(block.values)};
  const auto values = by_kind(block.values);
  for (std::size_t k = 0; k < values.size(); ++k) record.kinds[k] = block_weights_hash(values[k]);
  return record;
}

result<std::optional<manifest>> begin_save(file_system& files, const save_place& place,
                                           const facts& about) {
  auto entries = list_files(model::make_layout(about.model));
  if (!entries) return entries.failure();
  if (auto s = make_directories(files, place.directory); !s) return s.failure();
  auto earlier = look_at_earlier(files, place);
  if (!earlier || *earlier) return earlier;
  const manifest without_hashes{about, *std::move(entries), {}, {}};
  if (auto s = check_space(files, place, without_hashes); !s) return s.failure();
  if (auto s = make_files(files, place, without_hashes); !s) {
    error cause = s.failure();
    if (auto cleaned = abandon_save(files, place); !cleaned) {
      cause.message += "; its partial files could not be removed: " + cleaned.failure().message;
    }
    return cause;
  }
  return std::optional<manifest>();
}

result<std::vector<block_record>> write_blocks(file_system& files, const save_place& place,
                                               const model_layout& layout,
                                               std::span<const block_to_write> blocks) {
  std::vector<block_record> records;
  for (std::size_t i = 0; i < blocks.size();) {
    const std::uint32_t number = blocks[i].layer;
    const layer_layout& layer = layout.at(number);
    auto out = layer_files::open(files, place, layer);
    if (!out) return out.failure();
    for (; i < blocks.size() && blocks[i].layer == number; ++i) {
      for (const auto& values : by_kind(blocks[i].values)) {
        ensure(values.size() == layer.block_size(blocks[i].block),
               "a block of layer " + layer.name + " was to be saved from memory of another size");
      }
      if (auto s = out->write(blocks[i]); !s) return s.failure();
      records.push_back(record_of(blocks[i]));
    }
    if (auto s = out->sync(); !s) return s.failure();
  }
  return records;
}

result<saved> finish_save(file_system& files, const save_place& place, const facts& about,
                          std::span<const block_record> blocks) {
  auto contents = make_manifest(about, blocks);
  if (!contents) return contents.failure();
  if (auto s = check_sizes(files, place, *contents); !s) return s.failure();
  if (auto s = publish_save(files, place, *contents); !s) return s.failure();
  return saved{place.folder(), contents->weights_hash, contents->state_hash, bytes_of(*contents),
               false};
}

status abandon_save(file_system& files, const save_place& place) {
  if (auto s = remove_all(files, place.partial()); !s) return s;
  auto there = files.exists(join_path(place.folder(), manifest_name));
  if (!there) return there.failure();
  return *there ? status(done{}) : remove_all(files, place.folder());
}

result<manifest> make_manifest(const facts& about, std::span<const block_record> blocks) {
  const model_layout layout = model::make_layout(about.model);
  auto entries = list_files(layout);
  if (!entries) return entries.failure();
  manifest m{about, *std::move(entries), {}, {}};
  std::vector<const block_record*> sorted;
  for (const block_record& b : blocks) sorted.push_back(&b);
  const auto place = [](const block_record* b) { return std::pair(b->layer, b->block); };
  std::ranges::sort(sorted, {}, place);
  std::vector<hash128> weights, states;
  std::size_t next = 0;
  for (std::uint32_t l = 0; l < layout.size(); ++l) {
    for (std::uint32_t b = 0; b < layout[l].blocks(); ++b, ++next) {
      if (next == sorted.size() || place(sorted[next]) != std::pair(l, b)) {
        return error{exit_code::defect,
                     fmt::format("the hashes of a save do not cover every block once: block {} of "
                                 "{} is missing, or one before it was told twice",
                                 b, layout[l].name)};
      }
      const block_record& record = *sorted[next];
      for (std::size_t k = 0; k < 3; ++k) m.files[3 * l + k].blocks[b] = record.kinds[k];
      weights.push_back(record.kinds[0]);
      states.push_back(record.state);
    }
  }
  if (next != sorted.size()) {
    return error{exit_code::defect, "the hashes of a save name a block that the model has not"};
  }
  m.weights_hash = weights_hash(weights);
  m.state_hash = state_hash(states, about.step, about.data_position);
  return m;
}

result<saved> same_checkpoint(const save_place& place, const manifest& there, const manifest& now) {
  if (there.state_hash == now.state_hash && there.about.run_id == now.about.run_id) {
    return saved{place.folder(), now.weights_hash, now.state_hash, bytes_of(now), true};
  }
  return error{
      exit_code::cannot_use,
      fmt::format("{} already holds a whole checkpoint with other bits (run {}, state hash "
                  "{}; now run {}, {}); it is not replaced: use another run directory, or "
                  "move it away",
                  place.folder(), there.about.run_id, there.state_hash.hex(), now.about.run_id,
                  now.state_hash.hex())};
}

}  // namespace troupe::checkpoint
