// A save by any number of writers, as steps. One coordinates: it begins the save (a folder with
// empty files) and finishes it (sizes, final name, manifest). In between every holder writes its
// blocks at their places and tells their hashes; blocks share no page, so writers need not know
// each other. The bytes are the same for every number of writers, and one writer's save() is these
// steps one after the other.
//
// Each step blocks and can be done on any thread or machine that sees the directory. What a writer
// tells is durable, the headers too, which go with each layer's first block. A save that cannot be
// finished is abandoned; what a crash leaves is removed by the next save of the step, or by
// remove_leftovers().
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/checkpoint/manifest.hpp"
#include "model/checkpoint/state_hash.hpp"
#include "model/layout.hpp"

namespace troupe::checkpoint {

struct saved {
  std::string folder;
  hash128 weights_hash, state_hash;
  std::uint64_t bytes = 0;  // all files together
  // This step was there already, whole and with the same bits: nothing was written.
  bool was_there = false;
};

// Where a save of one step works. `attempt` keeps apart what an earlier coordinator has begun: two
// attempts write the same bits, but only one of them may be finished.
struct save_place {
  std::string directory;  // of all checkpoints of the run; made if missing
  std::uint64_t step = 0;
  std::string attempt = "0";

  std::string folder() const;
  std::string partial() const;   // the folder's name until it is finished
  std::string replaced() const;  // a damaged checkpoint that made room
};

// One block, with the layer's number in the layout; the values are as long as the block.
struct block_to_write {
  std::uint32_t layer = 0, block = 0;
  state_view values;
};

// What is known of a block once it is written.
struct block_record {
  std::uint32_t layer = 0, block = 0;
  std::array<hash128, 3> kinds;  // xxh3-128 of each kind's bytes, in the order of all_kinds
  hash128 state;                 // block_state_hash
  friend bool operator==(const block_record&, const block_record&) = default;
};
block_record record_of(const block_to_write& block);

// The coordinator's first step. If the step is there already and whole, its manifest is returned
// and nothing is begun: see same_checkpoint(). Fails, and leaves nothing, if space is short.
result<std::optional<manifest>> begin_save(file_system& files, const save_place& place,
                                           const facts& about);

// Writes the blocks and makes them durable. In rising order, files are opened once a layer.
result<std::vector<block_record>> write_blocks(file_system& files, const save_place& place,
                                               const model::model_layout& layout,
                                               std::span<const block_to_write> blocks);

// The coordinator's last step, with the records of all blocks, in any order.
result<saved> finish_save(file_system& files, const save_place& place, const facts& about,
                          std::span<const block_record> blocks);

// Removes what a save has written that will not be finished. A published manifest stays: its files
// are durable, so the checkpoint is whole even if the save ended with an error after that point.
status abandon_save(file_system& files, const save_place& place);

// The manifest of a state from the records of all its blocks; a block that is missing or told twice
// is an error.
result<manifest> make_manifest(const facts& about, std::span<const block_record> blocks);

// For a step that is there already: whether `now` has the same bits, as the outcome of its save;
// other bits are refused, since a whole checkpoint is never replaced.
result<saved> same_checkpoint(const save_place& place, const manifest& there, const manifest& now);

}  // namespace troupe::checkpoint
