#include "actors/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "config/base/clock.hpp"

namespace troupe::actors {
namespace {

// Names and texts of others may hold anything; a terminal must not obey them, and a file stays
// lines.
std::string printable(std::string text) {
  for (char& c : text) {
    const auto code = static_cast<unsigned char>(c);
    if ((code < 0x20 && c != '\n' && c != '\t') || code == 0x7f) c = '?';
  }
  return text;
}

bool is_power_of_ten(std::uint64_t n) {
  while (n >= 10 && n % 10 == 0) n /= 10;
  return n == 1;
}

}  // namespace

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
  end_repeats();
  clear_live();
  if (log_ != nullptr) std::fclose(log_);
}

// A console that cannot write its log goes on without: the screen and the records say the same.
void console::log(const std::string& text) {
  if (log_ == nullptr) return;
  put(log_, iso_8601(real_clock().wall()) + "  " + printable(text) + "\n");
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
  if (!settings_.quiet) put(stdout, printable(table(facts)));
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
  put(stdout, printable(line) + "\n");
}

void console::note(const std::string& line) { log(line); }

void console::event(const std::string& line) {
  if (line != last_event_ || line.empty()) {
    end_repeats();
    last_event_ = line;
    return say_event(line);
  }
  ++repeats_;
  if (repeats_ >= 10 && is_power_of_ten(repeats_)) {
    said_repeats_ = repeats_;
    say_event(fmt::format("repeated {} times: {}", repeats_, line));
  }
}

void console::end_repeats() {
  if (repeats_ > said_repeats_) {
    say_event(fmt::format("repeated {} times: {}", repeats_, last_event_));
  }
  repeats_ = said_repeats_ = 0;
}

void console::say_event(const std::string& line) {
  log(line);
  if (settings_.quiet) return;
  clear_live();
  put(stderr, "troupe: " + printable(line) + "\n");
}

void console::failure(const std::string& line) {
  end_repeats();
  last_event_.clear();
  log(line);
  clear_live();
  put(stderr, "troupe: " + printable(line) + "\n");
}

}  // namespace troupe::actors
