#include "actors/run_address.hpp"

#include <limits>

#include "config/base/json.hpp"

namespace troupe::actors {
namespace {

constexpr std::uint64_t small_file = 1 << 16;

std::string path_in(const std::string& run_directory) {
  return join_path(run_directory, "address");
}

std::uint16_t port_of(json_fields& fields, std::string_view name) {
  const std::uint64_t port = fields.u64(name);
  if (port > std::numeric_limits<std::uint16_t>::max()) fields.fail(name, "is no port");
  return static_cast<std::uint16_t>(port);
}

result<run_address> parse(std::string_view text, const std::string& path) {
  result<nlohmann::json> parsed = parse_json(text, path);
  if (!parsed) return parsed.failure();
  json_fields fields(*parsed, path);
  run_address a;
  if (fields.u64("format") != 1 && !fields.failed()) fields.fail("format", "is not 1");
  a.run_id = fields.text("run");
  const std::uint64_t plan = fields.u64("plan");
  if (plan > std::numeric_limits<std::uint32_t>::max()) fields.fail("plan", "is too large");
  a.plan = generation(static_cast<std::uint32_t>(plan));
  a.host = fields.text("host");
  a.port = port_of(fields, "port");
  a.http_port = port_of(fields, "http_port");
  if (!fields.failed() && a.host.empty()) fields.fail("host", "is empty");
  if (!fields.failed() && a.port == 0) fields.fail("port", "is no port");
  if (status whole = fields.finish(); !whole) return whole.failure();
  return a;
}

}  // namespace

address_kind kind_of(const run_address& address, const std::string& run_id, generation head) {
  if (address.run_id != run_id) return address_kind::of_another_run;
  return address.plan < head ? address_kind::stale : address_kind::current;
}

result<bool> publish_address(file_system& files, const std::string& run_directory,
                             const run_address& address) {
  // A damaged or foreign file is in nobody's way.
  const result<std::optional<run_address>> stands = read_address(files, run_directory);
  if (stands && *stands && (*stands)->run_id == address.run_id && address.plan < (*stands)->plan) {
    return false;
  }
  json_page page;
  page.u64("format", 1)
      .text("run", address.run_id)
      .u64("plan", address.plan.value)
      .text("host", address.host)
      .u64("port", address.port)
      .u64("http_port", address.http_port);
  if (status s = replace(files, path_in(run_directory), page.finish()); !s) return s.failure();
  return true;
}

result<std::optional<run_address>> read_address(file_system& files,
                                                const std::string& run_directory) {
  const std::string path = path_in(run_directory);
  result<bool> there = files.exists(path);
  if (!there) return there.failure();
  if (!*there) return std::optional<run_address>();
  result<std::string> text = read_file(files, path, small_file);
  if (!text) return text.failure();
  result<run_address> parsed = parse(*text, path);
  if (!parsed) {
    return error{exit_code::cannot_use,
                 parsed.failure().message +
                     "; the file is damaged: the coordinator writes it again when it changes"};
  }
  return std::optional(std::move(*parsed));
}

}  // namespace troupe::actors
