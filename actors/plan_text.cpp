#include "actors/plan_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "config/base/hash.hpp"
#include "config/base/json.hpp"

namespace troupe::actors {
namespace {

using protocol::placed_blocks;
using protocol::plan;
using protocol::plan_member;

constexpr std::uint64_t format_version = 1;

std::string one_line(json_line& line) {
  std::string text = line.finish();
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string line_of(const plan_member& m) {
  json_line line;
  line.u64("id", m.id.value)
      .u64("life", m.life.value)
      .text("name", m.name)
      .text("host", m.host)
      .text("domain", m.domain)
      .text("address", m.address)
      .boolean("computes", m.computes)
      .boolean("store", m.store)
      .u64("first_leaf", m.first_leaf)
      .u64("leaves", m.leaves)
      .u64("threads", m.threads);
  return one_line(line);
}

// Bits as integers: a record has to come back exactly.
std::string line_of(const protocol::record_notice& n) {
  const protocol::decision_record& r = n.record;
  json_line line;
  line.u64("step", r.step)
      .u64("updates", r.updates)
      .boolean("skip", r.skip)
      .text("why_skipped", r.why_skipped)
      .u64("scale_bits", std::bit_cast<std::uint32_t>(r.scale))
      .u64("lr_bits", std::bit_cast<std::uint32_t>(r.lr))
      .u64("loss_bits", std::bit_cast<std::uint64_t>(r.loss))
      .u64("grad_norm_bits", std::bit_cast<std::uint64_t>(r.grad_norm))
      .u64("tokens_bits", std::bit_cast<std::uint64_t>(r.tokens))
      .boolean("validate", n.validate)
      .u64("lines", n.lines)
      .u64("total_tokens", n.total_tokens)
      .u64("skipped_in_a_row", n.skipped_in_a_row)
      .u64("plan", n.plan.value)
      .u64("world", n.world);
  return one_line(line);
}

std::string line_of(const placed_blocks& part) {
  std::string backups = "[";
  for (member_id id : part.backups) {
    backups += fmt::format("{}{}", backups.size() > 1 ? ", " : "", id.value);
  }
  json_line line;
  line.u64("layer", part.layer)
      .u64("first_block", part.first_block)
      .u64("blocks", part.blocks)
      .u64("primary", part.primary.value)
      .raw("backups", backups + "]");
  return one_line(line);
}

template <class T>
std::string lines_of(const std::vector<T>& all) {
  std::string text = "[";
  for (const T& one : all) text += (text.size() > 1 ? ",\n    " : "\n    ") + line_of(one);
  return text + (all.empty() ? "]" : "\n  ]");
}

std::uint32_t number32(json_fields& fields, std::string_view name) {
  const std::uint64_t value = fields.u64(name);
  if (value > std::numeric_limits<std::uint32_t>::max()) fields.fail(name, "is too large");
  return static_cast<std::uint32_t>(value);
}

std::vector<member_id> ids(json_fields& fields, std::string_view name) {
  std::vector<member_id> found;
  const nlohmann::json all = fields.any(name);
  if (fields.failed()) return found;
  if (!all.is_array()) fields.fail(name, "must be a list of member ids");
  if (fields.failed()) return found;
  for (const nlohmann::json& one : all) {
    if (!one.is_number_unsigned() ||
        one.get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max()) {
      fields.fail(name, "must be a list of member ids");
      return found;
    }
    found.emplace_back(one.get<std::uint32_t>());
  }
  return found;
}

plan_member read_member(json_fields& fields) {
  plan_member m;
  m.id = member_id(number32(fields, "id"));
  m.life = incarnation(fields.u64("life"));
  m.name = fields.text("name");
  m.host = fields.text("host");
  m.domain = fields.text("domain");
  m.address = fields.text("address");
  m.computes = fields.boolean("computes");
  m.store = fields.boolean("store");
  m.first_leaf = number32(fields, "first_leaf");
  m.leaves = number32(fields, "leaves");
  m.threads = fields.u64("threads");
  return m;
}

// What `last` said was for the plan that decided the record.
protocol::record_notice read_record(json_fields& fields) {
  protocol::record_notice n;
  protocol::decision_record& r = n.record;
  r.step = fields.u64("step");
  r.updates = fields.u64("updates");
  r.skip = fields.boolean("skip");
  r.why_skipped = fields.text("why_skipped");
  r.scale = std::bit_cast<float>(number32(fields, "scale_bits"));
  r.lr = std::bit_cast<float>(number32(fields, "lr_bits"));
  r.loss = std::bit_cast<double>(fields.u64("loss_bits"));
  r.grad_norm = std::bit_cast<double>(fields.u64("grad_norm_bits"));
  r.tokens = std::bit_cast<double>(fields.u64("tokens_bits"));
  n.validate = fields.boolean("validate");
  n.lines = fields.u64("lines");
  n.total_tokens = fields.u64("total_tokens");
  n.skipped_in_a_row = fields.u64("skipped_in_a_row");
  n.plan = generation(number32(fields, "plan"));
  n.world = number32(fields, "world");
  return n;
}

placed_blocks read_placed(json_fields& fields) {
  placed_blocks part;
  part.layer = number32(fields, "layer");
  part.first_block = number32(fields, "first_block");
  part.blocks = number32(fields, "blocks");
  part.primary = member_id(number32(fields, "primary"));
  part.backups = ids(fields, "backups");
  return part;
}

// What is wrong with a plan whose fields are all there; empty if nothing is.
std::string wrong_members(const plan& p) {
  const auto above = [](const plan_member& a, const plan_member& b) { return !(a.id < b.id); };
  if (p.members.empty()) return "the plan has no members";
  if (std::ranges::adjacent_find(p.members, above) != p.members.end()) {
    return "the members do not stand in the order of their ids, each once";
  }
  if (p.find(p.coordinator) == nullptr) {
    return fmt::format("the coordinator, member {}, is no member", p.coordinator.value);
  }
  std::uint64_t next = 0;
  bool anybody = false;
  for (const plan_member& m : p.members) {
    if (m.leaves == 0) continue;
    anybody = true;
    if (m.first_leaf != next || !m.computes) {
      return fmt::format("member {} computes virtual ranks from {} on, but {} comes next",
                         m.id.value, m.first_leaf, next);
    }
    next += m.leaves;
  }
  if (anybody && next != p.virtual_ranks) {
    return fmt::format("{} of {} virtual ranks are computed", next, p.virtual_ranks);
  }
  return "";
}

std::string wrong_placement(const plan& p) {
  std::uint64_t layer = 0, next = 0;
  for (const placed_blocks& part : p.placement) {
    const std::string which = fmt::format("layer {}, block {}", part.layer, part.first_block);
    if (part.layer == layer + 1 && next > 0) {
      layer = part.layer;
      next = 0;
    }
    if (part.blocks == 0 || part.layer != layer || part.first_block != next) {
      return which + ": the blocks do not stand in order, each once";
    }
    next += part.blocks;
    if (next > std::numeric_limits<std::uint32_t>::max()) return which + ": too many blocks";
    const auto no_member = [&](member_id id) { return p.find(id) == nullptr; };
    if (no_member(part.primary) || std::ranges::any_of(part.backups, no_member)) {
      return which + ": a holder is no member";
    }
    const auto above = [](member_id a, member_id b) { return !(a < b); };
    if (std::ranges::adjacent_find(part.backups, above) != part.backups.end() ||
        std::ranges::binary_search(part.backups, part.primary)) {
      return which + ": the holders do not stand in order, each once";
    }
  }
  return "";
}

std::string wrong_records(const plan& p) {
  if (p.records.empty()) return "";
  std::uint64_t step = p.records.front().record.step;
  for (const protocol::record_notice& n : p.records) {
    if (n.record.step != step++) return "the records do not stand in the order of their steps";
  }
  if (step != p.base + 1) return fmt::format("the records do not end with step {}", p.base);
  return "";
}

}  // namespace

std::string print_plan(const plan& p) {
  json_page page;
  page.u64("format", format_version)
      .text("run", p.run_id)
      .u64("plan", p.number.value)
      .text("parent", p.parent)
      .text("verdict", p.verdict)
      .text("reason", p.reason)
      .u64("base", p.base)
      .u64("virtual_ranks", p.virtual_ranks)
      .u64("coordinator", p.coordinator.value)
      .boolean("exposed", p.exposed)
      .raw("members", lines_of(p.members))
      .raw("placement", lines_of(p.placement))
      .raw("records", lines_of(p.records));
  return page.finish();
}

result<plan> parse_plan(std::string_view text, const std::string& where) {
  result<nlohmann::json> parsed = parse_json(text, where);
  if (!parsed) return parsed.failure();
  json_fields fields(*parsed, where);
  plan p;
  if (fields.u64("format") != format_version && !fields.failed()) {
    fields.fail("format", fmt::format("is not {}: another version of the program wrote this plan",
                                      format_version));
  }
  p.run_id = fields.text("run");
  p.number = generation(number32(fields, "plan"));
  p.parent = fields.text("parent");
  p.verdict = fields.text("verdict");
  p.reason = fields.text("reason");
  p.base = fields.u64("base");
  p.virtual_ranks = number32(fields, "virtual_ranks");
  p.coordinator = member_id(number32(fields, "coordinator"));
  p.exposed = fields.boolean("exposed");
  fields.each("members", [&](json_fields& one) { p.members.push_back(read_member(one)); });
  fields.each("placement", [&](json_fields& one) { p.placement.push_back(read_placed(one)); });
  fields.each("records", [&](json_fields& one) { p.records.push_back(read_record(one)); });
  if (status whole = fields.finish(); !whole) return whole.failure();
  std::string wrong = wrong_members(p);
  if (wrong.empty()) wrong = wrong_placement(p);
  if (wrong.empty()) wrong = wrong_records(p);
  if (!wrong.empty()) return error{exit_code::bad_data, fmt::format("{}: {}", where, wrong)};
  return p;
}

std::string plan_hash(std::string_view text) { return hash_text(text).hex(); }

}  // namespace troupe::actors
