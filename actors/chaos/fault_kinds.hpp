// The kinds of faults, and what each of them is: whether it strikes members or links, whether it
// lasts, which modes can do it, which parameters it takes. One table, from which the scenario's
// checks, the messages and the lists in the documentation follow.
//
// A mode that cannot do a kind is an error before the start and never a fault that silently does
// not happen: a run that passed without its fault would be worse than none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors::chaos {

enum class fault_kind : std::uint8_t {
  kill,       // the process is gone at once
  exit,       // the process ends by itself with a code
  throws,     // an exception in an actor; in files: "throw"
  stop,       // does not run, goes on later: a zombie if it was given up meanwhile
  cut,        // links carry nothing
  drop,       // messages are lost
  delay,      // messages are late
  dup,        // messages come twice
  reorder,    // messages overtake each other
  replay,     // a message of an earlier plan comes again
  corrupt,    // bits change on the way
  hang,       // the compute thread stands still, signs of life go on
  join,       // one more member comes
  drain,      // a member is told to leave in order
  notice,     // a signal announces the end
  cpu_steal,  // busy neighbours; "cpu-steal"
  nan,        // a gradient is not a number
};

enum class run_mode : std::uint8_t { sim, process, cluster };

enum class strikes : std::uint8_t { members, links, newcomer };

enum class param_type : std::uint8_t { whole, number, text, boolean, duration };

struct param_row {
  std::string_view name;
  param_type type;
};

struct kind_row {
  fault_kind kind;
  std::string_view name;
  strikes what;
  bool lasts;                      // it has an end
  bool loses_member;               // whoever it strikes may be given up
  std::string_view process_lacks;  // "": process mode can do it; else what is missing there
  std::vector<param_row> params;
};

std::span<const kind_row> kind_table();
const kind_row& row_of(fault_kind kind);
std::string_view name_of(fault_kind kind);
std::optional<fault_kind> kind_named(std::string_view name);

// Can a worker do it to itself when it is told to?
bool takes_orders(fault_kind kind);

std::string_view name_of(run_mode mode);

// Why the mode cannot do the kind, in words; nothing: it can.
std::optional<std::string> cannot_do(run_mode mode, fault_kind kind);

}  // namespace troupe::actors::chaos
