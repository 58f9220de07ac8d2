#include "actors/cli/run_place.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "actors/run_address.hpp"
#include "config/base/json.hpp"

namespace troupe::actors::cli {
namespace {

// "run_id" of what /api/status said; "" if it is no status.
std::string run_id_of(const http_answer& answer) {
  const result<nlohmann::json> status = parse_json(answer.body, "/api/status");
  if (answer.code != 200 || !status || !status->is_object()) return "";
  const auto id = status->find("run_id");
  return id != status->end() && id->is_string() ? id->get<std::string>() : "";
}

bool is_directory(const std::string& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

}  // namespace

result<std::string> newest_run(const std::string& folder) {
  namespace fs = std::filesystem;
  std::string newest;
  fs::file_time_type newest_time{};
  std::error_code trouble;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, trouble)) {
    if (!fs::exists(entry.path() / "run.json", trouble)) continue;
    for (const char* name : {"run.json", "events.jsonl", "steps.jsonl"}) {
      const fs::file_time_type time = fs::last_write_time(entry.path() / name, trouble);
      if (trouble || (!newest.empty() && time <= newest_time)) continue;
      newest_time = time;
      newest = entry.path().string();
    }
  }
  if (!newest.empty()) return newest;
  return error{exit_code::usage,
               fmt::format("there is no run under {}; name a run directory or HOST:PORT", folder)};
}

result<run_place> find_run(const std::string& text) {
  run_place place;
  std::string path = text;
  if (text.empty()) {
    result<std::string> newest = newest_run("outputs");
    if (!newest) return newest.failure();
    path = *newest;
  } else if (!is_directory(text) && text.find('/') == std::string::npos) {
    if (const auto where = comm::parse_address(text)) {
      place.answers = *where;
      return place;
    }
  }
  result<run_directory> run = run_directory::open(real_file_system(), path);
  if (!run) return run.failure();
  place.directory = *run;
  result<std::optional<run_address>> where = read_address(real_file_system(), path);
  if (!where) return where.failure();
  if (!*where || (*where)->run_id != run->run_id() || (*where)->http_port == 0) return place;
  // The port may be on the loopback of the host that the address names.
  for (const std::string& host : {(*where)->host, std::string("127.0.0.1")}) {
    const comm::address at{.host = host, .port = (*where)->http_port};
    const result<http_answer> answer = http_get(at, "/api/status");
    if (!answer || run_id_of(*answer) != run->run_id()) continue;
    place.answers = at;
    break;
  }
  return place;
}

}  // namespace troupe::actors::cli
