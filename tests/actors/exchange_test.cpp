#include "actors/exchange.hpp"

#include <gmock/gmock.h>

#include <caf/all.hpp>

#include "actors/loop.hpp"
#include "actors/messages.hpp"
#include "actors/sim/toy_computation.hpp"
#include "actors/wire/codec.hpp"
#include "comm/simulated_transport.hpp"

namespace troupe::actors {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr sim::toy_shape toy{.layers = 2, .blocks = 2, .virtual_ranks = 4, .tied = true, .seed = 1};
constexpr std::size_t block_bytes = sim::toy_elements * sizeof(float);
constexpr std::size_t tied_bytes = sim::toy_tied_elements * sizeof(float);

// One member's bulk traffic, with actors that write down what they are told.
struct post_office {
  post_office(comm::simulated_network& network, const clock_source& clock, std::uint32_t id,
              const member_share& share)
      : run(clock),
        device(
            toy, time, clock, {}, [](const auto&) {}, [](auto, auto) {}),
        mail(member_id(id)),
        bulk(device, mail, share, lasting),
        way(network.add_process().transport) {
    device.adopt(share);
    clerk = run.system().spawn([this]() -> caf::behavior {
      return {
          [this](const node_arrived& m) { told.push_back("node " + text(m.header.key.block)); },
          [this](const sum_arrived& m) { told.push_back("sum " + text(m.header.block)); },
          [this](const parameters_arrived& m) {
            told.push_back("parameters " + text(m.header.block));
          },
          [this](const nodes_sent&) { told.push_back("nodes sent"); },
          [this](const state_arrived& m) {
            told.push_back("state " + text(m.header.block));
            state = m;
          },
      };
    });
    mail.rank = clerk;
    mail.primary_shards = mail.backup_shards = {clerk, clerk};
    way->start(no_links);
    EXPECT_TRUE(bulk.open(*way, generation(0)));
  }
  ~post_office() {
    caf::anon_send_exit(clerk, caf::exit_reason::kill);
    while (run.run_ready()) {
    }
  }
  post_office(const post_office&) = delete;
  post_office& operator=(const post_office&) = delete;

  static std::string text(block_id b) {
    return std::to_string(b.layer) + "/" + std::to_string(b.block);
  }
  bool takes(const protocol::bulk_header& header, std::size_t bytes) {
    return bulk.place(wire::encode_header(header), bytes).has_value();
  }

  struct : comm::control_handler {
    void link_opened(comm::link_id, bool) override {}
    void frame_received(comm::link_id, comm::bytes_view) override {}
    void link_closed(comm::link_id, const std::string&) override {}
  } no_links;
  sim::timeline time;
  loop run;
  sim::toy_computation device;
  router mail;
  lasting_facts lasting;
  exchange bulk;
  std::unique_ptr<comm::transport> way;
  caf::actor clerk;
  std::vector<std::string> told;
  std::optional<state_arrived> state;  // the last that came
};

protocol::node_header node_of(block_id block, tree_node node, std::uint8_t source = 0) {
  return {3, {block, source, node}};
}
protocol::sum_header sum_of(block_id block) { return {3, block, {}}; }
protocol::parameters_header parameters_of(block_id block) { return {block, {}}; }

// Computes virtual ranks 0 and 1, is primary of 0/0 and 1/0, backs up 0/1, reads 1/1.
const member_share first_share{4, 0, 2, {{0, 0}, {1, 0}}, {{0, 1}}};
// The rest; holds nothing of 1/0.
const member_share second_share{4, 2, 2, {{0, 1}, {1, 1}}, {{0, 0}}};

struct exchange_test : testing::Test {
  manual_clock clock;
  comm::simulated_network network{1};
  post_office first{network, clock, 0, first_share};
  post_office second{network, clock, 1, second_share};

  void connect() {
    EXPECT_TRUE(first.bulk.connect(member_id(1), second.bulk.local_address()));
    EXPECT_TRUE(second.bulk.connect(member_id(0), first.bulk.local_address()));
  }
  void run() {
    while (const auto next = network.next_event()) {
      network.advance_to(*next);
      (void)network.take_ready();
      for (post_office* p : {&first, &second}) {
        while (p->way->progress()) {
        }
      }
    }
    for (post_office* p : {&first, &second}) {
      while (p->run.run_ready()) {
      }
    }
  }
};

TEST_F(exchange_test,
       brings_nodes_sums_and_parameters_to_their_places_and_tells_whom_they_concern) {
  connect();
  first.device.parameters({1, 0})[0] = std::byte{77};
  first.bulk.send_node(member_id(1), node_of({1, 1}, {0, 2}));
  first.bulk.send_sum(member_id(1), sum_of({0, 0}));
  first.bulk.send_parameters(member_id(1), parameters_of({1, 0}));
  EXPECT_TRUE(first.bulk.nodes_on_their_way());
  run();
  EXPECT_THAT(second.told, testing::UnorderedElementsAre("node 1/1", "sum 0/0", "parameters 1/0"));
  EXPECT_EQ(second.device.parameters({1, 0})[0], std::byte{77});
  EXPECT_FALSE(first.bulk.nodes_on_their_way());
  EXPECT_THAT(first.told, ElementsAre("nodes sent"));
  EXPECT_EQ(second.bulk.refused(), 0u);
}

TEST_F(exchange_test, says_once_that_all_nodes_are_sent) {
  connect();
  for (int i = 0; i < 3; ++i) first.bulk.send_node(member_id(1), node_of({1, 1}, {0, 2}));
  run();
  EXPECT_THAT(first.told, ElementsAre("nodes sent"));
}

TEST_F(exchange_test, refuses_headers_that_nobody_wrote) {
  const std::vector<std::byte> right = wire::encode_header(node_of({0, 0}, {2, 2}));
  EXPECT_FALSE(first.bulk.place({}, block_bytes));
  EXPECT_FALSE(first.bulk.place(std::vector<std::byte>(100, std::byte{0xff}), block_bytes));
  EXPECT_FALSE(first.bulk.place(std::span(right).first(right.size() - 8), block_bytes));
  EXPECT_EQ(first.bulk.refused(), 3u);
  EXPECT_TRUE(first.bulk.place(right, block_bytes));
}

TEST_F(exchange_test, refuses_payloads_of_another_size) {
  for (const std::size_t size : {std::size_t{0}, block_bytes - 4, block_bytes + 4, tied_bytes}) {
    EXPECT_FALSE(first.takes(node_of({0, 0}, {2, 2}), size)) << size;
    EXPECT_FALSE(first.takes(sum_of({0, 1}), size)) << size;
    EXPECT_FALSE(first.takes(parameters_of({1, 1}), size)) << size;
  }
  EXPECT_TRUE(first.takes(node_of({0, 0}, {2, 2}, 1), tied_bytes));
  EXPECT_FALSE(first.takes(node_of({0, 0}, {2, 2}, 1), block_bytes));
}

TEST_F(exchange_test, refuses_what_belongs_elsewhere) {
  EXPECT_TRUE(first.takes(node_of({0, 0}, {2, 2}), block_bytes));
  EXPECT_FALSE(first.takes(node_of({0, 1}, {2, 2}), block_bytes)) << "of a block it backs up";
  EXPECT_FALSE(first.takes(node_of({1, 1}, {2, 2}), block_bytes)) << "of a block held elsewhere";
  EXPECT_TRUE(first.takes(sum_of({0, 1}), block_bytes));
  EXPECT_FALSE(first.takes(sum_of({0, 0}), block_bytes)) << "its own sum must not be overwritten";
  EXPECT_FALSE(first.takes(sum_of({1, 1}), block_bytes));
  EXPECT_TRUE(first.takes(parameters_of({1, 1}), block_bytes));
  EXPECT_FALSE(first.takes(parameters_of({0, 0}), block_bytes)) << "it updates them itself";
  EXPECT_FALSE(first.takes(parameters_of({0, 1}), block_bytes)) << "it updates them itself";
}

TEST_F(exchange_test, refuses_what_is_in_no_model_and_in_no_tree) {
  for (const block_id block : {block_id{0, 2}, block_id{2, 0}, block_id{~0u, ~0u}}) {
    EXPECT_FALSE(first.takes(node_of(block, {2, 2}), block_bytes));
    EXPECT_FALSE(first.takes(sum_of(block), block_bytes));
    EXPECT_FALSE(first.takes(parameters_of(block), block_bytes));
  }
  for (const tree_node node : {tree_node{1, 2}, tree_node{2, 3}, tree_node{4, 1}, tree_node{0, 0},
                               tree_node{3, ~0u}, tree_node{0, 2}}) {
    EXPECT_FALSE(first.takes(node_of({0, 0}, node), block_bytes))
        << node.first << "+" << node.leaves;
  }
  EXPECT_FALSE(first.takes(node_of({0, 0}, {2, 2}, 2), block_bytes)) << "no such source";
  EXPECT_FALSE(first.takes(node_of({1, 0}, {2, 2}, 1), tied_bytes)) << "no tied source";
}

TEST_F(exchange_test, gives_a_spare_no_parameters) {
  post_office spare(network, clock, 2, {4, 0, 0, {}, {{0, 0}}});
  EXPECT_FALSE(spare.takes(parameters_of({1, 1}), block_bytes));
  EXPECT_TRUE(spare.takes(sum_of({0, 0}), block_bytes));
}

TEST_F(exchange_test, brings_nothing_after_its_end) {
  connect();
  {
    post_office third(network, clock, 2, first_share);
    EXPECT_TRUE(third.bulk.connect(member_id(1), second.bulk.local_address()));
    third.bulk.send_node(member_id(1), node_of({1, 1}, {0, 2}));
  }
  run();
  EXPECT_THAT(first.told, IsEmpty());
}

// --- copies ---

constexpr std::size_t state_bytes = 3 * block_bytes;
protocol::state_header state_of(block_id block) { return {block, 2, {7, 8}}; }

TEST_F(exchange_test, brings_the_state_of_a_block_to_whoever_expects_it) {
  connect();
  auto bytes = std::make_shared<comm::bytes>(state_bytes);
  for (std::size_t i = 0; i < state_bytes; ++i) (*bytes)[i] = static_cast<std::byte>(i);
  const std::weak_ptr<const comm::bytes> sent = bytes;
  second.device.make_room({1, 0});
  second.bulk.expect_copy({1, 0});
  first.bulk.send_state(member_id(1), state_of({1, 0}), bytes);
  const comm::bytes expected = *bytes;
  bytes.reset();
  EXPECT_FALSE(sent.expired()) << "the transport may still read it";
  run();
  EXPECT_TRUE(sent.expired());
  EXPECT_THAT(second.told, ElementsAre("state 1/0"));
  ASSERT_TRUE(second.state);
  EXPECT_EQ(second.state->header, state_of({1, 0}));
  EXPECT_EQ(*second.state->bytes, expected);
  EXPECT_THAT(first.told, IsEmpty()) << "a state is no node";
}

TEST_F(exchange_test, takes_a_state_once_and_only_where_it_is_expected_and_whole) {
  EXPECT_FALSE(second.takes(state_of({1, 0}), state_bytes)) << "nobody asked for it";
  second.device.make_room({1, 0});
  second.bulk.expect_copy({1, 0});
  EXPECT_FALSE(second.takes(state_of({1, 0}), state_bytes - 4));
  EXPECT_FALSE(second.takes(state_of({1, 0}), 0));
  EXPECT_FALSE(second.takes(state_of({0, 0}), state_bytes)) << "which it backs up already";
  EXPECT_FALSE(second.takes(state_of({9, 9}), state_bytes));
  EXPECT_TRUE(second.takes(state_of({1, 0}), state_bytes));
  connect();
  for (int i = 0; i < 2; ++i) {
    first.bulk.send_state(member_id(1), state_of({1, 0}),
                          std::make_shared<comm::bytes>(state_bytes));
    run();
  }
  EXPECT_THAT(second.told, ElementsAre("state 1/0"));
}

// H-21: from the copy on, sums come here too, and until it is here parameters as before.
TEST_F(exchange_test, takes_sums_and_still_parameters_of_a_block_that_is_copied_here) {
  EXPECT_FALSE(second.takes(sum_of({1, 0}), block_bytes));
  EXPECT_TRUE(second.takes(parameters_of({1, 0}), block_bytes));
  second.device.make_room({1, 0});
  second.bulk.expect_copy({1, 0});
  EXPECT_TRUE(second.takes(sum_of({1, 0}), block_bytes));
  EXPECT_TRUE(second.takes(parameters_of({1, 0}), block_bytes));
  EXPECT_FALSE(second.takes(node_of({1, 0}, {0, 2}), block_bytes)) << "it is no primary";
  EXPECT_FALSE(second.takes(parameters_of({0, 0}), block_bytes)) << "it updates them itself";
}

// What is being overwritten is not the whole model at one version any more, and a promise must not
// say that it is.
TEST_F(exchange_test, knows_from_the_first_byte_on_that_parameters_are_being_written) {
  first.lasting.parameters = true;
  EXPECT_TRUE(first.takes(sum_of({0, 1}), block_bytes));
  EXPECT_TRUE(first.takes(node_of({0, 0}, {2, 2}), block_bytes));
  EXPECT_FALSE(first.takes(parameters_of({0, 0}), block_bytes));
  EXPECT_TRUE(first.lasting.parameters);
  EXPECT_TRUE(first.takes(parameters_of({1, 1}), block_bytes));
  EXPECT_FALSE(first.lasting.parameters);
}

TEST_F(exchange_test, sends_and_takes_nothing_once_it_is_closed) {
  connect();
  first.bulk.send_node(member_id(1), node_of({1, 1}, {0, 2}));
  first.bulk.close();
  first.bulk.send_node(member_id(1), node_of({1, 1}, {0, 2}));
  first.bulk.send_sum(member_id(1), sum_of({0, 0}));
  first.bulk.send_parameters(member_id(1), parameters_of({1, 0}));
  first.bulk.send_state(member_id(1), state_of({1, 0}), std::make_shared<comm::bytes>(state_bytes));
  run();
  EXPECT_THAT(first.told, IsEmpty());
  EXPECT_THAT(second.told, testing::Not(testing::Contains("sum 0/0")));
}

}  // namespace
}  // namespace troupe::actors
