#include "actors/cli/bench_transport.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <vector>

#include "actors/cli/bench_echo.hpp"
#include "actors/cli/command_line.hpp"
#include "actors/text.hpp"
#include "config/base/json.hpp"

extern char** environ;

namespace troupe::actors::cli {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// The other process: says where it listens and answers until we hang up.
int answer(std::ostream& out, std::ostream& err) {
  auto own = bench_process::open();
  if (!own) return fail(own.failure(), err);
  out << comm::to_text((*own)->transport().control().local_address()) << std::endl;
  while (!(*own)->closed) (*own)->turn(1s);
  return 0;
}

// The program once more, as the one who answers; its first line is its address.
class other_process {
 public:
  result<comm::address> start() {
    std::array<int, 2> from{};
    if (::pipe(from.data()) != 0) return error{exit_code::io, "there is no pipe left"};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    posix_spawn_file_actions_addclose(&actions, from[0]);
    std::array<std::string, 4> words = {"troupe", "bench", "transport", "--answer"};
    std::array<char*, 5> arguments = {words[0].data(), words[1].data(), words[2].data(),
                                      words[3].data(), nullptr};
    const int started =
        ::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(from[1]);
    std::string line;
    for (char c = 0; started == 0 && ::read(from[0], &c, 1) == 1 && c != '\n';) line += c;
    ::close(from[0]);
    if (started != 0) pid_ = -1;
    return comm::parse_address(line);
  }
  ~other_process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
};

// From actor to actor and back; the median [us].
double round_trip(bench_process& own, std::size_t size, int rounds) {
  std::vector<double> times;
  const comm::bytes frame(size, static_cast<std::byte>('q'));
  for (int i = 0; i < rounds + rounds / 10 && !own.closed; ++i) {
    comm::bytes ping = frame;
    ping[0] = static_cast<std::byte>('p');
    const auto start = clock::now();
    own.news.clear();
    own.transport().control().send(own.link, std::move(ping));
    while (own.news.empty() && !own.closed) own.turn(1s);
    if (i >= rounds / 10) times.push_back(1e6 * seconds_since(start));
  }
  return median(std::move(times));
}

// Bulk messages of 4 MiB, several on the way; the median over batches [GB/s].
double bulk_rate(bench_process& own, int batches) {
  const std::vector<std::byte> payload(bench_bulk_bytes, std::byte{1});
  std::vector<double> rates;
  for (int i = 0; i < batches + 2 && !own.closed; ++i) {
    own.news.clear();
    const auto start = clock::now();
    for (std::uint64_t n = 0; n < bench_batch; ++n) own.lane->send(member_id{1}, {}, payload, n);
    while (own.news.empty() && !own.closed) own.turn(1s);
    if (i >= 2)
      rates.push_back(static_cast<double>(bench_batch * bench_bulk_bytes) / seconds_since(start) /
                      1e9);
  }
  return median(std::move(rates));
}

bool open_bulk(bench_process& own) {
  if (!own.open_lane()) return false;
  comm::bytes ask{static_cast<std::byte>('b')};
  ask.insert(ask.end(), own.lane->local_address().begin(), own.lane->local_address().end());
  own.news.clear();
  own.transport().control().send(own.link, std::move(ask));
  while (own.news.empty() && !own.closed) own.turn(1s);
  return !own.closed && static_cast<bool>(own.lane->connect(
                            member_id{1}, comm::bytes_view(own.news.front().content).subspan(1)));
}

// The share of a core [%] that a process takes that only waits.
double idle_percent(bench_process& own) {
  const auto spent = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  };
  const double before = spent();
  const auto start = clock::now();
  while (seconds_since(start) < 2) own.turn(100ms);
  return 100 * (spent() - before) / seconds_since(start);
}

// One number of ucx_perftest's last line; 0 without the program.
double perftest(const std::string& transports, const std::string& test, std::size_t size,
                int rounds, bool error_handling, std::size_t column) {
  const int port = 20000 + static_cast<int>(::getpid() % 10000);
  const std::string common =
      fmt::format("UCX_TLS='{}' timeout 60 ucx_perftest -p {}", transports, port);
  const std::string command = fmt::format(
      "{} >/dev/null 2>&1 & sleep 0.5; {} -t {} -s {} -n {} -w {} -f {} 127.0.0.1 2>/dev/null | "
      "tail -1; wait",
      common, common, test, size, rounds, rounds / 10, error_handling ? "-e" : "");
  FILE* program = ::popen(command.c_str(), "r");
  if (program == nullptr) return 0;
  std::array<char, 512> line{};
  const bool any = std::fgets(line.data(), static_cast<int>(line.size()), program) != nullptr;
  ::pclose(program);
  std::istringstream words(any ? line.data() : "");
  std::string word;
  for (std::size_t i = 0; i <= column; ++i) {
    if (!(words >> word)) return 0;
  }
  double value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

struct yardstick {
  double rtt_us_64 = 0, rtt_us_4096 = 0, bulk_gb_per_second = 0;
};

yardstick measure_ucx() {
  constexpr std::size_t median_column = 1, overall_rate_column = 5;
  constexpr double mib = 1048576;
  yardstick ucx;
  // It reports one way.
  ucx.rtt_us_64 = 2 * perftest("tcp", "ucp_am_lat", 64, 3000, true, median_column);
  ucx.rtt_us_4096 = 2 * perftest("tcp", "ucp_am_lat", 4096, 3000, true, median_column);
  ucx.bulk_gb_per_second =
      perftest("^cma", "ucp_am_bw", bench_bulk_bytes, 100, false, overall_rate_column) * mib / 1e9;
  return ucx;
}

}  // namespace

int bench_transport(arguments args, std::ostream& out, std::ostream& err) {
  command_line line("bench transport",
                    "Measures messages and bulk transfers between two processes of this machine.",
                    "  troupe bench transport\n"
                    "  troupe bench transport --json\n");
  bool json = false, as_other = false;
  line.app().add_flag("--json", json, "one JSON object instead of text");
  line.app().add_flag("--answer", as_other, "be the other process")->group("");
  if (const auto code = line.parse(args, out, err)) return *code;
  if (as_other) return answer(out, err);

  const yardstick before = measure_ucx();
  other_process other;
  const result<comm::address> there = other.start();
  if (!there) return fail(there.failure(), err);
  result<std::unique_ptr<bench_process>> opened = bench_process::open();
  if (!opened) return fail(opened.failure(), err);
  bench_process& own = **opened;
  own.transport().control().connect(*there);
  while (!own.opened && !own.closed) own.turn(1s);
  const double rtt_64 = round_trip(own, 64, 2000), rtt_4096 = round_trip(own, 4096, 2000);
  const double idle = idle_percent(own);
  const double bulk = open_bulk(own) ? bulk_rate(own, 9) : 0;
  if (own.closed) return fail({exit_code::io, "the other process has ended too early"}, err);
  own.lane.reset();
  const yardstick after = measure_ucx();

  const double ucx_64 = std::min(before.rtt_us_64, after.rtt_us_64);
  const double ucx_4096 = std::min(before.rtt_us_4096, after.rtt_us_4096);
  const double ucx_bulk = std::max(before.bulk_gb_per_second, after.bulk_gb_per_second);
  const bool steady =
      std::abs(before.bulk_gb_per_second - after.bulk_gb_per_second) <= 0.1 * ucx_bulk &&
      std::abs(before.rtt_us_64 - after.rtt_us_64) <= 0.1 * ucx_64;
  if (json) {
    json_page page;
    page.number("rtt_us_64", rtt_64)
        .number("rtt_us_4096", rtt_4096)
        .number("bulk_gb_per_second", bulk)
        .number("ucx_rtt_us_64", ucx_64)
        .number("ucx_rtt_us_4096", ucx_4096)
        .number("ucx_bulk_gb_per_second", ucx_bulk)
        .number("idle_cpu_percent", idle)
        .boolean("steady", steady);
    out << page.finish();
    return 0;
  }
  const auto beside = [](double ucx, const char* unit) {
    return ucx > 0 ? fmt::format("; ucx_perftest {:.1f} {}", ucx, unit)
                   : std::string("; ucx_perftest is not installed (package ucx-utils)");
  };
  out << table({{"64 bytes, there and back",
                 fmt::format("{:.1f} us from actor to actor{}", rtt_64, beside(ucx_64, "us"))},
                {"4096 bytes", fmt::format("{:.1f} us{}", rtt_4096, beside(ucx_4096, "us"))},
                {"bulk, 4 MiB", fmt::format("{:.2f} GB/s{}", bulk, beside(ucx_bulk, "GB/s"))},
                {"waiting", fmt::format("{:.2f} % of a core{}", idle,
                                        steady ? "" : "; not steady: measure again")}});
  return 0;
}

}  // namespace troupe::actors::cli
