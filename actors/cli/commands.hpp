// The commands of the program. Each takes the words behind its name and returns an exit code
// (interface of sysexits.h); results go to `out`, messages to `err`.
#pragma once

#include <ostream>
#include <span>
#include <string>

namespace troupe::actors::cli {

using arguments = std::span<const std::string>;

int train_command(arguments args, std::ostream& out, std::ostream& err);
int worker_command(arguments args, std::ostream& out, std::ostream& err);
int status_command(arguments args, std::ostream& out, std::ostream& err);
int scale_command(arguments args, std::ostream& out, std::ostream& err);
int drain_command(arguments args, std::ostream& out, std::ostream& err);
int stop_command(arguments args, std::ostream& out, std::ostream& err);
int config_command(arguments args, std::ostream& out, std::ostream& err);
int data_command(arguments args, std::ostream& out, std::ostream& err);
int eval_command(arguments args, std::ostream& out, std::ostream& err);
int generate_command(arguments args, std::ostream& out, std::ostream& err);
int diff_command(arguments args, std::ostream& out, std::ostream& err);
int simulate_command(arguments args, std::ostream& out, std::ostream& err);
int chaos_command(arguments args, std::ostream& out, std::ostream& err);
int plan_command(arguments args, std::ostream& out, std::ostream& err);
int bench_scaling_command(arguments args, std::ostream& out, std::ostream& err);
int bench_command(arguments args, std::ostream& out, std::ostream& err);

}  // namespace troupe::actors::cli
