// The write-once chain of plans in the run directory: plans/plan-000000, plan-000001, ... A plan is
// valid only once it stands there, each names the one before by its hash, and a number is given
// once: so however many members want to go on differently, one of them wins, and all others read
// the winner and obey it.
//
// What the file system answers is not believed. A link that "failed" may have been made, and one
// that "was made" proves nothing on some network file systems; so the answer is ignored and the
// name is read back: it is mine if it holds my text. A plan that was read back is made durable
// before anybody acts on it, also if its writer died in between. Nothing here is ever deleted or
// written again; a run that is resumed goes on counting, and its start is marked by its verdict.
//
// Before the first plan of a start somebody has to gather the members: whoever holds the highest
// claim-0000, claim-0001, ... If that one is silent, the next number can be claimed.
//
// Every call may hang as long as the file system does: call from a thread that may wait.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/protocol/plan.hpp"
#include "config/base/error.hpp"
#include "config/base/file.hpp"

namespace troupe::actors {

struct chained_plan {
  protocol::plan plan;
  std::string hash;  // of its text
};

struct start_claim {
  std::uint32_t number = 0;
  generation before;  // the plan that its holder wants to make; once that exists, it is over
  std::string run_id;
  std::string identity;  // of the claiming process, unique
  std::string name, host, address;
  friend bool operator==(const start_claim&, const start_claim&) = default;
};

class plan_chain {
 public:
  // Reads and checks all plans that are there. Exit code 73: a plan of another run, a missing or
  // changed plan. Makes the folder and keeps some room for a full disk.
  static result<plan_chain> open(file_system& files, const std::string& run_directory,
                                 std::string run_id);

  const std::optional<chained_plan>& head() const { return head_; }
  generation next_number() const;
  std::string head_hash() const { return head_ ? head_->hash : ""; }

  // Looks for plans after the head that others published. True: the head is another one now.
  // A file system that shows them late only makes this late.
  result<bool> refresh();

  enum class outcome : std::uint8_t { mine, lost };
  // Publishes the next plan: its number and parent must follow the head. Afterwards the head is
  // the plan of that number, mine or the one I lost against. An error leaves it open whether the
  // plan stands there: call again with the same plan, or refresh().
  result<outcome> publish(const protocol::plan& next);

  // The claim with the highest number, if it is for a plan that does not exist yet.
  result<std::optional<start_claim>> present_claim();
  // Claims the next free number. What is returned is the present claim, mine or another's.
  result<start_claim> claim(start_claim mine);

  std::string path_of(generation number) const;

 private:
  plan_chain(file_system& files, std::string folder, std::string run_id)
      : files_(&files), folder_(std::move(folder)), run_id_(std::move(run_id)) {}
  std::string claim_path(std::uint32_t number) const;
  result<std::optional<chained_plan>> read(generation number) const;
  result<bool> read_on();
  result<std::optional<start_claim>> read_claim(std::uint32_t number) const;
  result<std::uint32_t> next_claim();
  status keep_room();

  file_system* files_;
  std::string folder_, run_id_;
  std::optional<chained_plan> head_;
};

// All plans of a run directory, checked like open(), for commands that only read.
result<std::vector<chained_plan>> read_plans(file_system& files, const std::string& run_directory,
                                             const std::string& run_id);

}  // namespace troupe::actors
