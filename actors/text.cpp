#include "actors/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace troupe::actors {

std::string short_count(double value) {
  static constexpr std::array<const char*, 5> units = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}{}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, units[unit]);
}

std::string short_bytes(double bytes) {
  static constexpr std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1023.5 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 99.95 ? 0 : 1, units[unit]);
}

std::string short_duration(std::chrono::duration<double> d) {
  const double seconds = std::max(0.0, d.count());
  if (seconds < 9.95) return fmt::format("{:.1f}s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  return fmt::format("{}d{:02}h", whole / 86400, whole / 3600 % 24);
}

std::string table(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::size_t width = 0;
  for (const auto& [name, value] : rows) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : rows) text += fmt::format("  {:<{}}  {}\n", name, width, value);
  return text;
}

std::string progress_line(const progress& p) {
  const std::size_t width = fmt::formatted_size("{}", p.steps);
  std::string line =
      fmt::format("step {:>{}}/{}  loss {:.4f}  grad_norm {:.3f}  lr {:.2e}  tok/s {}", p.step,
                  width, p.steps, p.loss, p.grad_norm, p.lr, short_count(p.tokens_per_second));
  if (p.utilization >= 0) line += fmt::format("  mfu {:.1f}%", 100 * p.utilization);
  line += fmt::format("  world {}  gen {}  eta {}", p.world, p.generation, short_duration(p.eta));
  if (p.skipped) line += "  skipped";
  return line;
}

}  // namespace troupe::actors
