// Writing a checkpoint by one writer, blocking. A save never touches another checkpoint and never
// shows a part of itself as whole: it fills "step-....partial-...", syncs every file and the
// folder, gives the folder its final name, and publishes the manifest last (see folder.hpp). If
// anything fails, what it wrote is removed and the error says why; what a crash leaves behind is
// removed by the next save of that step, or by remove_leftovers(). The steps stand in
// shared_save.hpp.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/checkpoint/shared_save.hpp"

namespace troupe::checkpoint {

// `directory` holds all checkpoints of the run; it is made if missing. One `state_view` a layer of
// the model's layout, in its order.
result<saved> save(file_system& files, const std::string& directory, const facts& about,
                   std::span<const state_view> layers);

// The manifest that save() would publish, without writing anything: both hashes of a run's state.
manifest make_manifest(const facts& about, const model::model_layout& layout,
                       std::span<const state_view> layers);

// All blocks of whole layers, in order.
std::vector<block_to_write> cut_into_blocks(const model::model_layout& layout,
                                            std::span<const state_view> layers);

// What an error of any step of a save means for the user: `cause` with the step in front.
error not_saved(std::uint64_t step, const error& cause);

// Removes what saves that died have left: partial folders and folders without a manifest. Only for
// the one who owns the run directory, while nobody saves. Returns their names.
result<std::vector<std::string>> remove_leftovers(file_system& files, const std::string& directory);

}  // namespace troupe::checkpoint
