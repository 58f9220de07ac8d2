#include "comm/ucx_context.hpp"

#include <fmt/format.h>
#include <ucs/config/global_opts.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <vector>

namespace troupe::comm {
namespace {

std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (comma > 0) words.push_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return words;
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string all;
  for (std::string_view word : words) {
    if (!all.empty()) all += ',';
    all += word;
  }
  return all;
}

}  // namespace

void keep_ucx_quiet() {
  // Lost peers are reported by us, in our words; UCX would write a page about each.
  if (std::getenv("UCX_LOG_LEVEL") == nullptr) ucs_global_opts_set_value("LOG_LEVEL", "fatal");
}

error ucx_failure(std::string_view doing, ucs_status_t status) {
  return {exit_code::io, fmt::format("{}: {}", doing, ucs_status_string(status))};
}

result<ucx_transports> choose_transports(const std::optional<std::string>& asked) {
  std::string_view list = asked ? std::string_view(*asked) : std::string_view();
  if (list.empty() || list == "all") list = "^";
  const bool all_but = list.starts_with('^');
  if (all_but) list.remove_prefix(1);
  const std::vector<std::string_view> words = words_of(list);
  const auto has = [&](std::string_view word) { return std::ranges::count(words, word) > 0; };
  if (!all_but && has("cma")) {
    return error{exit_code::bad_config,
                 fmt::format("UCX_TLS={} asks for cma, with which the death of one process aborts "
                             "those that read its memory; take \"cma\" out of UCX_TLS, or unset it",
                             *asked)};
  }
  if (!all_but && has("all")) return choose_transports(std::nullopt);
  // UCX's words for all kinds of shared memory, CMA among them.
  const bool shared_memory = has("sm") || has("shm");
  std::vector<std::string_view> here, network;
  for (std::string_view name : {"posix", "sysv", "self"}) {
    const bool named = has(name) || (shared_memory && name != "self");
    if (named != all_but) here.push_back(name);
  }
  constexpr std::array local = {"posix", "sysv", "self", "sm", "shm", "xpmem", "knem", "cma"};
  std::ranges::copy_if(words, std::back_inserter(network),
                       [&](auto word) { return std::ranges::count(local, word) == 0; });
  if (all_but) {
    network.insert(network.end(), local.begin(), local.end());
    return ucx_transports{.this_host = joined(here), .network = "^" + joined(network)};
  }
  if (network.empty()) {
    return error{exit_code::bad_config,
                 fmt::format("UCX_TLS={} names no network, but only connections over a network "
                             "notice a lost peer; add \"tcp\" to UCX_TLS, or unset it",
                             *asked)};
  }
  return ucx_transports{.this_host = joined(here), .network = joined(network)};
}

result<ucx_transports> choose_transports() {
  const char* asked = std::getenv("UCX_TLS");
  return choose_transports(asked ? std::optional<std::string>(asked) : std::nullopt);
}

result<std::shared_ptr<ucx_context>> ucx_context::open(const std::string& transports,
                                                       const std::string& devices) {
  return make(transports, devices, UCP_FEATURE_AM, {});
}

result<std::shared_ptr<ucx_context>> ucx_context::open_for_control(const std::string& devices) {
  return make("tcp", devices, UCP_FEATURE_TAG, {{"RNDV_THRESH", "inf"}});
}

result<std::shared_ptr<ucx_context>> ucx_context::make(
    const std::string& transports, const std::string& devices, std::uint64_t features,
    std::vector<std::pair<const char*, std::string>> settings) {
  keep_ucx_quiet();
  ucp_config_t* raw = nullptr;
  if (const ucs_status_t read = ucp_config_read(nullptr, nullptr, &raw); read != UCS_OK)
    return ucx_failure("UCX's settings cannot be read (a UCX_... variable is wrong)", read);
  const std::unique_ptr<ucp_config_t, decltype(&ucp_config_release)> config(raw,
                                                                            ucp_config_release);
  settings.emplace_back("TLS", transports);
  if (!devices.empty()) settings.emplace_back("NET_DEVICES", devices);
  // Otherwise a connection to a host that is cut off would hold the whole process up.
  settings.emplace_back("TCP_CONN_NB", "y");
  for (const auto& [name, value] : settings) {
    if (const ucs_status_t set = ucp_config_modify(raw, name, value.c_str()); set != UCS_OK)
      return ucx_failure(fmt::format("UCX does not take {}={}", name, value), set);
  }

  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = features | UCP_FEATURE_WAKEUP;
  ucp_context_h context = nullptr;
  if (const ucs_status_t opened = ucp_init(&params, raw, &context); opened != UCS_OK) {
    return ucx_failure(
        fmt::format("UCX finds nothing to communicate with (UCX_TLS={}, network devices {})",
                    transports, devices.empty() ? "as found" : devices),
        opened);
  }
  return std::shared_ptr<ucx_context>(new ucx_context(context));
}

ucx_context::~ucx_context() { ucp_cleanup(context_); }

result<std::unique_ptr<ucx_worker>> ucx_worker::open(std::shared_ptr<ucx_context> context) {
  std::unique_ptr<ucx_worker> worker(new ucx_worker(std::move(context)));
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  if (const ucs_status_t made =
          ucp_worker_create(worker->context_->handle(), &params, &worker->worker_);
      made != UCS_OK) {
    worker->worker_ = nullptr;
    return ucx_failure("UCX cannot create a worker", made);
  }
  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  if (const ucs_status_t asked = ucp_worker_query(worker->worker_, &attributes); asked != UCS_OK)
    return ucx_failure("UCX does not tell the address of a worker", asked);
  const auto* begin = reinterpret_cast<const std::byte*>(attributes.address);
  worker->address_.assign(begin, begin + attributes.address_length);
  ucp_worker_release_address(worker->worker_, attributes.address);
  worker->max_header_bytes_ = attributes.max_am_header;
  if (const ucs_status_t got = ucp_worker_get_efd(worker->worker_, &worker->event_fd_);
      got != UCS_OK) {
    return ucx_failure("UCX gives no descriptor to wait for a worker", got);
  }
  return worker;
}

ucx_worker::~ucx_worker() {
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
}

bool ucx_worker::arm() { return ucp_worker_arm(worker_) == UCS_OK; }

status ucx_worker::receive(unsigned number, ucp_am_recv_callback_t to, void* argument) {
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
  handler.id = number;
  handler.cb = to;
  handler.arg = argument;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  if (const ucs_status_t set = ucp_worker_set_am_recv_handler(worker_, &handler); set != UCS_OK)
    return ucx_failure("UCX takes no receiver of active messages", set);
  return done{};
}

}  // namespace troupe::comm
