#include "actors/chaos/fault_kinds.hpp"

#include <algorithm>

#include "config/base/error.hpp"

namespace troupe::actors::chaos {
namespace {

std::vector<param_row> message_params(std::vector<param_row> more = {}) {
  std::vector<param_row> all = {{"message", param_type::text},     // only this kind of message
                                {"plane", param_type::text},       // control or bulk; both
                                {"share", param_type::number},     // 0..1 of the messages; all
                                {"messages", param_type::whole}};  // at most so many
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<kind_row> make_table() {
  using enum fault_kind;
  using p = param_type;
  constexpr auto members = strikes::members, links = strikes::links;
  std::vector<kind_row> table = {
      {kill, "kill", members, false, true, "", {}},
      {fault_kind::exit, "exit", members, false, true, "", {{"code", p::whole}}},
      {throws, "throw", members, false, true, "", {{"actor", p::text}}},
      {stop, "stop", members, true, true, "", {}},
      {cut, "cut", links, true, true, "", {{"plane", p::text}}},
      {drop, "drop", links, true, false, "", message_params()},
      {fault_kind::delay, "delay", links, true, false, "",
       message_params({{"by", p::duration}, {"jitter", p::duration}})},
      {dup, "dup", links, true, false, "", message_params()},
      {reorder, "reorder", links, true, false, "", message_params({{"by", p::duration}})},
      {replay, "replay", links, true, false, "", message_params()},
      {corrupt, "corrupt", links, true, false, "", message_params({{"bits", p::whole}})},
      {hang, "hang", members, true, true, "", {}},
      {join, "join", strikes::newcomer, false, false, "", {}},
      {drain, "drain", members, false, false, "", {}},
      {notice, "notice", members, false, true, "", {{"signal", p::text}, {"grace", p::duration}}},
      {cpu_steal, "cpu-steal", members, true, false, "", {{"threads", p::whole}}},
      {fault_kind::nan, "nan", members, false, false, "", {{"layer", p::whole}}},
  };
  return table;
}

}  // namespace

std::span<const kind_row> kind_table() {
  static const std::vector<kind_row> table = make_table();
  return table;
}

const kind_row& row_of(fault_kind kind) {
  const auto found = std::ranges::find(kind_table(), kind, &kind_row::kind);
  ensure(found != kind_table().end(), "a kind of fault without a row");
  return *found;
}

std::string_view name_of(fault_kind kind) { return row_of(kind).name; }

std::optional<fault_kind> kind_named(std::string_view name) {
  const auto found = std::ranges::find(kind_table(), name, &kind_row::name);
  if (found == kind_table().end()) return std::nullopt;
  return found->kind;
}

bool takes_orders(fault_kind kind) {
  return kind != fault_kind::join && kind != fault_kind::drain && kind != fault_kind::notice &&
         kind != fault_kind::cpu_steal;
}

std::string_view name_of(run_mode mode) {
  switch (mode) {
    case run_mode::sim:
      return "sim";
    case run_mode::process:
      return "process";
    case run_mode::cluster:
      break;
  }
  return "cluster";
}

std::optional<std::string> cannot_do(run_mode mode, fault_kind kind) {
  const kind_row& row = row_of(kind);
  switch (mode) {
    case run_mode::sim:
      // What a busy neighbour takes is real time, and virtual time has none.
      if (kind == fault_kind::cpu_steal) return "time is virtual there";
      if (kind == fault_kind::nan) return "what a simulated run is compared with skips no step";
      return std::nullopt;
    case run_mode::process:
      if (row.process_lacks.empty()) return std::nullopt;
      return "it needs " + std::string(row.process_lacks) + ", which this version does not have";
    case run_mode::cluster:
      break;
  }
  return "this version runs no scenario on a cluster";
}

}  // namespace troupe::actors::chaos
