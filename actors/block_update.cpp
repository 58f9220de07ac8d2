#include "actors/block_update.hpp"

namespace troupe::actors {

void update_block(const shared_context& around, block_id block,
                  const protocol::decision_record& record, std::function<void()> done) {
  around->lasting.held.applying(block);
  around->work.apply(
      block, record,
      [around, block, step = record.step, done = std::move(done)](computation::trouble trouble) {
        lasting_facts& lasting = around->lasting;
        if (trouble) {
          lasting.held.torn(block);
        } else {
          lasting.held.applied(block, step);
          around->points.block_applied(around->self, block, step);
        }
        lasting.tell_if_still();
        if (around->over) return;
        if (trouble) return around->fail(error_of(trouble));
        done();
      });
  around->reached(protocol_point::applying, record.step);
}

}  // namespace troupe::actors
