#include "actors/chaos/order.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/chaos/overloaded.hpp"
#include "config/base/json.hpp"

namespace troupe::actors::chaos {
namespace {

constexpr std::string_view proof_names[] = {"struck", "over", "failed"};

void put(json_line& line, const parameters& params) {
  line.begin_object("params");
  for (const auto& [name, value] : params) {
    std::visit(
        overloaded{[&](std::int64_t v) { line.i64(name, v); },
                   [&](double v) { line.number(name, v); }, [&](bool v) { line.boolean(name, v); },
                   [&](const std::string& v) { line.text(name, v); },
                   [&](duration v) { line.i64(name, v.count()); }},
        value);
  }
  line.end();
}

parameters read_params(json_fields& from, fault_kind kind) {
  parameters params;
  for (const param_row& row : row_of(kind).params) {
    const std::string name(row.name);
    if (!from.has(name)) continue;
    switch (row.type) {
      case param_type::whole:
        params[name] = from.i64(name);
        break;
      case param_type::number:
        params[name] = from.number(name);
        break;
      case param_type::text:
        params[name] = from.text(name);
        break;
      case param_type::boolean:
        params[name] = from.boolean(name);
        break;
      case param_type::duration:
        params[name] = duration(from.i64(name));
        break;
    }
  }
  return params;
}

order_moment read_moment(json_fields& from) {
  order_moment at;
  const std::string point = from.text("point");
  if (const auto known = parse_point(point)) {
    at.point = *known;
  } else if (!from.failed()) {
    from.fail("point", "there is no point \"" + point + "\"");
  }
  at.first_step = from.u64("first_step");
  at.last_step = from.u64("last_step");
  return at;
}

}  // namespace

std::string to_line(const worker_order& o) {
  json_line line;
  line.u64("id", o.id);
  if (o.ends) return line.boolean("ends", true).finish();
  if (o.withdrawn) return line.boolean("withdrawn", true).finish();
  line.text("kind", name_of(o.kind));
  if (o.when) {
    line.begin_object("when")
        .text("point", to_text(o.when->point))
        .u64("first_step", o.when->first_step)
        .u64("last_step", o.when->last_step)
        .end();
  }
  if (o.lasts) line.i64("lasts_ns", o.lasts->count());
  line.begin_array("towards");
  for (const member_id m : o.towards) line.begin_element().u64("member", m.value).end();
  line.end().u64("seed", o.seed);
  put(line, o.params);
  return line.finish();
}

std::string to_line(const proof& p) {
  return json_line()
      .u64("id", p.id)
      .text("what", proof_names[static_cast<std::size_t>(p.what)])
      .u64("step", p.step)
      .text("point", p.point)
      .i64("moment_ns", p.moment.count())
      .text("words", p.words)
      .finish();
}

result<worker_order> parse_order(std::string_view text, const std::string& file) {
  const auto json = parse_json(text, file);
  if (!json) return json.failure();
  json_fields from(*json, file);
  worker_order o;
  o.id = from.u64("id");
  if (from.has("ends") || from.has("withdrawn")) {
    o.ends = from.has("ends") && from.boolean("ends");
    o.withdrawn = from.has("withdrawn") && from.boolean("withdrawn");
    if (status whole = from.finish(); !whole) return whole.failure();
    return o;
  }
  const std::string name = from.text("kind");
  const auto kind = kind_named(name);
  if (!kind) {
    from.fail("kind", "there is no fault \"" + name + "\"");
    return from.finish().failure();
  }
  o.kind = *kind;
  if (from.has("when")) from.object("when", [&](json_fields& f) { o.when = read_moment(f); });
  if (from.has("lasts_ns")) o.lasts = duration(from.i64("lasts_ns"));
  from.each("towards", [&](json_fields& f) {
    o.towards.emplace_back(static_cast<std::uint32_t>(f.u64("member")));
  });
  o.seed = from.u64("seed");
  from.object("params", [&](json_fields& f) { o.params = read_params(f, o.kind); });
  if (status whole = from.finish(); !whole) return whole.failure();
  return o;
}

result<proof> parse_proof(std::string_view text, const std::string& file) {
  const auto json = parse_json(text, file);
  if (!json) return json.failure();
  json_fields from(*json, file);
  proof p;
  p.id = from.u64("id");
  const std::string what = from.text("what");
  const auto found = std::ranges::find(proof_names, what);
  if (found == std::end(proof_names)) {
    from.fail("what", "a proof does not say \"" + what + "\"");
  } else {
    p.what = static_cast<proof::kind>(found - std::begin(proof_names));
  }
  p.step = from.u64("step");
  p.point = from.text("point");
  p.moment = duration(from.i64("moment_ns"));
  p.words = from.text("words");
  if (status whole = from.finish(); !whole) return whole.failure();
  return p;
}

std::optional<worker_order> order_book::add(worker_order o) {
  if (o.ends || o.withdrawn) {
    std::erase_if(waiting_, [&](const worker_order& w) { return w.id == o.id; });
    return o.ends ? std::optional(o) : std::nullopt;
  }
  if (!o.when) return o;
  waiting_.push_back(std::move(o));
  return std::nullopt;
}

std::vector<worker_order> order_book::reached(std::string_view point, std::uint64_t step,
                                              std::uint32_t k) {
  std::vector<worker_order> due;
  std::erase_if(waiting_, [&](worker_order& o) {
    const order_moment& at = *o.when;
    const bool here = at.point.name == point && at.first_step <= step && step <= at.last_step &&
                      (!at.point.k || *at.point.k == k);
    if (here) due.push_back(std::move(o));
    return here;
  });
  return due;
}

}  // namespace troupe::actors::chaos
