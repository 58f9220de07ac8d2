// What is told about a run: the doorway between the coordinator, which knows, and the record files,
// the screen and the metrics, which need files and people's time. Every call comes back at once;
// things are written in the order in which they were told. The real one is record_writer, the
// simulated world keeps what it is told in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "actors/run_store.hpp"
#include "config/base/clock.hpp"
#include "config/base/error.hpp"

namespace troupe::actors {

struct committed_step {
  protocol::decision_record record;
  std::uint32_t world = 0;  // members that computed
  generation plan;
  std::map<member_id, protocol::step_facts> facts;
  time_since_start at{};  // by the clock of who says it; 0: not known
};

// How the world came from one plan to the next, as the coordinator of the next one knows it.
struct world_change {
  struct lost_member {
    std::string name;  // "worker-2"
    std::string how;   // it was noticed, in words
    // When it was noticed here, and heard of last; 0: not known.
    time_since_start noticed{}, heard{};
  };
  // Something that happened on the way from one plan to the next.
  struct mark {
    std::string what;  // "promised"
    std::string who;   // name of a member
    time_since_start when{};
  };
  std::vector<lost_member> lost;
  std::vector<std::string> joined, left;  // names
  bool step_redone = false;               // a step was under way that nobody had decided
  // By this process's clock: the first evidence of the loss or wish, and the last survivor's
  // promise.
  time_since_start noticed{}, unblocked{};
  std::vector<mark> marks;  // in their order, until the plan was adopted
};

class recorder {
 public:
  using answer = std::function<void(status)>;

  virtual ~recorder() = default;
  // Once, before anything else: who the world is and from where it goes on.
  virtual void started(const protocol::plan& p, const starting_point& from) = 0;
  // Instead, by whoever coordinates a later plan, also if the coordinator before was another
  // process. Steps that are told after it may be recorded already: equal lines are nothing new.
  virtual void goes_on(const protocol::plan& p, const starting_point& from,
                       const world_change& how) = 0;
  // Answered when the step's line is written.
  virtual void committed(const committed_step& step, answer then) = 0;
  virtual void validated(std::uint64_t step, double loss, double tokens) = 0;
  virtual void asked_to_stop(std::uint64_t step, const std::string& why) = 0;
  virtual void save_begins(std::uint64_t step) = 0;
  virtual void saved(std::uint64_t step, const saved_hashes& what) = 0;
  // Some parameter of the version that is saved is no finite number.
  virtual void not_finite(std::uint64_t step, const std::string& layer) = 0;
  virtual void save_failed(std::uint64_t step, const error& why) = 0;
  virtual void member_lost(member_id who, const std::string& how) = 0;
  // Somebody wanted to join who does not belong here; the run goes on as if nothing had been.
  virtual void visitor_refused(const std::string& why) = 0;
  // Something that keeps a change of plans waiting, in words.
  virtual void change_waits(const std::string& why) = 0;
  // More of what happened on the way, behind goes_on().
  virtual void marked(const world_change::mark& what) = 0;
  // No step is begun until more members are there, and then one is, after so many seconds.
  virtual void waits_for_members(const std::string& why) = 0;
  virtual void members_are_here(double seconds) = 0;
  // The last words; answered when everything is written.
  virtual void finished(std::uint64_t step, exit_code code, const std::string& why,
                        answer then) = 0;
  // What a member is doing; often, for status only.
  virtual void heard_of(member_id who, const protocol::heartbeat& what) = 0;
};

}  // namespace troupe::actors
