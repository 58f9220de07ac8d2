// A member's memory as checkpoints see it: what it writes to a shared save, and where what it reads
// goes.
#pragma once

#include <span>
#include <vector>

#include "actors/computation.hpp"
#include "model/checkpoint/load.hpp"
#include "model/checkpoint/shared_save.hpp"

namespace troupe::actors {

// The blocks in the computation's memory, as they are now. Requires that it holds them.
std::vector<checkpoint::block_to_write> blocks_to_write(computation& of,
                                                        std::span<const block_id> blocks);

// Everything of the blocks that the share holds; besides these the parameters of the whole model if
// it computes. For the very computation, which has adopted the share.
checkpoint::block_places places_in(computation& of, const member_share& share);

}  // namespace troupe::actors
