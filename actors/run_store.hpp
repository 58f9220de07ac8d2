// What the actors of a member ask of the run directory. Files may hang, so every call comes back at
// once and is answered later on the loop's thread; the real one has a helper thread
// (file_run_store), the simulated one answers in virtual time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/computation.hpp"
#include "actors/directory_probe.hpp"
#include "actors/protocol/messages.hpp"
#include "comm/transport.hpp"
#include "config/base/error.hpp"

namespace troupe::actors {

// From which state a run goes on.
struct starting_point {
  std::uint64_t step = 0;     // finished steps; 0: from the seed
  std::uint64_t updates = 0;  // AdamW updates in them
  std::uint64_t tokens = 0;   // counted target tokens in them
  bool finished = false;      // nothing is left to do
};

// What a coordinator knows when a save is complete.
struct save_facts {
  std::uint64_t step = 0, updates = 0, tokens = 0;
  protocol::decision_record record;
  std::vector<protocol::saved_block> blocks;  // all, in model order
};
struct saved_hashes {
  hash128 weights, state;
  std::string folder;       // "": nothing was kept
  std::uint64_t bytes = 0;  // all files together
  bool was_there = false;   // an earlier save has the same bits
};

class run_store {
 public:
  template <class T>
  using answer = std::function<void(result<T>)>;

  virtual ~run_store() = default;

  // --- is the directory fit to hold the chain? (directory_probe) ---
  // By the member that convenes, before it announces itself; `probe` is a new number each time.
  virtual void ask_probe(std::uint64_t probe, answer<done> then) = 0;
  virtual void answer_probe(std::uint64_t probe, const probed_member& me, answer<done> then) = 0;
  // Waits a while for the answers. Fails where the directory must not be used, and where one of
  // these members, the first of whom asks, does not see it.
  virtual void judge_probe(std::uint64_t probe, const std::vector<probed_member>& members,
                           answer<done> then) = 0;

  // --- the chain of plans ---
  // Where the member that convenes the world listens; asked again and again until it is there.
  virtual void find_convener(answer<comm::address> then) = 0;
  virtual void announce(const comm::address& here, generation plan, answer<done> then) = 0;
  // Fills in number and parent, links the plan into the chain and reads back what stands there.
  virtual void publish_plan(const protocol::plan& wanted, answer<protocol::plan> then) = 0;

  // Links the plan as it is into the chain, after the one that it names. Answers with the plan that
  // stands there afterwards under this or a later number, which may be another one.
  virtual void publish_next(const protocol::plan& wanted, answer<protocol::plan> then) = 0;
  // The plan with the highest number that stands in the chain. There is one.
  virtual void newest_plan(answer<protocol::plan> then) = 0;

  // --- state ---
  virtual void choose_start(answer<starting_point> then) = 0;
  // The share's state at this step into the computation's memory; step 0 is not asked for.
  virtual void load(std::uint64_t step, const member_share& share, computation& into,
                    answer<done> then) = 0;

  // --- saving: begin and finish by the coordinator, write by every primary ---
  virtual void begin_save(std::uint64_t step, answer<std::string> folder) = 0;
  virtual void write_blocks(std::uint64_t step, const std::string& folder,
                            const std::vector<block_id>& blocks, computation& from,
                            answer<protocol::save_share> then) = 0;
  virtual void finish_save(const std::string& folder, const save_facts& facts,
                           answer<saved_hashes> then) = 0;
  // A save that failed: what is written of it goes away.
  virtual void abandon_save(std::uint64_t step, const std::string& folder) = 0;
};

}  // namespace troupe::actors
