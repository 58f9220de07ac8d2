#include "config/world_check.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "config/value.hpp"

namespace troupe::config {
namespace {

using problems = std::vector<problem>;

bool is_port(std::string_view digits) {
  std::uint16_t port = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, trouble] = std::from_chars(digits.data(), end, port);
  return !digits.empty() && trouble == std::errc{} && stop == end;
}

// The host, with the port cut off where there is one.
std::optional<std::string_view> host_of(std::string_view text, bool needs_port) {
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  if (needs_port && !has_port) return std::nullopt;
  if (has_port && !is_port(text.substr(colon + 1))) return std::nullopt;
  const std::string_view host = has_port ? text.substr(0, colon) : text;
  if (host.empty() || host.find_first_of(" \t/") != std::string_view::npos) return std::nullopt;
  const bool bracketed = host.starts_with('[') && host.ends_with(']') && host.size() > 2;
  if (host.find_first_of(":[]") != std::string_view::npos && !bracketed) return std::nullopt;
  return host;
}

void check_address(std::string_view key, const std::string& text, bool needs_port, problems& list) {
  if (host_of(text, needs_port)) return;
  list.push_back({std::string(key),
                  fmt::format("{} is not {}, such as 127.0.0.1:0 or [::1]:4711", print_quoted(text),
                              needs_port ? "HOST:PORT" : "HOST or HOST:PORT")});
}

}  // namespace

std::vector<problem> world_problems(const settings& s) {
  problems list;
  const auto& e = s.elastic;
  if (e.max_members != 0 && e.max_members < e.min_members) {
    list.push_back({"elastic.max_members", fmt::format("{} is below elastic.min_members = {}",
                                                       e.max_members, e.min_members)});
  }
  const auto& f = s.fault_tolerance;
  if (f.suspect_ms <= f.heartbeat_ms) {
    list.push_back({"fault_tolerance.suspect_ms",
                    fmt::format("{} is not longer than fault_tolerance.heartbeat_ms = {}: every "
                                "member would be suspected between two heartbeats; ten times as "
                                "long is a good value",
                                f.suspect_ms, f.heartbeat_ms)});
  }
  if (f.evict_ms < f.suspect_ms) {
    list.push_back({"fault_tolerance.evict_ms",
                    fmt::format("{} is below fault_tolerance.suspect_ms = {}: a member would be "
                                "given up before it is suspected",
                                f.evict_ms, f.suspect_ms)});
  }
  check_address("comm.listen", s.comm.listen, true, list);
  if (!s.comm.advertise.empty()) check_address("comm.advertise", s.comm.advertise, false, list);
  if (!s.metrics.prometheus_listen.empty()) {
    check_address("metrics.prometheus_listen", s.metrics.prometheus_listen, true, list);
  }
  return list;
}

}  // namespace troupe::config
