#include "actors/status_client.hpp"

#include <fmt/format.h>
#include <httplib.h>

namespace troupe::actors {
namespace {

constexpr time_t patience_seconds = 3;

httplib::Client client_of(const comm::address& at) {
  httplib::Client client(at.host, at.port);
  client.set_connection_timeout(patience_seconds);
  client.set_read_timeout(patience_seconds);
  client.set_write_timeout(patience_seconds);
  return client;
}

result<http_answer> answer_of(const comm::address& at, const httplib::Result& got) {
  if (got) return http_answer{got->status, got->body};
  return error{exit_code::too_few, fmt::format("nobody answers at {}: {}", to_text(at),
                                               httplib::to_string(got.error()))};
}

}  // namespace

result<http_answer> http_get(const comm::address& at, const std::string& path) {
  httplib::Client client = client_of(at);
  return answer_of(at, client.Get(path));
}

result<http_answer> http_post(const comm::address& at, const std::string& path,
                              const std::string& secret) {
  httplib::Client client = client_of(at);
  return answer_of(at, client.Post(path, {{"X-Troupe-Secret", secret}}, "", "text/plain"));
}

}  // namespace troupe::actors
