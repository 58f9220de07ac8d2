#include "actors/report.hpp"

#include "config/base/json.hpp"

namespace troupe::actors {

std::string to_json(const report& r) {
  json_page page;
  page.text("version", r.version);
  if (r.exit) {
    page.i64("exit", *r.exit);
  } else {
    page.null("exit");
  }
  page.u64("steps", r.steps).number("final_loss", r.final_loss);
  if (r.val_loss) {
    page.number("val_loss", *r.val_loss);
  } else {
    page.null("val_loss");
  }
  page.text("weights_hash", r.weights_hash)
      .text("state_hash", r.state_hash)
      .number("tokens_per_second", r.tokens_per_second);
  if (r.utilization) {
    page.number("model_flops_utilization", *r.utilization);
  } else {
    page.null("model_flops_utilization");
  }
  page.text("flops_formula", "6 x multiplied parameters + 12 x layers x heads x head_dim x seq_len")
      .number("flops_per_token", r.flops_per_token)
      .number("peak_flops", r.peak_flops)
      .text("peak_source", r.peak_source)
      .number("goodput", r.goodput)
      .number("effective_time_ratio", r.effective_time_ratio)
      .u64("skipped_steps", r.skipped_steps)
      .u64("committed_steps_lost", 0)
      .u64("steps_redone", r.steps_redone)
      .u64("generations", 1)
      .begin_array("recoveries")
      .end()
      .u64("world_min", 1)
      .u64("world_max", 1)
      .u64("bytes_sent", 0);
  page.begin_object("peak_memory_bytes").u64("0", r.peak_memory_bytes).end();
  page.begin_object("peak_activation_bytes").u64("0", r.peak_activation_bytes).end();
  page.number("seconds", r.seconds);
  return page.finish();
}

}  // namespace troupe::actors
