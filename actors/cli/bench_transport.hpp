// `troupe bench transport`: what a message from an actor to an actor of another process costs, what
// bulk transfers reach, and what a process that only waits costs, beside UCX's own measuring
// program in the same run.
#pragma once

#include "actors/cli/commands.hpp"

namespace troupe::actors::cli {

int bench_transport(arguments args, std::ostream& out, std::ostream& err);

}  // namespace troupe::actors::cli
