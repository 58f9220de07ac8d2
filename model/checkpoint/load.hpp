// Reading a checkpoint. Nothing is believed: sizes, headers and the hash of every block that is
// read are compared with the manifest, and the manifest's two hashes with its blocks. Values go
// straight into the caller's memory, block by block, so that loading never holds a second copy;
// after a failure that memory holds rubbish and must not be used.
//
// A member of a world reads the parameters of the whole model and the moments of the blocks that it
// holds: what has no place is not read. The state hash covers everything, so it is compared only
// where everything is read; block hashes are always.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/checkpoint/manifest.hpp"
#include "model/checkpoint/state_hash.hpp"
#include "model/layout.hpp"
#include "model/model_state.hpp"

namespace troupe::checkpoint {

// Where the values of one block, or of one whole layer, go. An empty span: not wanted.
struct state_memory {
  std::span<float> parameters, first_moments, second_moments;
};

// Called once for each block, layer by layer, before the layer is read.
using block_places = std::function<state_memory(std::size_t layer, std::size_t block)>;

// One `state_memory` a layer of `layout`, each span empty or as long as the layer. The result is
// for these very spans.
block_places whole_layers(const model::model_layout& layout, std::span<const state_memory> layers);

// The model's memory on the host, one entry a layer; moments only where it has them.
std::vector<state_memory> memory_of(model::model_state& state);
std::vector<state_view> views_of(std::span<const state_memory> memory);

// A folder that holds another model is refused with the first tensor that differs.
result<manifest> load(file_system& files, const std::string& folder,
                      const model::model_layout& layout, const block_places& into);

// The same checks without keeping anything, in the memory of three blocks.
result<manifest> verify(file_system& files, const std::string& folder);

// What can be told without reading the tensors: the manifest is right and all its files are there
// with their sizes.
result<manifest> look(file_system& files, const std::string& folder);

}  // namespace troupe::checkpoint
