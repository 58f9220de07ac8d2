// Where this process listens and what it tells others to connect to, decided from the settings and
// the network cards found. The usual accidents are kept out here: a host name that means loopback
// is not advertised to other machines, a bridge is not taken for the card, an unknown card is an
// error that lists the known ones.
#pragma once

#include <sys/socket.h>

#include <span>
#include <string>
#include <vector>

#include "comm/transport.hpp"

namespace troupe::comm {

struct network_settings {
  // HOST:PORT; port 0: the system chooses. 0.0.0.0 or [::]: on all cards (or those named below).
  std::string listen = "127.0.0.1:0";
  // HOST or HOST:PORT that others connect to, when it is another than where we listen.
  std::string advertise;
  // Names of cards with commas ("eth0,lo"); empty: all.
  std::string interfaces;
};

struct network_card {
  std::string name;
  std::vector<std::string> addresses;  // literals
  bool loopback = false;
  bool bridge = false;         // joins others and leads nowhere itself
  bool default_route = false;  // the way to the rest of the world
};

// The cards that are up; those of RDMA without addresses.
std::vector<network_card> find_network_cards();

struct listening {
  address bind;       // a literal
  address advertise;  // port 0: the port that the system chose
  // Connections to other addresses of ours are refused; empty: none is.
  std::vector<std::string> accept_on;
  std::string devices;  // for UCX_NET_DEVICES; empty: all
};

// `resolve` turns a host name into literals, best first. The errors are bad_config.
using resolver = std::vector<std::string> (*)(const std::string& host);
std::vector<std::string> resolve_host(const std::string& host);
result<listening> decide_listening(const network_settings& settings,
                                   std::span<const network_card> cards,
                                   resolver resolve = resolve_host);

struct socket_address {
  sockaddr_storage space{};
  socklen_t size = 0;  // 0: it is none
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&space); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&space); }
};
socket_address to_socket_address(const std::string& literal, std::uint16_t port);
// The address without its port; IPv4 also where the socket speaks IPv6.
std::string literal_of(const sockaddr& where);
std::uint16_t port_of(const sockaddr& where);

bool is_literal(const std::string& host);
bool is_loopback(const std::string& literal);

}  // namespace troupe::comm
