// What a run shows: results to stdout, a table at the start and one line a log interval; events to
// stderr, in words. On a terminal a live bottom line shows every step; in a file there is never a
// carriage return or an escape code, and each line is written and flushed whole. An event that
// comes again and again, as in a loop of attempts, is said once, and then how often it was
// repeated: at 10, 100, 1000, ... times and when something else happens.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "actors/text.hpp"

namespace troupe::actors {

struct console_settings {
  bool terminal = false;  // is stdout one?
  bool color = false;
  bool quiet = false;         // errors only
  std::string log_file = {};  // every line that is not a live one goes there as well; "" for none
  // Asks the system and the environment (NO_COLOR, TERM=dumb).
  static console_settings detect(bool quiet, bool disable_color);
};

class console {
 public:
  explicit console(const console_settings& settings);
  ~console();
  console(const console&) = delete;
  console& operator=(const console&) = delete;

  void start(const std::vector<std::pair<std::string, std::string>>& facts);
  void step(const progress& p, bool due);  // `due`: a log interval ends here
  void say(const std::string& line);       // a result: stdout
  void event(const std::string& line);     // stderr
  void failure(const std::string& line);   // stderr, also if quiet
  void note(const std::string& line);      // the log alone

 private:
  void clear_live();
  void end_repeats();
  void say_event(const std::string& line);
  void put(std::FILE* to, const std::string& text);

  void log(const std::string& text);

  console_settings settings_;
  std::FILE* log_ = nullptr;
  bool live_ = false;
  std::string last_event_;
  std::uint64_t repeats_ = 0, said_repeats_ = 0;
};

}  // namespace troupe::actors
