// The least of HTTP/1.1 that a page of numbers needs: one request a connection, one thread, and a
// bound on everything. A port that anybody on the machine can reach must not be a way to hurt the
// training, so a connection has a few kilobytes and a few seconds, and when all places are taken
// the oldest one is given away.
//
// Not chosen: the server of cpp-httplib 0.11. It reads a line without a newline into memory for as
// long as the sender goes on (25 MB sent made the process 21 MiB larger), keeps a thread for each
// slow client, and its queue of connections has no end; none of the three can be set. As a client
// it serves us well (status_client.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "comm/transport.hpp"
#include "config/base/error.hpp"

namespace troupe::actors {

struct http_request {
  std::string method, path;                    // without what follows '?'
  std::map<std::string, std::string> headers;  // names in lower case
};

struct http_response {
  int code = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body = {};
};

// Called on the server's thread.
using http_handler = std::function<http_response(const http_request&)>;

struct http_limits {
  std::size_t connections = 32;
  std::size_t request_bytes = 8192;                          // head and body together
  std::chrono::milliseconds life = std::chrono::seconds(5);  // of a connection
};

class http_server {
 public:
  // Port 0: any free one. The error names the address and why it cannot be had.
  static result<std::unique_ptr<http_server>> start(const comm::address& listen,
                                                    http_handler handler, http_limits limits = {});
  // Ends open connections and the thread.
  ~http_server();
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;

  const comm::address& address() const { return address_; }  // with the real port

 private:
  class loop;
  http_server(comm::address where, std::unique_ptr<loop> running);

  comm::address address_;
  std::unique_ptr<loop> loop_;
};

// One request, as far as it has come. Pure; what http_server reads connections with.
enum class http_reading : std::uint8_t { unfinished, finished, malformed, too_large };
http_reading read_http_request(std::string_view text, std::size_t limit, http_request& into);
std::string write_http_response(const http_response& r, bool with_body);

}  // namespace troupe::actors
