#include "model/checkpoint/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "config/base/json.hpp"
#include "model/checkpoint/folder.hpp"
#include "model/checkpoint/state_hash.hpp"
#include "model/hub/safetensors.hpp"

namespace troupe::checkpoint {
namespace {

using model::layer_layout;
using model::model_layout;
using places = std::array<std::span<float>, 3>;  // of a block, in the order of all_kinds

error damaged(const std::string& where, std::string_view why) {
  return {exit_code::io, fmt::format("{}: {}", where, why)};
}

std::string shape_text(const auto& shape) {
  std::string text = "[";
  for (auto n : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(n);
  return text + "]";
}

// The files that the manifest names are those of the model, no more and no less.
status check_file_list(const manifest& m, const model_layout& layout, const std::string& folder) {
  std::size_t next = 0;
  for (const layer_layout& layer : layout) {
    for (value_kind kind : all_kinds) {
      const std::string name = file_name(layer.name, kind);
      if (next == m.files.size() || m.files[next].name != name) {
        return damaged(folder,
                       fmt::format("the manifest does not name {} as file {}; it belongs to "
                                   "another model",
                                   name, next));
      }
      const file_entry& entry = m.files[next++];
      if (entry.blocks.size() != layer.blocks()) {
        return damaged(folder, fmt::format("{} has {} blocks, the model has {}", name,
                                           entry.blocks.size(), layer.blocks()));
      }
    }
  }
  if (next == m.files.size()) return done{};
  return damaged(folder, fmt::format("{} belongs to no layer of the model", m.files[next].name));
}

status check_size(file& from, std::uint64_t expected) {
  auto size = from.size();
  if (!size) return size.failure();
  if (*size == expected) return done{};
  return damaged(from.path(), fmt::format("has {} bytes, the manifest says {}", *size, expected));
}

// Names the first tensor that is not the model's; then the header must be the very bytes that we
// write, so that damage in the padding or in the metadata is noticed as well.
result<std::uint64_t> check_header(file& from, const layer_layout& layer) {
  auto header = model::read_safetensors_header(from);
  if (!header) return error{exit_code::io, header.failure().message};
  const auto bad = [&](const std::string& tensor, std::string_view why) {
    return damaged(from.path(), fmt::format("tensor {}: {}", json_quoted(tensor), why));
  };
  for (const model::tensor_info& t : layer.tensors) {
    const model::tensor_entry* found = header->find(t.name);
    if (found == nullptr) return bad(t.name, "is missing");
    if (found->type != model::tensor_type::f32) {
      return bad(t.name, fmt::format("has dtype {}, expected F32", model::name_of(found->type)));
    }
    if (!std::ranges::equal(found->shape, t.shape)) {
      return bad(t.name, fmt::format("has shape {}, the model has {}", shape_text(found->shape),
                                     shape_text(t.shape)));
    }
    if (found->begin != t.offset * sizeof(float)) return bad(t.name, "stands in another place");
  }
  for (const model::tensor_entry& t : header->tensors) {
    if (std::ranges::find(layer.tensors, t.name, &model::tensor_info::name) ==
        layer.tensors.end()) {
      return bad(t.name, "belongs to no part of this layer");
    }
  }
  auto expected = file_header(layer);
  if (!expected) return expected.failure();
  std::string found(expected->size(), '\0');
  if (header->data_start == found.size()) {
    if (auto s = read_exactly(from, 0, std::as_writable_bytes(std::span(found))); !s) {
      return s.failure();
    }
  }
  if (found != *expected) return damaged(from.path(), "the header is not the one that was written");
  return header->data_start;
}

std::string tensors_in(const layer_layout& layer, std::size_t block) {
  const std::size_t begin = block * model::block_elements, end = begin + layer.block_size(block);
  std::string first, last;
  for (const model::tensor_info& t : layer.tensors) {
    if (t.offset >= end || t.offset + t.size <= begin) continue;
    if (first.empty()) first = t.name;
    last = t.name;
  }
  return first == last ? "tensor " + first : fmt::format("tensors {} to {}", first, last);
}

struct read_hashes {
  std::vector<hash128> weights, states;
  bool everything = true;  // was read, so `states` are whole
};

std::vector<places> places_of(const layer_layout& layer, std::size_t number,
                              const block_places& into) {
  std::vector<places> all;
  for (std::size_t b = 0; b < layer.blocks(); ++b) {
    const state_memory place = into(number, b);
    all.push_back({place.parameters, place.first_moments, place.second_moments});
    for (const std::span<float>& kind : all.back()) {
      ensure(kind.empty() || kind.size() == layer.block_size(b),
             "layer " + layer.name + " was to be loaded into memory of another size");
    }
  }
  return all;
}

// Reads the three files of a layer side by side, because a block's state hash covers all three.
status read_layer(file_system& files, const std::string& folder, const layer_layout& layer,
                  std::span<const file_entry> entries, std::span<const places> into,
                  read_hashes& hashes) {
  std::array<std::unique_ptr<file>, 3> from;
  std::array<std::uint64_t, 3> data_start{};
  for (std::size_t k = 0; k < 3; ++k) {
    if (std::ranges::all_of(into, [&](const places& p) { return p[k].empty(); })) continue;
    auto opened = files.open(join_path(folder, entries[k].name), open_mode::read);
    if (!opened) return opened.failure();
    from[k] = *std::move(opened);
    if (auto s = check_size(*from[k], entries[k].size); !s) return s;
    auto start = check_header(*from[k], layer);
    if (!start) return start.failure();
    data_start[k] = *start;
  }
  for (std::size_t b = 0; b < layer.blocks(); ++b) {
    for (std::size_t k = 0; k < 3; ++k) {
      const auto bytes = std::as_writable_bytes(into[b][k]);
      if (bytes.empty()) {
        hashes.everything = false;
        continue;
      }
      if (auto s = read_exactly(*from[k], block_offset(data_start[k], b), bytes); !s) return s;
      if (hash_bytes(bytes) == entries[k].blocks[b]) continue;
      return damaged(from[k]->path(),
                     fmt::format("block {} ({}) does not match its hash", b, tensors_in(layer, b)));
    }
    hashes.weights.push_back(entries[0].blocks[b]);
    if (!hashes.everything) continue;
    hashes.states.push_back(block_state_hash({into[b][0], into[b][1], into[b][2]}));
  }
  return done{};
}

status read_all(file_system& files, const std::string& folder, const manifest& m,
                const model_layout& layout, const block_places& into) {
  if (auto s = check_file_list(m, layout, folder); !s) return s;
  read_hashes hashes;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const auto entries = std::span(m.files).subspan(3 * i, 3);
    const auto where = places_of(layout[i], i, into);
    if (auto s = read_layer(files, folder, layout[i], entries, where, hashes); !s) return s;
  }
  if (weights_hash(hashes.weights) != m.weights_hash) {
    return damaged(folder, "the manifest's weights_hash does not belong to its blocks");
  }
  if (hashes.everything &&
      state_hash(hashes.states, m.about.step, m.about.data_position) != m.state_hash) {
    return damaged(folder, "the manifest's state_hash does not belong to its blocks and step");
  }
  return done{};
}

// The layout that the manifest's model gives; refuses before sizes from a file cost any memory.
result<model_layout> layout_of(const manifest& m, const std::string& folder) {
  const model::description& d = m.about.model;
  if (m.files.size() != 3 * (std::uint64_t{d.layers} + 2)) {
    return damaged(
        folder, fmt::format("the manifest names {} files for {} layers", m.files.size(), d.layers));
  }
  if (auto s = model::check(d); !s) return damaged(folder, s.failure().message);
  return model::make_layout(d);
}

}  // namespace

block_places whole_layers(const model_layout& layout, std::span<const state_memory> layers) {
  ensure(layers.size() == layout.size(),
         "a checkpoint was to be loaded into another number of layers");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (const auto& kind :
         {layers[i].parameters, layers[i].first_moments, layers[i].second_moments}) {
      ensure(kind.empty() || kind.size() == layout[i].elements,
             "layer " + layout[i].name + " was to be loaded into memory of another size");
    }
  }
  return [&layout, layers](std::size_t layer, std::size_t block) {
    const auto part = [&](std::span<float> whole) {
      const std::size_t at = block * model::block_elements;
      return whole.empty() ? whole : whole.subspan(at, layout[layer].block_size(block));
    };
    return state_memory{part(layers[layer].parameters), part(layers[layer].first_moments),
                        part(layers[layer].second_moments)};
  };
}

std::vector<state_memory> memory_of(model::model_state& state) {
  const auto host = [](compute::buffer& b) {
    return b ? b.all().host<float>() : std::span<float>();
  };
  std::vector<state_memory> memory;
  for (model::layer_state& layer : state.layers) {
    memory.push_back({host(layer.parameters), host(layer.first_moment), host(layer.second_moment)});
  }
  return memory;
}

std::vector<state_view> views_of(std::span<const state_memory> memory) {
  std::vector<state_view> views;
  for (const state_memory& m : memory) {
    views.push_back({m.parameters, m.first_moments, m.second_moments});
  }
  return views;
}

result<manifest> load(file_system& files, const std::string& folder, const model_layout& layout,
                      const block_places& into) {
  auto m = look(files, folder);
  if (!m) return m;
  if (auto s = read_all(files, folder, *m, layout, into); !s) return s.failure();
  return m;
}

result<manifest> verify(file_system& files, const std::string& folder) {
  auto m = look(files, folder);
  if (!m) return m;
  const auto layout = layout_of(*m, folder);
  if (!layout) return layout.failure();
  std::array<std::vector<float>, 3> scratch;
  for (auto& s : scratch) s.resize(model::block_elements);
  const block_places sink = [&](std::size_t layer, std::size_t block) {
    const std::size_t n = (*layout)[layer].block_size(block);
    return state_memory{std::span(scratch[0]).first(n), std::span(scratch[1]).first(n),
                        std::span(scratch[2]).first(n)};
  };
  if (auto s = read_all(files, folder, *m, *layout, sink); !s) return s.failure();
  return m;
}

result<manifest> look(file_system& files, const std::string& folder) {
  auto m = read_manifest(files, folder);
  if (!m) return m;
  const auto id = parse_folder_name(base_name(folder));
  if (id && id->step != m->about.step) {
    return damaged(
        folder, fmt::format("the folder's name and its manifest (step {}) differ", m->about.step));
  }
  if (auto layout = layout_of(*m, folder); !layout) return layout.failure();
  for (const file_entry& e : m->files) {
    auto opened = files.open(join_path(folder, e.name), open_mode::read);
    if (!opened) return opened.failure();
    if (auto s = check_size(**opened, e.size); !s) return s.failure();
  }
  return m;
}

}  // namespace troupe::checkpoint
