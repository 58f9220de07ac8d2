#include "actors/chaos/link_rules.hpp"

#include <array>
#include <variant>

#include "actors/wire/codec.hpp"
#include "comm/checked_lane.hpp"

namespace troupe::actors::chaos {
namespace {

// In the order of the alternatives.
constexpr std::array control_names = {"plan_notice",
                                      "bulk_address",
                                      "ready",
                                      "go",
                                      "sum_held",
                                      "vote",
                                      "record_notice",
                                      "recorded",
                                      "validation_share",
                                      "save_request",
                                      "save_share",
                                      "heartbeat",
                                      "stop_wish",
                                      "farewell",
                                      "address_table",
                                      "collect",
                                      "promise",
                                      "promise_refused",
                                      "member_gone",
                                      "copy_plan",
                                      "copy_wish",
                                      "copies_held"};
static_assert(control_names.size() == std::variant_size_v<protocol::message>);

constexpr std::array bulk_names = {"node", "sum", "parameters", "state"};
static_assert(bulk_names.size() == std::variant_size_v<protocol::bulk_header>);

template <class T>
T param_or(const parameters& params, const char* name, T usual) {
  const auto found = params.find(name);
  return found == params.end() ? usual : std::get<T>(found->second);
}

}  // namespace

std::optional<comm::message_fault> message_fault_of(fault_kind kind) {
  using enum comm::message_fault;
  switch (kind) {
    case fault_kind::cut:
      return cut;
    case fault_kind::drop:
      return drop;
    case fault_kind::delay:
      return delay;
    case fault_kind::dup:
      return dup;
    case fault_kind::reorder:
      return reorder;
    case fault_kind::replay:
      return replay;
    case fault_kind::corrupt:
      return corrupt;
    default:
      return std::nullopt;
  }
}

comm::message_rule rule_of(const worker_order& o) {
  const auto what = message_fault_of(o.kind);
  ensure(what.has_value(), "a rule was wanted for a fault that strikes no messages");
  comm::message_rule r;
  r.id = o.id;
  r.what = *what;
  r.to = o.towards;
  const std::string plane = param_or<std::string>(o.params, "plane", "");
  if (plane == "control") r.plane = comm::message_plane::control;
  if (plane == "bulk") r.plane = comm::message_plane::bulk;
  r.message = param_or<std::string>(o.params, "message", "");
  r.share = param_or<double>(o.params, "share", 1);
  if (o.params.contains("messages")) {
    r.messages = static_cast<std::uint64_t>(param_or<std::int64_t>(o.params, "messages", 0));
  }
  r.by = param_or<duration>(o.params, "by", r.by);
  r.jitter = param_or<duration>(o.params, "jitter", r.jitter);
  r.bits = static_cast<std::uint32_t>(param_or<std::int64_t>(o.params, "bits", 1));
  r.seed = o.seed;
  return r;
}

const std::vector<std::string>& message_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all(control_names.begin(), control_names.end());
    all.insert(all.end(), bulk_names.begin(), bulk_names.end());
    return all;
  }();
  return names;
}

std::string name_of_message(comm::message_plane plane, std::span<const std::byte> what) {
  if (plane == comm::message_plane::control) {
    const auto message = wire::decode(what);
    return message ? control_names[message->index()] : "";
  }
  if (what.size() < comm::bulk_check_bytes) return "";
  const auto header = wire::decode_header(what.first(what.size() - comm::bulk_check_bytes));
  return header ? bulk_names[header->index()] : "";
}

}  // namespace troupe::actors::chaos
