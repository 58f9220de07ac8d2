#include "actors/cli/chaos_verdict.hpp"

#include <ostream>

#include "actors/chaos/chaos_report.hpp"
#include "actors/cli/command_line.hpp"
#include "actors/version.hpp"
#include "config/base/file.hpp"
#include "config/base/json.hpp"

namespace troupe::actors::cli {

int tell_verdict(const judged_run& of, bool json, std::ostream& out, std::ostream& err) {
  file_system& files = real_file_system();
  const chaos::measured figures = chaos::measure(of.run, of.reference);
  const chaos::verdict outcome = chaos::judge(of.what, of.mode, of.run, figures, of.reference);
  const chaos::chaos_report report{of.what,        of.mode,      of.seed,
                                   version_text(), of.directory, of.reference_directory,
                                   of.run,         figures,      outcome};
  if (!of.directory.empty()) {
    json_page page;
    chaos::put(page, report);
    // A launcher that refused the config has made no directory.
    if (status made = make_directories(files, of.directory); !made) {
      return fail(made.failure(), err);
    }
    const std::string path = join_path(of.directory, "chaos.json");
    if (status kept = replace(files, path, page.finish()); !kept) return fail(kept.failure(), err);
  }
  if (json) {
    json_line line;
    chaos::put(line, report);
    out << line.finish() << std::flush;
  } else {
    out << chaos::to_text(report);
    if (!of.directory.empty()) out << "report: " << join_path(of.directory, "chaos.json") << "\n";
    out << std::flush;
  }
  if (!outcome.passed && !of.last_words.empty()) {
    err << "last words of the run:\n" << of.last_words;
  }
  return outcome.passed ? 0 : 1;
}

}  // namespace troupe::actors::cli
