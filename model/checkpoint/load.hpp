// Reading a checkpoint. Nothing is believed: sizes, headers and the hash of every block are
// compared with the manifest, and the manifest's two hashes with what was read. Values go straight
// into the caller's memory, block by block, so that loading never holds a second copy; after a
// failure that memory holds rubbish and must not be used.
#pragma once

#include <span>
#include <string>

#include "model/checkpoint/manifest.hpp"
#include "model/layout.hpp"

namespace troupe::checkpoint {

// Where one layer's values go.
struct layer_memory {
  std::span<float> parameters, first_moments, second_moments;
};

// One `layer_memory` a layer of `layout`, each span as long as the layer. A folder that holds
// another model is refused with the first tensor that differs.
result<manifest> load(file_system& files, const std::string& folder,
                      const model::model_layout& layout, std::span<const layer_memory> into);

// The same checks without keeping anything, in the memory of three blocks.
result<manifest> verify(file_system& files, const std::string& folder);

// What can be told without reading the tensors: the manifest is right and all its files are there
// with their sizes.
result<manifest> look(file_system& files, const std::string& folder);

}  // namespace troupe::checkpoint
