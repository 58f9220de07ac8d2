#include "actors/machine.hpp"

#include <dirent.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>

namespace troupe::actors {
namespace {

std::string content(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
}

std::uint64_t count_open_files() {
  DIR* open = opendir("/proc/self/fd");
  if (open == nullptr) return 0;
  std::uint64_t count = 0;
  while (const dirent* entry = readdir(open)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(open);
  return count - 1;  // the one that reads
}

// Field 22 of /proc/self/stat, in ticks since boot; the name in field 2 may hold anything, so
// counting begins behind its last bracket.
double start_of_this_process() {
  const std::string stat = content("/proc/self/stat");
  std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  std::istringstream lines(content("/proc/stat"));
  std::uint64_t boot = 0;
  for (std::string word; lines >> word;) {
    if (word == "btime") lines >> boot;
  }
  std::uint64_t ticks = 0;
  std::istringstream(field) >> ticks;
  return static_cast<double>(boot) +
         static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

int usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return std::max(1, CPU_COUNT(&cores));
}

process_facts facts_of_this_process() {
  static const double start = start_of_this_process();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  process_facts f;
  f.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  f.peak_bytes = peak_bytes_of_this_process();
  std::uint64_t pages = 0;
  std::istringstream(content("/proc/self/statm")) >> pages >> pages;
  f.resident_bytes = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  f.open_files = count_open_files();
  f.start_seconds = start;
  return f;
}

std::uint64_t peak_bytes_of_this_process() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace troupe::actors
