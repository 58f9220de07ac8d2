#include "actors/sim/invariants.hpp"
#include "tests/actors/sim/passing_transport.hpp"
#include "tests/actors/sim/wrong_device.hpp"

#include <gmock/gmock.h>

#include "actors/wire/codec.hpp"
#include "comm/checked_lane.hpp"
#include "comm/wire/envelope.hpp"

namespace troupe::actors::sim {
namespace {

// --- a world in which one member is wrong ---

world_settings small() {
  world_settings s;
  s.seed = 3;
  s.members = 4;
  s.steps = 6;
  return s;
}

constexpr member_id culprit{2};

// What was found first; "" if nothing was.
std::string found_in(const world_parts& parts, const world_settings& s = small()) {
  invariants checked(s.toy, s.steps);
  world w(s, checked, parts);
  checked.watch([&w](member_id id) -> const toy_computation& { return w.device(id.value); });
  w.run(std::chrono::seconds(60));
  if (w.trouble().empty()) checked.check_end(w.store());
  EXPECT_GT(checked.checks(), 0u);
  if (!checked.first()) return "";
  return checked.first()->invariant;
}

class updates_wrongly : public toy_computation {
  using toy_computation::toy_computation;
  void apply(block_id block, const protocol::decision_record& record, completion done) override {
    toy_computation::apply(block, record, [this, block, done](trouble t) {
      memory(block).second_moments[5] += 0.25f;
      done(t);
    });
  }
};

class updates_twice : public toy_computation {
  using toy_computation::toy_computation;
  void apply(block_id block, const protocol::decision_record& record, completion done) override {
    toy_computation::apply(block, record, [this, block, record, done](trouble) {
      toy_computation::apply(block, record, done);
    });
  }
};

class does_not_update : public toy_computation {
  using toy_computation::toy_computation;
  void apply(block_id block, const protocol::decision_record& record, completion done) override {
    hash_sum(block, record.step, [done](trouble t, hash128) { done(t); });
  }
};

class says_it_updated_before_it_did : public toy_computation {
  using toy_computation::toy_computation;
  void apply(block_id block, const protocol::decision_record& record, completion done) override {
    toy_computation::apply(block, record, [](trouble) {});
    done(nullptr);
  }
};

class updates_with_another_gradient : public toy_computation {
  using toy_computation::toy_computation;
  void apply(block_id block, const protocol::decision_record& record, completion done) override {
    sum(block, record.step)[7] ^= std::byte{1};
    toy_computation::apply(block, record, done);
  }
};

class forgets_after_acknowledging : public toy_computation {
  using toy_computation::toy_computation;
  void hash_sum(block_id block, std::uint64_t step, answer<hash128> done) override {
    toy_computation::hash_sum(block, step, [this, block, step, done](trouble t, hash128 hash) {
      std::ranges::fill(sum(block, step), std::byte{0});
      done(t, hash);
    });
  }
};

class does_not_wait_for_parameters : public toy_computation {
  using toy_computation::toy_computation;
  void start(std::uint64_t step, step_events events) override {
    toy_computation::start(step, std::move(events));
    for (std::uint32_t layer = 0; layer < shape().layers.size(); ++layer) {
      toy_computation::open(layer);
    }
  }
  void open(std::uint32_t) override {}
};

class adds_in_another_way : public toy_computation {
  using toy_computation::toy_computation;
  void reduce(block_id block, std::uint64_t step, answer<sum_facts> done) override {
    toy_computation::reduce(block, step, [this, block, step, done](trouble t, sum_facts facts) {
      toy_block changed = sum_in_memory(block, step);
      changed[0] += changed[1];
      const auto bytes = std::as_bytes(std::span(changed));
      std::ranges::copy(bytes, sum(block, step).begin());
      facts.hash = hash_of(changed);
      done(t, facts);
    });
  }
};

class saves_something_else : public toy_computation {
  using toy_computation::toy_computation;
  block_memory memory(block_id block) override {
    if (!holds(block)) return {};
    saved_ = state(block);
    saved_.parameters[0] += 1;
    return {saved_.parameters, saved_.first_moments, saved_.second_moments};
  }
  toy_state saved_;
};

TEST(invariants, hold_in_a_world_without_mistakes) { EXPECT_EQ(found_in(usual_parts()), ""); }

TEST(invariants, find_a_holder_that_updates_wrongly) {
  EXPECT_EQ(found_in(with_device<updates_wrongly>(culprit)), "S-1");
}
TEST(invariants, find_a_holder_that_updates_twice) {
  EXPECT_EQ(found_in(with_device<updates_twice>(culprit)), "S-2");
}
TEST(invariants, find_a_holder_that_says_it_updated_and_did_not) {
  EXPECT_EQ(found_in(with_device<does_not_update>(culprit)), "S-2");
}
TEST(invariants, find_a_holder_whose_update_counts_while_it_runs) {
  EXPECT_EQ(found_in(with_device<says_it_updated_before_it_did>(culprit)), "S-16");
}
class of_another_class : public toy_computation {
  using toy_computation::toy_computation;
  std::string numerics_class() const override { return "another"; }
};
TEST(invariants, find_a_member_that_computes_with_other_numerics) {
  EXPECT_EQ(found_in(with_device<of_another_class>(culprit)), "S-19");
}
TEST(invariants, find_a_holder_that_updates_with_another_gradient) {
  EXPECT_EQ(found_in(with_device<updates_with_another_gradient>(culprit)), "S-2");
}
TEST(invariants, find_a_backup_that_forgets_what_it_acknowledged) {
  EXPECT_EQ(found_in(with_device<forgets_after_acknowledging>(culprit)), "S-8");
}
TEST(invariants, find_a_member_that_computes_before_its_parameters_are_there) {
  world_settings s = small();
  s.network.bulk_latency = std::chrono::milliseconds(2);  // later than a layer takes
  EXPECT_EQ(found_in(with_device<does_not_wait_for_parameters>(culprit), s), "S-10");
}
TEST(invariants, find_a_primary_that_adds_in_another_way) {
  EXPECT_EQ(found_in(with_device<adds_in_another_way>(culprit)), "S-11");
}
TEST(invariants, find_a_primary_that_saves_something_else) {
  EXPECT_EQ(found_in(with_device<saves_something_else>(culprit)), "S-20");
}

// --- a transport that changes what is said ---

class changing_lane : public comm::bulk_lane {
 public:
  explicit changing_lane(std::unique_ptr<comm::bulk_lane> inner) : inner_(std::move(inner)) {}
  const comm::bytes& local_address() const override { return inner_->local_address(); }
  status connect(member_id to, comm::bytes_view address) override {
    return inner_->connect(to, address);
  }
  void send(member_id to, comm::bytes_view header, comm::bytes_view payload,
            std::uint64_t token) override {
    inner_->send(to, header, payload, token);
  }

 protected:
  std::unique_ptr<comm::bulk_lane> inner_;
};

// Says every gradient node twice; only the first is told to have been sent.
class says_nodes_twice : public changing_lane {
  using changing_lane::changing_lane;
  void send(member_id to, comm::bytes_view header, comm::bytes_view payload,
            std::uint64_t token) override {
    inner_->send(to, header, payload, token);
    const auto what = wire::decode_header(header.first(header.size() - comm::bulk_check_bytes));
    constexpr std::uint64_t nobodys = 99;
    if (what && std::holds_alternative<protocol::node_header>(*what)) {
      inner_->send(to, header, payload, nobodys);
    }
  }
};

template <class Lane>
class changing_transport : public passing_transport {
 public:
  using change = std::function<void(protocol::message&)>;
  changing_transport(std::unique_ptr<comm::transport> inner, change of)
      : passing_transport(std::move(inner)), change_(std::move(of)) {}

  result<std::unique_ptr<comm::bulk_lane>> open_bulk(generation number,
                                                     comm::bulk_handler& handler) override {
    auto lane = passing_transport::open_bulk(number, handler);
    if (!lane) return lane;
    return std::unique_ptr<comm::bulk_lane>(std::make_unique<Lane>(std::move(*lane)));
  }

 private:
  void send(comm::link_id link, comm::bytes frame) override {
    result<comm::envelope> envelope = comm::decode(frame);
    if (change_ && envelope && envelope->kind == comm::frame_kind::data) {
      result<protocol::message> what = wire::decode(envelope->payload);
      if (what) {
        change_(*what);
        envelope->payload = wire::encode(*what);
        frame = comm::encode(*envelope);
      }
    }
    passing_transport::send(link, std::move(frame));
  }

  change change_;
};

template <class Lane>
world_parts with_transport(member_id of, std::function<void(protocol::message&)> change = {}) {
  world_parts parts = usual_parts();
  parts.transport =
      [of, change](member_id who,
                   std::unique_ptr<comm::transport> inner) -> std::unique_ptr<comm::transport> {
    if (who != of) return inner;
    return std::make_unique<changing_transport<Lane>>(std::move(inner), change);
  };
  return parts;
}

TEST(invariants, hold_when_the_transport_between_changes_nothing) {
  EXPECT_EQ(found_in(with_transport<changing_lane>(member_id(0), [](protocol::message&) {})), "");
}
TEST(invariants, find_a_record_that_another_member_sees_differently) {
  const auto parts = with_transport<changing_lane>(member_id(0), [](protocol::message& m) {
    if (auto* notice = std::get_if<protocol::record_notice>(&m)) notice->record.lr *= 2;
  });
  EXPECT_EQ(found_in(parts), "S-4");
}
TEST(invariants, find_a_node_that_comes_twice) {
  EXPECT_EQ(found_in(with_transport<says_nodes_twice>(culprit)), "S-11");
}
TEST(invariants, find_a_record_that_follows_from_a_changed_vote) {
  const auto parts = with_transport<changing_lane>(culprit, [](protocol::message& m) {
    if (auto* vote = std::get_if<protocol::vote>(&m)) vote->losses.front().loss_sum += 1;
  });
  EXPECT_EQ(found_in(parts), "S-4");
}

// --- what the state machines refuse before it happens: told to the checker directly ---

class told : public testing::Test {
 protected:
  told()
      : settings_(small()), checked_(settings_.toy, settings_.steps), world_(settings_, checked_) {
    checked_.watch(
        [this](member_id id) -> const toy_computation& { return world_.device(id.value); });
    while (world_.store().plans.empty() || !begun()) {
      if (!world_.step_on()) break;
    }
    EXPECT_FALSE(checked_.first());
  }
  // Everybody has adopted the plan, and nobody has done anything in it.
  bool begun() { return checked_.checks() >= settings_.members; }
  std::string found() const { return checked_.first() ? checked_.first()->invariant : ""; }
  const protocol::plan& plan() { return world_.store().plans.front(); }

  world_settings settings_;
  invariants checked_;
  world world_;
};

TEST_F(told, a_backup_that_acknowledges_a_step_it_is_not_at_is_found) {
  const auto& held = plan().placement.front();
  checked_.sum_held_by_backup(held.backups.front(), 3, {held.layer, held.first_block}, {});
  EXPECT_EQ(found(), "S-9");
}
TEST_F(told, a_step_that_is_announced_before_it_is_stable_is_found) {
  checked_.committed(member_id(0), 1);
  EXPECT_EQ(found(), "S-6");
}
TEST_F(told, an_update_that_leaves_out_a_version_is_found) {
  const auto& held = plan().placement.front();
  checked_.block_applied(held.primary, {held.layer, held.first_block}, 2);
  EXPECT_EQ(found(), "S-2");
}
TEST_F(told, a_vote_for_an_incomplete_sum_is_found) {
  const auto& held = plan().placement.front();
  protocol::vote vote;
  vote.step = 1;
  vote.sums.push_back({{held.layer, held.first_block}, {}, 0});
  checked_.voted(held.primary, vote);
  EXPECT_EQ(found(), "S-11");
}

TEST(violation, names_invariant_member_step_and_block) {
  const violation v{"S-8", member_id(3), 12, {1, 2}, "so it is"};
  EXPECT_EQ(v.text(), "S-8 violated at member 3, step 12, block 2 of layer 1: so it is");
}

}  // namespace
}  // namespace troupe::actors::sim
