#include "comm/network.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>

namespace troupe::comm {
namespace {

// The card of the default route in Linux's table, whose columns are card, destination, ...
std::string default_card() {
  std::ifstream table("/proc/net/route");
  std::string line;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string name, destination;
    words >> name >> destination;
    if (destination == "00000000") return name;
  }
  return {};
}

bool is_wildcard(const std::string& literal) { return literal == "0.0.0.0" || literal == "::"; }

error bad(std::string message) { return {exit_code::bad_config, std::move(message)}; }

std::string list_of(std::span<const network_card> cards) {
  std::string text;
  for (const network_card& card : cards) {
    if (!text.empty()) text += "; ";
    text += card.name;
    for (std::size_t i = 0; i < card.addresses.size(); ++i)
      text += (i == 0 ? " (" : ", ") + card.addresses[i];
    if (!card.addresses.empty()) text += ")";
  }
  return text;
}

// The cards that `interfaces` names, in its order; all if it names none.
result<std::vector<network_card>> chosen_cards(const std::string& interfaces,
                                               std::span<const network_card> cards) {
  std::vector<network_card> chosen;
  std::istringstream names(interfaces);
  std::string name;
  while (std::getline(names, name, ',')) {
    if (name.empty()) continue;
    const auto card = std::ranges::find(cards, name, &network_card::name);
    if (card == cards.end()) {
      return bad(fmt::format("there is no network card \"{}\" that is up; found: {}", name,
                             list_of(cards)));
    }
    chosen.push_back(*card);
  }
  if (chosen.empty()) chosen.assign(cards.begin(), cards.end());
  return chosen;
}

// The address on these cards that others reach most likely; `v6` asks for that family.
std::optional<std::string> best_address(std::span<const network_card> cards, bool v6) {
  std::optional<std::string> best;
  int best_rank = -1;
  for (const network_card& card : cards) {
    for (const std::string& literal : card.addresses) {
      const bool other_family = (literal.find(':') != std::string::npos) != v6;
      // A wildcard of IPv6 takes IPv4 too, not the other way round.
      if (other_family && !v6) continue;
      const int rank = (card.loopback ? 0
                        : card.bridge ? 4
                                      : 8) +
                       (card.default_route ? 2 : 0) + (other_family ? 0 : 1);
      if (rank > best_rank) {
        best_rank = rank;
        best = literal;
      }
    }
  }
  return best;
}

}  // namespace

socket_address to_socket_address(const std::string& literal, std::uint16_t port) {
  socket_address made;
  auto& v4 = reinterpret_cast<sockaddr_in&>(made.space);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(made.space);
  if (::inet_pton(AF_INET, literal.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    made.size = sizeof v4;
  } else if (::inet_pton(AF_INET6, literal.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    made.size = sizeof v6;
  }
  return made;
}

std::string literal_of(const sockaddr& where) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (where.sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(where).sin_addr, text.data(),
                text.size());
  } else if (where.sa_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(where).sin6_addr, text.data(),
                text.size());
  }
  const std::string literal = text.data();
  return literal.starts_with("::ffff:") ? literal.substr(7) : literal;
}

std::uint16_t port_of(const sockaddr& where) {
  return ntohs(where.sa_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(where).sin_port
                                          : reinterpret_cast<const sockaddr_in6&>(where).sin6_port);
}

bool is_literal(const std::string& host) {
  in6_addr space;
  return ::inet_pton(AF_INET, host.c_str(), &space) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &space) == 1;
}

bool is_loopback(const std::string& literal) {
  return literal.starts_with("127.") || literal == "::1";
}

std::vector<std::string> resolve_host(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, ::freeaddrinfo);
  std::vector<std::string> literals;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    std::string literal = literal_of(*one->ai_addr);
    if (!literal.empty() && std::ranges::find(literals, literal) == literals.end())
      literals.push_back(std::move(literal));
  }
  return literals;
}

std::vector<network_card> find_network_cards() {
  std::vector<network_card> cards;
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return cards;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(found, ::freeifaddrs);
  const std::string outward = default_card();
  for (const ifaddrs* one = found; one != nullptr; one = one->ifa_next) {
    if ((one->ifa_flags & IFF_UP) == 0) continue;
    auto card = std::ranges::find(cards, std::string(one->ifa_name), &network_card::name);
    if (card == cards.end()) {
      network_card fresh;
      fresh.name = one->ifa_name;
      fresh.loopback = (one->ifa_flags & IFF_LOOPBACK) != 0;
      std::error_code ignored;
      fresh.bridge = std::filesystem::exists("/sys/class/net/" + fresh.name + "/bridge", ignored);
      fresh.default_route = fresh.name == outward;
      card = cards.insert(cards.end(), std::move(fresh));
    }
    if (one->ifa_addr == nullptr) continue;
    std::string literal = literal_of(*one->ifa_addr);
    // A link-local address means nothing without the name of a card of the reader's.
    if (!literal.empty() && !literal.starts_with("fe80:"))
      card->addresses.push_back(std::move(literal));
  }
  // UCX's name for a port of an RDMA card is CARD:PORT.
  std::error_code none;
  for (const auto& card : std::filesystem::directory_iterator("/sys/class/infiniband", none)) {
    for (const auto& port : std::filesystem::directory_iterator(card.path() / "ports", none)) {
      network_card fresh;
      fresh.name = card.path().filename().string() + ":" + port.path().filename().string();
      cards.push_back(std::move(fresh));
    }
  }
  return cards;
}

result<listening> decide_listening(const network_settings& settings,
                                   std::span<const network_card> cards, resolver resolve) {
  const result<address> asked = parse_address(settings.listen);
  if (!asked) return asked.failure();
  const result<std::vector<network_card>> chosen = chosen_cards(settings.interfaces, cards);
  if (!chosen) return chosen.failure();
  listening plan;
  plan.devices = settings.interfaces;

  plan.bind = *asked;
  if (!is_literal(asked->host)) {
    const std::vector<std::string> literals = resolve(asked->host);
    if (literals.empty()) {
      return bad(fmt::format("cannot listen on {}: the name \"{}\" has no address on this machine",
                             settings.listen, asked->host));
    }
    plan.bind.host = literals.front();
    const bool elsewhere = std::ranges::any_of(
        cards, [](const auto& c) { return !c.loopback && !c.addresses.empty(); });
    if (is_loopback(plan.bind.host) && asked->host != "localhost" && elsewhere) {
      return bad(fmt::format(
          "cannot listen on {}: the name means {}, which no other machine can reach; give an "
          "address instead of the name (found: {})",
          settings.listen, plan.bind.host, list_of(cards)));
    }
  }

  plan.advertise = {.host = plan.bind.host, .port = 0};
  if (is_wildcard(plan.bind.host)) {
    const auto best = best_address(*chosen, plan.bind.host == "::");
    if (!best) {
      return bad(fmt::format(
          "cannot listen on {}: no card{} has an address of that kind; found: {}", settings.listen,
          settings.interfaces.empty() ? "" : " of " + settings.interfaces, list_of(cards)));
    }
    plan.advertise.host = *best;
    if (!settings.interfaces.empty()) {
      for (const network_card& card : *chosen)
        plan.accept_on.insert(plan.accept_on.end(), card.addresses.begin(), card.addresses.end());
    }
  } else {
    const auto owner = std::ranges::find_if(*chosen, [&](const network_card& card) {
      return std::ranges::count(card.addresses, plan.bind.host) > 0 ||
             (card.loopback && is_loopback(plan.bind.host));
    });
    if (owner == chosen->end()) {
      return bad(fmt::format(
          "cannot listen on {}: {} has this address; found: {}", settings.listen,
          settings.interfaces.empty() ? "no card" : "none of the cards " + settings.interfaces,
          list_of(cards)));
    }
    // What listens on loopback only has no business on other cards, with UCX's own ports either.
    if (owner->loopback) plan.devices = owner->name;
  }

  if (!settings.advertise.empty()) {
    if (const result<address> full = parse_address(settings.advertise)) {
      plan.advertise = *full;
    } else if (const result<address> host = parse_address(settings.advertise + ":0")) {
      plan.advertise = *host;
    } else if (is_literal(settings.advertise)) {
      plan.advertise.host = settings.advertise;  // an IPv6 literal without brackets
    } else {
      return full.failure();
    }
  }
  return plan;
}

}  // namespace troupe::comm
