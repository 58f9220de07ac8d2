// What happened on the way from one plan to the next, as a picture: a Chrome trace
// (chrome://tracing, Perfetto) of the control plane, from the last sign of life of whoever was lost
// to the first step that the new plan has committed. It is what the new plan's coordinator knows,
// by its clock; what the others did in between shows in when they answered.
//
// One row holds the phases end to end, since each begins when the one before is over; below it each
// member has a row with what was heard of it. Pure: marks in, text out.
//
// Not chosen: a trace of all messages, always on. Its buffer would belong to the step path, and the
// question that people ask is where the 200 ms went.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

struct change_trace {
  struct mark {
    std::string what;  // "promised"
    std::string who;   // name of a member
    double mono = 0;   // [s since the start]
  };
  struct lost_member {
    std::string name, how;
    double heard = 0, noticed = 0;  // [s since the start]; 0: not known
  };

  std::string run;
  std::uint64_t number = 0;  // of the plan
  std::string reason;
  std::vector<lost_member> lost;
  std::vector<mark> marks;  // in any order
};

std::string to_json(const change_trace& t);
// "recovery-7.json", or "change-7.json" where nobody was lost.
std::string file_of(const change_trace& t);
// Which of these files are to be removed, so that at most `most` are left: the oldest.
std::vector<std::string> surplus_traces(std::vector<std::string> names, std::size_t most);

}  // namespace troupe::actors
