// An update of a held block, with its mark: made before it begins and taken away when it has ended,
// whatever has become of the plan meanwhile. So nobody who promises a plan answers in the middle of
// one, and a block whose update failed half-way is never used.
#pragma once

#include <functional>

#include "actors/generation_context.hpp"

namespace troupe::actors {

// `done`: on the loop's thread, unless the update fails or the plan is over by then.
void update_block(const shared_context& around, block_id block,
                  const protocol::decision_record& record, std::function<void()> done);

}  // namespace troupe::actors
