// The injector's desk: which orders were given to whom, and what was proven of them. An order goes
// to one life of one member; what is armed is given ahead to whoever it concerns in the present
// plan, and taken back and given anew when that has changed.
//
// Between taking back and the worker's looking it may still strike; so what was taken back is
// listened to for as long as its worker may speak.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/chaos/happenings.hpp"
#include "actors/chaos/order_files.hpp"

namespace troupe::actors::chaos {

class order_desk {
 public:
  // `folder`: where workers take orders; "": they take none.
  order_desk(std::string folder, std::uint64_t seed) : folder_(std::move(folder)), seed_(seed) {}

  // Who stands in the newest plan: names and lives, for whom orders are.
  void know(const protocol::plan& plan) { plan_ = plan; }

  // The numbers of the orders that this took: one for each member, of links one for each end that
  // sends.
  std::vector<std::uint64_t> give(const injection& what, const chosen& whom,
                                  const std::optional<order_moment>& when,
                                  std::optional<duration> lasts);
  void end(const std::vector<std::uint64_t>& orders);

  // All that workers are to do at points that are still to come. What was armed and is not in it
  // any more is taken back.
  void arm(const std::vector<armed_fault>& wanted);
  // What was armed and has struck since, each once, for the schedule.
  std::vector<armed_struck> take_struck();
  struct shown_order {
    std::uint64_t id;
    std::string name;
    proof first;
  };
  std::vector<shown_order> shown(const occurrence& which) const;

  void take_proofs();
  // In words, if there is enough of it; else "".
  std::string proven(const std::vector<std::uint64_t>& orders, fault_kind kind) const;
  // Why one of them cannot be done; else "".
  std::string refused(const std::vector<std::uint64_t>& orders) const;

 private:
  struct given_order {  // to one life
    std::string name;
    incarnation life;
    std::vector<proof> proofs;
    bool shown = false;  // of an armed one: that it struck was told
  };
  struct armed {
    armed_fault what;
    std::vector<std::uint64_t> orders;
    std::vector<std::pair<std::string, incarnation>> lives;
  };
  order_outbox* outbox_of(const std::string& name, incarnation life);
  void tell(std::uint64_t id, bool ends);
  std::uint64_t give_one(const protocol::plan_member& to, worker_order o);

  std::string folder_;
  std::uint64_t seed_;
  protocol::plan plan_;
  std::map<std::pair<std::string, incarnation>, order_outbox> outboxes_;
  std::map<std::uint64_t, given_order> given_;
  std::vector<armed> armed_, withdrawn_;
};

}  // namespace troupe::actors::chaos
