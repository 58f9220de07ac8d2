#include "actors/status_client.hpp"

#include <fmt/format.h>
#include <httplib.h>

#include "config/base/json.hpp"

namespace troupe::actors {
namespace {

constexpr std::string_view file_name = "address";
constexpr std::uint64_t file_limit = 1 << 16;
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

status write_status_address(file_system& files, const std::string& run_directory,
                            const status_address& where) {
  json_page page;
  page.text("run", where.run_id).text("host", where.http.host).u64("http_port", where.http.port);
  return replace(files, join_path(run_directory, file_name), page.finish());
}

result<std::optional<status_address>> read_status_address(file_system& files,
                                                          const std::string& run_directory) {
  const std::string path = join_path(run_directory, file_name);
  result<bool> there = files.exists(path);
  if (!there) return there.failure();
  if (!*there) return std::optional<status_address>();
  result<std::string> text = read_file(files, path, file_limit);
  if (!text) return text.failure();
  result<nlohmann::json> parsed = parse_json(*text, path);
  if (!parsed) return parsed.failure();
  json_fields fields(*parsed, path);
  status_address found;
  found.run_id = fields.text("run");
  found.http.host = fields.text("host");
  const std::uint64_t port = fields.u64("http_port");
  if (port == 0 || port > 65535) fields.fail("http_port", "is no port");
  if (status whole = fields.finish(); !whole) return whole.failure();
  found.http.port = static_cast<std::uint16_t>(port);
  return std::optional(found);
}

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
