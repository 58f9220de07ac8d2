#include "actors/report.hpp"

#include "config/base/json.hpp"

namespace troupe::actors {
namespace {

void put_each(json_writer& to, std::string_view name,
              const std::map<std::string, std::uint64_t>& by_member) {
  to.begin_object(name);
  for (const auto& [member, bytes] : by_member) to.u64(member, bytes);
  to.end();
}

void put_each(json_writer& to, const std::vector<recovery>& recoveries) {
  to.begin_array("recoveries");
  for (const recovery& r : recoveries) {
    to.begin_element();
    put_fields(to, r);
    to.end();
  }
  to.end();
}

}  // namespace

void put_fields(json_writer& to, const recovery& r) {
  to.u64("recovery", r.id)
      .u64("from", r.from)
      .u64("to", r.to)
      .texts("lost", r.lost)
      .u64("step", r.step)
      .boolean("step_redone", r.step_redone)
      .number("unblock_ms", r.unblock_ms)
      .number("recover_ms", r.recover_ms)
      .text("reason", r.reason);
}

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
      .u64("committed_steps_lost", r.committed_steps_lost)
      .u64("steps_redone", r.steps_redone)
      .u64("generations", r.generations);
  put_each(page, r.recoveries);
  page.u64("world_min", r.world_min).u64("world_max", r.world_max).u64("bytes_sent", r.bytes_sent);
  put_each(page, "peak_memory_bytes", r.peak_memory_bytes);
  put_each(page, "peak_activation_bytes", r.peak_activation_bytes);
  page.number("seconds", r.seconds);
  return page.finish();
}

}  // namespace troupe::actors
