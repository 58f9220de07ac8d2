// `troupe status`: what a run does now, asked at its port; or, when nothing runs, what its records
// say.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "actors/cli/command_line.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/run_place.hpp"
#include "actors/records.hpp"
#include "config/base/json.hpp"

namespace troupe::actors::cli {
namespace {

constexpr std::chrono::seconds between_looks{2};

// "" where there is none or it cannot be read.
std::string report_of(const run_directory& run) {
  result<std::string> text = read_file(real_file_system(), run.file("report.json"), 1 << 20);
  return text && parse_json(*text, "report.json") ? *text : "";
}

std::string in_words(const nlohmann::json& exit) {
  if (!exit.is_number_integer()) return "it was killed";
  switch (exit.get<int>()) {
    case 0:
      return "finished (exit code 0)";
    case 75:
      return "stopped in order (exit code 75); the same command resumes";
    default:
      return fmt::format("ended with exit code {}; the last line of events.jsonl says why",
                         exit.get<int>());
  }
}

int tell_records(const run_directory& run, bool json, std::ostream& out, std::ostream& err) {
  result<std::vector<step_record>> steps = read_steps(real_file_system(), run.file("steps.jsonl"));
  if (!steps) return fail(steps.failure(), err);
  const std::string report = report_of(run);
  if (json) {
    json_page page;
    page.text("run_id", run.run_id()).text("state", "ended").u64("step", steps->size());
    if (steps->empty()) {
      page.null("loss");
    } else {
      page.number("loss", steps->back().loss);
    }
    if (report.empty()) {
      page.null("report");
    } else {
      page.raw("report", report.substr(0, report.find_last_not_of('\n') + 1));
    }
    out << page.finish();
    return 0;
  }
  out << fmt::format("nothing runs in {} ({})\n", run.path(), run.run_id());
  if (steps->empty()) {
    out << "no step is committed\n";
    return 0;
  }
  out << fmt::format("last committed step {}  loss {:.4f}\n", steps->back().step,
                     steps->back().loss);
  if (report.empty()) {
    out << "there is no report.json: it ended before its first save\n";
  } else {
    const nlohmann::json read = *parse_json(report, "report.json");
    out << (read.contains("exit") ? in_words(read["exit"]) : "report.json is damaged") << "\n"
        << "report: " << run.file("report.json") << "\n";
  }
  return 0;
}

int tell_running(const comm::address& at, bool json, std::ostream& out, std::ostream& err) {
  result<http_answer> answer = http_get(at, json ? "/api/status" : "/");
  if (!answer) return fail(answer.failure(), err);
  if (answer->code != 200) {
    return fail({exit_code::too_few,
                 fmt::format("{} answers with {}: {}", to_text(at), answer->code, answer->body)},
                err);
  }
  out << answer->body;
  return 0;
}

int tell(const std::string& run, bool json, std::ostream& out, std::ostream& err) {
  result<run_place> place = find_run(run);
  if (!place) return fail(place.failure(), err);
  if (place->answers) return tell_running(*place->answers, json, out, err);
  result<int> holder = holder_of(place->directory->path());
  if (!holder) return fail(holder.failure(), err);
  if (*holder == 0) return tell_records(*place->directory, json, out, err);
  return fail({exit_code::too_few,
               fmt::format("{} is held by process {}, but nobody answers for it: the run is "
                           "starting, its port is on another machine's loopback, or "
                           "metrics.prometheus_listen is \"\"; {} has its last words",
                           place->directory->path(), *holder, place->directory->file("logs"))},
              err);
}

}  // namespace

int status_command(arguments args, std::ostream& out, std::ostream& err) {
  command_line line("status", "Members, step, speed and health of a run.",
                    "  troupe status\n"
                    "  troupe status outputs/quickstart --watch\n"
                    "  troupe status 127.0.0.1:29650 --json\n");
  std::string run;
  bool json = false, watch = false;
  line.app().add_option("RUN", run, "run directory or HOST:PORT; the newest under outputs/");
  line.app().add_flag("--json", json, "one JSON document, as /api/status");
  line.app().add_flag("--watch", watch, "again every two seconds, until it ends");
  if (const auto code = line.parse(args, out, err)) return *code;
  if (!watch) return tell(run, json, out, err);
  const bool clear = &out == &std::cout && isatty(STDOUT_FILENO) == 1 && !json;
  while (true) {
    result<run_place> place = find_run(run);
    if (clear) out << "\033[H\033[2J";
    const int code = tell(run, json, out, err);
    if (!place || !place->answers || code != 0) return code;
    out << (json ? "" : "\n") << std::flush;
    std::this_thread::sleep_for(between_looks);
  }
}

}  // namespace troupe::actors::cli
