#include "actors/console.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "config/base/clock.hpp"

namespace troupe::actors {

console_settings console_settings::detect(bool quiet, bool disable_color) {
  console_settings s;
  s.quiet = quiet;
  s.terminal = isatty(STDOUT_FILENO) == 1;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  s.color = s.terminal && !disable_color && !dumb && (no_color == nullptr || *no_color == '\0');
  if (dumb) s.terminal = false;
  return s;
}

console::console(const console_settings& settings) : settings_(settings) {
  if (!settings_.log_file.empty()) log_ = std::fopen(settings_.log_file.c_str(), "ae");
}

console::~console() {
  clear_live();
  if (log_ != nullptr) std::fclose(log_);
}

// A console that cannot write its log goes on without: the screen and the records say the same.
void console::log(const std::string& text) {
  if (log_ == nullptr) return;
  put(log_, iso_8601(real_clock().wall()) + "  " + text + "\n");
}

void console::put(std::FILE* to, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
}

void console::clear_live() {
  if (live_) put(stdout, "\r\033[K");
  live_ = false;
}

void console::start(const std::vector<std::pair<std::string, std::string>>& facts) {
  for (const auto& [name, value] : facts) log(name + ": " + value);
  if (!settings_.quiet) put(stdout, table(facts));
}

void console::step(const progress& p, bool due) {
  std::string line = progress_line(p);
  if (due) log(line);
  if (settings_.quiet || (!due && !settings_.terminal)) return;
  clear_live();
  if (!due) {
    put(stdout, line);
    live_ = true;
    return;
  }
  if (settings_.color) {
    const std::size_t at = line.find("loss ") + 5;
    line.insert(line.find("  ", at), "\033[0m");
    line.insert(at, "\033[1m");
  }
  put(stdout, line + "\n");
}

void console::say(const std::string& line) {
  log(line);
  if (settings_.quiet) return;
  clear_live();
  put(stdout, line + "\n");
}

void console::event(const std::string& line) {
  log(line);
  if (settings_.quiet) return;
  clear_live();
  put(stderr, "troupe: " + line + "\n");
}

void console::failure(const std::string& line) {
  log(line);
  clear_live();
  put(stderr, "troupe: " + line + "\n");
}

}  // namespace troupe::actors
