// The recorder of a member that does not keep the records: nothing is told there but by mistake of
// the plan, and visitors and losses, which the one who keeps them hears of by itself.
#pragma once

#include "actors/loop_post.hpp"
#include "actors/recorder.hpp"

namespace troupe::actors {

class no_records final : public recorder {
 public:
  explicit no_records(post_function post) : post_(std::move(post)) {}
  void started(const protocol::plan&, const starting_point&) override {}
  void goes_on(const protocol::plan&, const starting_point&, const world_change&) override {}
  void committed(const committed_step&, answer then) override { answer_now(std::move(then)); }
  void validated(std::uint64_t, double, double) override {}
  void asked_to_stop(std::uint64_t, const std::string&) override {}
  void save_begins(std::uint64_t) override {}
  void saved(std::uint64_t, const saved_hashes&) override {}
  void not_finite(std::uint64_t, const std::string&) override {}
  void save_failed(std::uint64_t, const error&) override {}
  void member_lost(member_id, const std::string&) override {}
  void visitor_refused(const std::string&) override {}
  void finished(std::uint64_t, exit_code, const std::string&, answer then) override {
    answer_now(std::move(then));
  }
  void heard_of(member_id, const protocol::heartbeat&) override {}

 private:
  void answer_now(answer then) {
    post_.to_loop()([then = std::move(then)] { then(done{}); });
  }
  loop_post post_;
};

}  // namespace troupe::actors
