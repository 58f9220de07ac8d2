// Rows of the option table about the world that trains: who may be in it, when a silent member is
// given up, how members reach one another, and what is said on the way. Nothing here changes the
// bits of a run: that is what the world is for.
#include "config/option_rows.hpp"

namespace troupe::config {
namespace {

constexpr std::array<std::string_view, 2> spare_policies{"backups", "none"};
constexpr std::array<std::string_view, 2> transports{"auto", "ucx"};
constexpr std::array<std::string_view, 1> later_transports{"nccl"};
constexpr bounds milliseconds{1, 3600000};
constexpr bounds seconds{0, 1e9};
constexpr bounds some_seconds{0, 1e9, true};

}  // namespace

std::vector<option> world_options() {
  return {
      // [elastic]
      integer("elastic.min_members", "1", {1, 65535}, "members", bits::no,
              "With fewer members that compute the run waits for more.",
              MEMBER(elastic.min_members)),
      integer("elastic.max_members", "0", {0, 65535}, "members", bits::no,
              "More members than this are turned away; 0 = no limit.", MEMBER(elastic.max_members)),
      number("elastic.wait_timeout_seconds", "600", seconds, "seconds", bits::no,
             "So long the run waits with fewer than min_members, then it ends with exit code 69.",
             MEMBER(elastic.wait_timeout_seconds)),
      number("elastic.join_window_seconds", "2", seconds, "seconds", bits::no,
             "Members that arrive within this time enter together, at the price of one new plan.",
             MEMBER(elastic.join_window_seconds)),
      choice("elastic.spare_policy", "backups", spare_policies, {}, bits::no,
             "What members do that have no share of the batch: backups = keep copies of the state "
             "and take over at once; none = nothing until they are needed.",
             MEMBER(elastic.spare_policy)),
      of_member(text("elastic.domain", "", bits::no,
                     "Name of what is lost together with this member, such as a rack; copies of a "
                     "block are kept in different domains. The host's name if not given.",
                     MEMBER(elastic.domain))),

      // [fault_tolerance]
      integer("fault_tolerance.backups", "1", {0, 16}, "copies", bits::no,
              "Copies of each block of the state besides the one that is trained: so many members "
              "may be lost at the same moment without going back to a checkpoint.",
              MEMBER(fault_tolerance.backups)),
      integer("fault_tolerance.heartbeat_ms", "100", milliseconds, "ms", bits::no,
              "Each member says so often that it lives.", MEMBER(fault_tolerance.heartbeat_ms)),
      integer("fault_tolerance.suspect_ms", "1000", milliseconds, "ms", bits::no,
              "A member silent for so long is asked whether it lives; longer than heartbeat_ms.",
              MEMBER(fault_tolerance.suspect_ms)),
      integer("fault_tolerance.evict_ms", "3000", milliseconds, "ms", bits::no,
              "A member silent for so long is given up; at least suspect_ms.",
              MEMBER(fault_tolerance.evict_ms)),
      number("fault_tolerance.stall_seconds", "120", some_seconds, "seconds", bits::no,
             "A member that lives but gets no further inside one phase of a step for so long is "
             "given up.",
             MEMBER(fault_tolerance.stall_seconds)),
      number("fault_tolerance.drain_grace_seconds", "25", seconds, "seconds", bits::no,
             "So long a worker has to hand over and end, once the launcher has told it to or "
             "another one has left in order; then it is killed.",
             MEMBER(fault_tolerance.drain_grace_seconds)),
      integer("fault_tolerance.max_restarts", "10", {-1, 1000000}, "starts", bits::no,
              "So often within restart_window_seconds the launcher starts the process of a worker "
              "again that was lost; 0 = never, -1 = without limit.",
              MEMBER(fault_tolerance.max_restarts)),
      number("fault_tolerance.restart_window_seconds", "600", some_seconds, "seconds", bits::no,
             "The time in which max_restarts counts; restarts longer ago are forgotten.",
             MEMBER(fault_tolerance.restart_window_seconds)),

      // [comm]
      of_member(choice("comm.transport", "auto", transports, later_transports, bits::no,
                       "What carries messages and tensors; auto means ucx.",
                       MEMBER(comm.transport))),
      of_member(required(text("comm.listen", "127.0.0.1:0", bits::no,
                              "HOST:PORT where this member can be reached; port 0 = any free one. "
                              "Loopback by default: another machine needs an address of its own.",
                              MEMBER(comm.listen)))),
      of_member(text("comm.advertise", "", bits::no,
                     "HOST or HOST:PORT that the others are told, where that is not comm.listen "
                     "(behind a translated address).",
                     MEMBER(comm.advertise))),
      of_member(number("comm.handshake_seconds", "5", some_seconds, "seconds", bits::no,
                       "A connection that has not shown the run's secret by then is closed.",
                       MEMBER(comm.handshake_seconds))),
      of_member(number("comm.init_timeout_seconds", "300", some_seconds, "seconds", bits::no,
                       "So long a member waits for an address in the run directory that answers.",
                       MEMBER(comm.init_timeout_seconds))),
      of_member(text("comm.secret_file", "", bits::no,
                     "File with the run's secret; RUN_DIR/secret if not given.",
                     MEMBER(comm.secret_file))),
      of_member(text("comm.interfaces", "", bits::no,
                     "Network interfaces that UCX may use, separated by commas, such as "
                     "mlx5_0:1,eth0; UCX_NET_DEVICES or UCX's own choice if not given.",
                     MEMBER(comm.interfaces))),

      // [metrics]
      integer("metrics.log_freq", "10", long_count, "updates", bits::no,
              "One line every so many steps; the first and the last always.",
              MEMBER(metrics.log_freq)),
      boolean("metrics.disable_color_printing", "false", bits::no,
              "No colours even on a terminal (NO_COLOR does the same).",
              MEMBER(metrics.disable_color_printing)),
      number("metrics.peak_flops", "0", not_negative, "FLOP/s per device", bits::no,
             "Peak that the utilization is measured against; 0 = measured.",
             MEMBER(metrics.peak_flops)),
      of_member(
          text("metrics.prometheus_listen", "127.0.0.1:0", bits::no,
               "HOST:PORT where metrics and status are served over HTTP; port 0 = any free one, "
               "printed and written to the run directory; \"\" = off.",
               MEMBER(metrics.prometheus_listen))),
  };
}

}  // namespace troupe::config
