// Is the run directory fit to decide who goes on? Asked at every start and for every newcomer,
// because a chain of plans is only as good as the directory it stands in: two members with the same
// path may see two different disks, and some file systems let two create the same name.
//
// The coordinator writes a question into the directory. Each member must read it and answer through
// the directory, and on the way all of them race for a few names. A member whose answer does not
// appear cannot be coordinator (`store` of its plan entry). If two win a name, or see different
// winners, the directory is refused: two halves of the world could go on differently.
//
// No locks are tried and no times compared: what the chain does not use need not work. A race can
// only find what happens while it is run; a directory that passes is not proven good.
//
// The file calls may hang as long as the file system does; the deadline is the caller's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/file.hpp"
#include "config/base/ids.hpp"

namespace troupe::actors {

struct probed_member {
  member_id id;
  std::string identity;    // of its process, unique
  std::string name, host;  // for messages
};

// What a member met when it raced for a name.
struct race_result {
  bool told_won = false;  // the file system said that it made the name
  std::string holder;     // the identity read back; empty: the name could not be read
  friend bool operator==(const race_result&, const race_result&) = default;
};

struct probe_answer {
  std::string secret;  // as read from the question
  std::string identity;
  std::vector<race_result> races;
  friend bool operator==(const probe_answer&, const probe_answer&) = default;
};

struct probe_facts {
  std::string directory, secret;
  std::vector<probed_member> members;
  // By member: its answer, or why there is none.
  std::vector<std::optional<probe_answer>> answers;
  std::vector<std::string> why_none;
  std::vector<std::string> holders;  // of each race, as the coordinator reads them at the end
};

struct probe_verdict {
  std::vector<bool> sees_it;          // by member
  std::vector<std::string> warnings;  // one for each member that does not, with its name and cause
  std::optional<error> refused;       // exit code 73: the directory must not be used
};
probe_verdict judge(const probe_facts& facts);

// --- the coordinator's side; `probe` names this probe: a new word each time ---

status ask_probe(file_system& files, const std::string& run_directory, const std::string& probe,
                 const std::string& secret);
// What has been answered so far; call again until all have, or time is up.
probe_facts read_probe(file_system& files, const std::string& run_directory,
                       const std::string& probe, const std::string& secret,
                       std::vector<probed_member> members);
status end_probe(file_system& files, const std::string& run_directory, const std::string& probe);
// What starts that ended in the middle have left.
status remove_probes(file_system& files, const std::string& run_directory);

// --- a member's side ---

// Fails where the question cannot be seen; the message names the directory.
status answer_probe(file_system& files, const std::string& run_directory, const std::string& probe,
                    const probed_member& me);

}  // namespace troupe::actors
