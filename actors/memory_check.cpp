#include "actors/memory_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <string>

#include "actors/text.hpp"

namespace troupe::actors {

std::uint64_t memory_needed(const model::description& d, const trainer_settings& settings) {
  const std::uint64_t parameters = model::parameter_count(model::make_layout(d));
  // Parameters, two moments, and as many gradient buffers as the tree keeps at once.
  const std::uint64_t copies = 3 + std::bit_width(settings.batch.virtual_ranks) + 1;
  const std::uint64_t rows =
      std::min(settings.batch.micro_batch, settings.batch.global_batch) * settings.seq_len;
  const std::uint64_t qkv = (d.heads + 2 * d.kv_heads) * d.head_dim;
  const std::uint64_t inner = (d.family == model::family::gpt2 ? 2 : 3) * d.inner;
  const std::uint64_t a_layer = 4 * d.width + qkv + d.heads * d.head_dim + inner;
  return 4 * (parameters * copies + rows * a_layer * d.layers);
}

std::uint64_t memory_available() {
  std::ifstream facts("/proc/meminfo");
  for (std::string name; facts >> name;) {
    std::uint64_t kib = 0;
    if (name == "MemAvailable:" && facts >> kib) return kib * 1024;
  }
  return 0;
}

status check_memory(const model::description& d, const trainer_settings& settings,
                    std::uint64_t available) {
  const std::uint64_t needed = memory_needed(d, settings);
  if (available == 0 || needed <= available) return done{};
  return error{
      exit_code::bad_config,
      fmt::format("this run needs at least {} of memory and {} are available; try a smaller "
                  "training.micro_batch_size, or a smaller model",
                  short_bytes(static_cast<double>(needed)),
                  short_bytes(static_cast<double>(available)))};
}

}  // namespace troupe::actors
