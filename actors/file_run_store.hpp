// The run directory behind the actors' run_store: the chain of plans, the address, checkpoints.
// Everything that touches a file runs on one helper thread, in order; answers come back through the
// loop.
#pragma once

#include <functional>
#include <optional>

#include "actors/helper_thread.hpp"
#include "actors/loop_post.hpp"
#include "actors/plan_chain.hpp"
#include "actors/run_directory.hpp"
#include "actors/run_store.hpp"
#include "config/base/clock.hpp"
#include "model/checkpoint/shared_save.hpp"
#include "model/layout.hpp"

namespace troupe::actors {

struct file_store_settings {
  starting_point start;     // chosen before the loop runs
  std::string checkpoints;  // the directory of all of them
  // Where status and metrics are served; opens the port. On the helper thread, before the address
  // is announced.
  std::function<std::uint16_t()> http_port;
  std::chrono::milliseconds ask_again = std::chrono::milliseconds(50);  // for the convener
  std::chrono::milliseconds probe_patience = std::chrono::milliseconds(4000);
  // What stands in a checkpoint besides the tensors.
  std::function<checkpoint::facts(const save_facts&)> about;
};

class file_run_store final : public run_store {
 public:
  // All references outlive the object; it waits for what runs on `worker` only when that ends.
  file_run_store(file_system& files, const run_directory& directory,
                 const model::model_layout& layout, helper_thread& worker, post_function post,
                 file_store_settings settings);

  void ask_probe(std::uint64_t probe, answer<done> then) override;
  void answer_probe(std::uint64_t probe, const probed_member& me, answer<done> then) override;
  void judge_probe(std::uint64_t probe, const std::vector<probed_member>& members,
                   answer<done> then) override;
  void find_convener(answer<comm::address> then) override;
  void announce(const comm::address& here, generation plan, answer<done> then) override;
  void publish_plan(const protocol::plan& wanted, answer<protocol::plan> then) override;
  void publish_next(const protocol::plan& wanted, answer<protocol::plan> then) override;
  void newest_plan(answer<protocol::plan> then) override;
  void choose_start(answer<starting_point> then) override;
  void load(std::uint64_t step, const member_share& share, computation& into,
            answer<done> then) override;
  void begin_save(std::uint64_t step, answer<std::string> folder) override;
  void write_blocks(std::uint64_t step, const std::string& folder,
                    const std::vector<block_id>& blocks, computation& from,
                    answer<protocol::save_share> then) override;
  void finish_save(const std::string& folder, const save_facts& facts,
                   answer<saved_hashes> then) override;
  void abandon_save(std::uint64_t step, const std::string& folder) override;

 private:
  // Runs `work` on the helper thread and brings its result to the loop.
  template <class T>
  void ask(std::function<result<T>()> work, answer<T> then);
  result<plan_chain*> chain();
  status ask_probe_now(const std::string& probe);
  void judge_when_answered(const std::string& probe, const std::vector<probed_member>& members,
                           time_since_start until, answer<done> then);
  checkpoint::save_place place(std::uint64_t step, const std::string& attempt) const;
  result<saved_hashes> finish(const std::string& folder, const save_facts& facts);

  file_system& files_;
  const run_directory& directory_;
  const model::model_layout& layout_;
  helper_thread& worker_;
  loop_post post_;
  file_store_settings settings_;
  // Of the helper thread.
  std::string question_;  // what this member wrote as its probe of the directory
  std::optional<plan_chain> chain_;
  std::optional<checkpoint::manifest> there_;  // the step to be saved is there already
};

}  // namespace troupe::actors
