#include <fmt/format.h>

#include <charconv>

#include "comm/transport.hpp"

namespace troupe::comm {

std::string to_text(const address& where) {
  const bool v6 = where.host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", where.host, where.port)
            : fmt::format("{}:{}", where.host, where.port);
}

result<address> parse_address(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return error{exit_code::bad_config,
                 fmt::format("\"{}\" is no address: {}; an address is HOST:PORT, such as "
                             "127.0.0.1:0 or [::1]:4711",
                             text, why)};
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong("it has no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong("an IPv6 literal stands in brackets");
  }
  if (host.empty()) return wrong("it has no host");
  address found{.host = std::string(host), .port = 0};
  const auto [end, trouble] =
      std::from_chars(digits.data(), digits.data() + digits.size(), found.port);
  if (digits.empty() || trouble != std::errc{} || end != digits.data() + digits.size()) {
    return wrong(fmt::format("\"{}\" is no port (0 to 65535)", digits));
  }
  return found;
}

}  // namespace troupe::comm
