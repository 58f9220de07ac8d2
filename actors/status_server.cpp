#include "actors/status_server.hpp"

#include <fmt/format.h>

#include "actors/machine.hpp"
#include "actors/metrics_text.hpp"

namespace troupe::actors {
namespace {

http_response plain(int code, std::string text) {
  return {code, "text/plain; charset=utf-8", std::move(text) + "\n"};
}

}  // namespace

bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

result<std::unique_ptr<status_server>> status_server::start(const std::string& listen,
                                                            status_server_hooks hooks) {
  const result<comm::address> where = comm::parse_address(listen);
  if (!where) {
    return error{exit_code::bad_config, "metrics.prometheus_listen: " + where.failure().message};
  }
  std::unique_ptr<status_server> server(new status_server(std::move(hooks)));
  auto http = http_server::start(
      *where, [self = server.get()](const http_request& r) { return self->answer(r); });
  if (!http) {
    return error{http.failure().code, "metrics.prometheus_listen: " + http.failure().message};
  }
  server->http_ = std::move(*http);
  return server;
}

void status_server::publish(std::shared_ptr<const world_status> snapshot) {
  const std::lock_guard lock(mutex_);
  newest_.swap(snapshot);
}

std::shared_ptr<const world_status> status_server::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

http_response status_server::answer(const http_request& request) const {
  if (request.path == "/api/stop") return answer_stop(request);
  if (request.path.starts_with("/api/scale/") || request.path.starts_with("/api/drain/")) {
    return answer_order(request);
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return plain(405, "only GET is answered here");
  }
  const auto status = newest();
  if (!status) return plain(503, "the run is starting");
  const wall_time now = hooks_.clock->wall();
  if (request.path == "/metrics") {
    return {200, std::string(metrics_content_type), metrics_text(*status, facts_of_this_process())};
  }
  if (request.path == "/api/status") return {200, "application/json", to_json(*status, now)};
  if (request.path == "/") return {200, "text/plain; charset=utf-8", to_text(*status, now)};
  if (request.path == "/healthz") {
    return healthy(*status, now)
               ? plain(200, "ok")
               : plain(503, "no commit for too long: " + std::string(name_of(status->state)));
  }
  return plain(404, "there are /metrics, /api/status, /healthz and /");
}

bool status_server::has_secret(const http_request& request) const {
  const auto secret = request.headers.find("x-troupe-secret");
  return !hooks_.secret.empty() && secret != request.headers.end() &&
         same_secret(secret->second, hooks_.secret);
}

http_response status_server::answer_order(const http_request& request) const {
  if (request.method != "POST") return plain(405, "POST, with the run's secret");
  if (!hooks_.order || !has_secret(request)) {
    return plain(403, "the header X-Troupe-Secret does not hold this run's secret");
  }
  std::string words = request.path.substr(std::string_view("/api/").size());
  words[words.find('/')] = ' ';
  const auto answer = hooks_.order(words);
  if (!answer) return plain(503, answer.failure().message);
  if (!*answer) {
    return plain(503,
                 "the launcher of this run is not on the machine of its coordinator; ask where "
                 "the launcher runs");
  }
  const command_answer& said = **answer;
  if (said.code == exit_code::ok) return plain(202, said.words);
  return plain(said.code == exit_code::usage ? 400 : 409, said.words);
}

http_response status_server::answer_stop(const http_request& request) const {
  if (request.method != "POST") return plain(405, "POST, with the run's secret");
  if (!hooks_.stop || !has_secret(request)) {
    return plain(403, "the header X-Troupe-Secret does not hold this run's secret");
  }
  hooks_.stop();
  return plain(202, "stopping: the run saves and ends after the step it is in");
}

}  // namespace troupe::actors
