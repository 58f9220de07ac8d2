// What this program is, in one line and in detail.
#pragma once

#include <string>

namespace troupe::actors {

std::string version_number();   // "0.1.0"
std::string version_commit();   // "1a2b3c4"
std::string version_text();     // "0.1.0 (1a2b3c4)"
std::string version_details();  // version, commit, compiler, backends: what --version prints

}  // namespace troupe::actors
