// A plan as text: readable JSON with a line for each member and each run of blocks, because people
// look into the run directory when something went wrong. The next plan names this text by its hash,
// so the text is what counts: it is never printed again from what was read.
#pragma once

#include <string>
#include <string_view>

#include "actors/protocol/plan.hpp"
#include "config/base/error.hpp"

namespace troupe::actors {

std::string print_plan(const protocol::plan& p);

// Strict: an unknown or missing field is an error, and so is a plan that could not have been made:
// members or blocks out of order or twice, a holder or coordinator that is no member, virtual ranks
// that are computed twice or by nobody. `where` is the file, for the message (exit code 65).
result<protocol::plan> parse_plan(std::string_view text, const std::string& where);

// xxh3-128 of the text, 32 hex digits.
std::string plan_hash(std::string_view text);

}  // namespace troupe::actors
