// What every transport promises (comm/transport.hpp), whatever it is made of: run over UCX and over
// the simulated one by including this file and saying INSTANTIATE_TEST_SUITE_P(..,
// transport_conformance, testing::Values(conformance_subject{...})).
//
// No test here knows a clock: the subject moves its transports until a condition holds.
#pragma once

#include "tests/comm/conformance_fixture.hpp"

namespace troupe::comm {

// ---- control

TEST_P(transport_conformance, opens_a_link_on_both_sides) {
  make(2);
  EXPECT_NE(at[0]->where(), at[1]->where());
  EXPECT_NE(at[0]->where().port, 0);
  const auto [own, other] = join(0, 1);
  EXPECT_TRUE(at[0]->links[own].we_connected);
  EXPECT_FALSE(at[1]->links[other].we_connected);
  EXPECT_EQ(at[0]->links.size(), 1u);
  EXPECT_EQ(at[1]->links.size(), 1u);
}

TEST_P(transport_conformance, delivers_frames_of_all_sizes_in_order_both_ways) {
  make(2);
  const auto [own, other] = join(0, 1);
  const std::vector<std::size_t> sizes = {0,    1,    64,       4096, 70000,           8191,
                                          8192, 8193, 1u << 20, 3,    max_frame_bytes, 5};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    at[0]->send(own, pattern(sizes[i], static_cast<std::uint32_t>(i)));
    at[1]->send(other, pattern(sizes[i], static_cast<std::uint32_t>(100 + i)));
  }
  ASSERT_TRUE(run([&, own = own, other = other] {
    return at[0]->frames(own) == sizes.size() && at[1]->frames(other) == sizes.size();
  }));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_TRUE(at[1]->links[other].frames[i] == pattern(sizes[i], static_cast<std::uint32_t>(i)))
        << i;
    EXPECT_TRUE(at[0]->links[own].frames[i] ==
                pattern(sizes[i], static_cast<std::uint32_t>(100 + i)))
        << i;
  }
}

TEST_P(transport_conformance, delivers_many_small_frames_in_order) {
  make(2);
  const auto [own, other] = join(0, 1);
  constexpr std::uint32_t count = 3000;
  for (std::uint32_t i = 0; i < count; ++i) at[0]->send(own, to_bytes(std::to_string(i)));
  ASSERT_TRUE(run([&, other = other] { return at[1]->frames(other) == count; }));
  for (std::uint32_t i = 0; i < count; ++i)
    ASSERT_EQ(at[1]->links[other].frames[i], to_bytes(std::to_string(i)));
}

TEST_P(transport_conformance, keeps_frames_for_a_link_that_is_not_open_yet) {
  make(2);
  const link_id own = at[0]->connect(at[1]->where());
  for (int i = 0; i < 10; ++i) at[0]->send(own, to_bytes(std::to_string(i)));
  ASSERT_TRUE(run([&] { return at[1]->accepted() && at[1]->frames(*at[1]->accepted()) == 10; }));
  for (std::size_t i = 0; i < 10; ++i)
    EXPECT_EQ(at[1]->links[*at[1]->accepted()].frames[i], to_bytes(std::to_string(i)));
}

TEST_P(transport_conformance, tells_the_peer_of_a_close_after_all_frames_and_us_nothing) {
  make(2);
  const auto [own, other] = join(0, 1);
  for (int i = 0; i < 100; ++i) at[0]->send(own, pattern(10000, static_cast<std::uint32_t>(i)));
  at[0]->close(own);
  at[0]->send(own, to_bytes("too late"));
  ASSERT_TRUE(run([&, other = other] { return at[1]->closed(other); }));
  EXPECT_EQ(at[1]->frames(other), 100u);
  group->settle();
  EXPECT_FALSE(at[0]->closed(own));
  at[1]->send(other, to_bytes("to nobody"));
  group->settle();
  EXPECT_EQ(at[0]->frames(own), 0u);
}

TEST_P(transport_conformance, closes_a_link_that_never_opened) {
  make(2);
  const link_id early = at[0]->connect(at[1]->where());
  at[0]->close(early);
  const link_id vain = at[0]->connect(group->nobody());
  at[0]->close(vain);
  group->settle();
  EXPECT_TRUE(at[0]->links.empty());
  EXPECT_TRUE(at[0]->never_opened.empty());
  // If the other side saw it at all, it saw it end.
  for (const auto& [link, story] : at[1]->links) EXPECT_TRUE(story.closed);
}

TEST_P(transport_conformance, names_the_address_that_cannot_be_reached) {
  make(1);
  const address nobody = group->nobody();
  const link_id link = at[0]->connect(nobody);
  at[0]->send(link, to_bytes("vanishes"));
  ASSERT_TRUE(run([&] { return at[0]->never_opened.size() == 1; }));
  EXPECT_THAT(at[0]->never_opened.front(), testing::HasSubstr(to_text(nobody)));
  at[0]->send(link, to_bytes("vanishes"));
  at[0]->close(link);
  group->settle();
  EXPECT_EQ(at[0]->never_opened.size(), 1u);
}

TEST_P(transport_conformance, notices_a_lost_peer_and_keeps_the_other_links) {
  make(3);
  const auto [to_lost, at_lost] = join(0, 1);
  const auto [to_kept, at_kept] = join(0, 2);
  const auto [from_lost, lost_own] = join(1, 0);
  at[0]->send(to_lost, to_bytes("hello"));
  ASSERT_TRUE(run([&, link = at_lost] { return at[1]->frames(link) == 1; }));
  group->lose(1);
  ASSERT_TRUE(run([&, a = to_lost, b = lost_own] { return at[0]->closed(a) && at[0]->closed(b); }));
  at[0]->send(to_lost, to_bytes("to the dead"));
  at[0]->send(to_kept, to_bytes("to the living"));
  ASSERT_TRUE(run([&, link = at_kept] { return at[2]->frames(link) == 1; }));
  at[2]->send(at_kept, to_bytes("back"));
  ASSERT_TRUE(run([&, link = to_kept] { return at[0]->frames(link) == 1; }));
  EXPECT_FALSE(at[0]->closed(to_kept));
}

TEST_P(transport_conformance, lets_a_handler_answer_connect_and_close) {
  make(2);
  const auto [own, other] = join(0, 1);
  at[1]->on_frame = [&](link_id link, bytes_view frame) {
    if (frame.size() == 4) {
      at[1]->send(link, to_bytes("pong"));
      at[1]->connect(at[0]->where());
    } else {
      at[1]->close(link);
    }
  };
  at[0]->send(own, to_bytes("ping"));
  ASSERT_TRUE(
      run([&, own = own] { return at[0]->frames(own) == 1 && at[0]->accepted().has_value(); }));
  at[0]->send(own, to_bytes("bye"));
  for (int i = 0; i < 20; ++i) at[0]->send(own, to_bytes("more"));
  ASSERT_TRUE(run([&, own = own] { return at[0]->closed(own); }));
  group->settle();
  // After its own close() a handler hears no more of the link.
  EXPECT_EQ(at[1]->frames(other), 2u);
  EXPECT_FALSE(at[1]->closed(other));
}

TEST_P(transport_conformance, keeps_links_between_the_same_two_apart) {
  make(2);
  const link_id first = at[0]->connect(at[1]->where());
  const link_id second = at[0]->connect(at[1]->where());
  const link_id crossing = at[1]->connect(at[0]->where());
  EXPECT_NE(first, second);
  at[0]->send(first, to_bytes("first"));
  at[0]->send(second, to_bytes("second"));
  at[1]->send(crossing, to_bytes("crossing"));
  const auto received = [](const witness& w) {
    std::vector<bytes> all;
    for (const auto& [link, story] : w.links) {
      if (!story.we_connected) all.insert(all.end(), story.frames.begin(), story.frames.end());
    }
    return all;
  };
  ASSERT_TRUE(run([&] { return received(*at[1]).size() == 2 && received(*at[0]).size() == 1; }));
  EXPECT_THAT(received(*at[1]),
              testing::UnorderedElementsAre(to_bytes("first"), to_bytes("second")));
  at[0]->close(first);
  ASSERT_TRUE(run([&] {
    return std::ranges::count_if(at[1]->links, [](const auto& l) { return !!l.second.closed; }) ==
           1;
  }));
  at[0]->send(second, to_bytes("still there"));
  EXPECT_TRUE(run([&] { return received(*at[1]).size() == 3; }));
}

TEST_P(transport_conformance, gives_each_link_exactly_what_was_sent_on_it) {
  constexpr std::uint32_t seed = 20240229;
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  make(3);
  struct sender {
    std::size_t from, to;
    link_id link;
    std::vector<bytes> sent;
    bool closed = false;
  };
  std::vector<sender> senders;
  for (int step = 0; step < 400; ++step) {
    const std::size_t what = below(10);
    if (what == 0 || senders.empty()) {
      const std::size_t from = below(3), to = (from + 1 + below(2)) % 3;
      senders.push_back({from, to, at[from]->connect(at[to]->where()), {}, false});
      // The first frame says whose link it is.
      senders.back().sent.push_back(to_bytes("link " + std::to_string(senders.size() - 1)));
      at[from]->send(senders.back().link, senders.back().sent.back());
    } else if (what == 1) {
      sender& one = senders[below(senders.size())];
      at[one.from]->close(one.link);
      one.closed = true;
    } else if (what < 8) {
      sender& one = senders[below(senders.size())];
      bytes frame = pattern(below(2) == 0 ? below(100) : below(30000), random());
      if (!one.closed) one.sent.push_back(frame);
      at[one.from]->send(one.link, std::move(frame));
    } else {
      const std::size_t whose = below(3);
      int rounds = 3;
      run([&] { return rounds-- == 0 || at[whose]->links.empty(); });
    }
  }
  // What arrived on the link of a sender; its first frame tells.
  const auto story_of = [&](std::size_t number) -> const witness::link_story* {
    for (const auto& [link, story] : at[senders[number].to]->links) {
      if (!story.we_connected && !story.frames.empty() &&
          story.frames[0] == to_bytes("link " + std::to_string(number)))
        return &story;
    }
    return nullptr;
  };
  const auto is_complete = [&](std::size_t number) {
    const witness::link_story* story = story_of(number);
    return story != nullptr && story->frames.size() == senders[number].sent.size() &&
           story->closed.has_value() == senders[number].closed;
  };
  std::size_t complete = 0;
  EXPECT_TRUE(run([&] {
    while (complete < senders.size() && is_complete(complete)) ++complete;
    return complete == senders.size();
  })) << "link "
      << complete << " of seed " << seed;
  group->settle();
  for (std::size_t number = 0; number < senders.size(); ++number) {
    ASSERT_NE(story_of(number), nullptr) << "link " << number << " of seed " << seed;
    EXPECT_TRUE(story_of(number)->frames == senders[number].sent)
        << "link " << number << " of seed " << seed;
    EXPECT_EQ(story_of(number)->closed.has_value(), senders[number].closed);
  }
}

// ---- bulk

TEST_P(transport_conformance, puts_bulk_payloads_where_they_were_placed) {
  make(2);
  std::vector<keeper> keepers(2);
  const auto lanes = open_bulk(1, keepers);
  const std::vector<std::size_t> sizes = {0, 1, 100, 8191, 65536, 1000003, std::size_t{5} << 20};
  std::vector<bytes> payloads;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    payloads.push_back(pattern(sizes[i], static_cast<std::uint32_t>(i)));
    bytes header = pattern(i % 2 == 0 ? max_bulk_header_bytes : i, 7);
    send(*lanes[0], 1, header, payloads[i], 1000 + i);
    std::ranges::fill(header, std::byte{0});  // it was copied
  }
  ASSERT_TRUE(run([&] {
    return keepers[1].arrivals.size() == sizes.size() && keepers[0].tokens.size() == sizes.size();
  }));
  std::ranges::sort(keepers[1].arrivals, {}, [](const auto& m) { return m.payload.size(); });
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_TRUE(keepers[1].arrivals[i].payload == payloads[i]) << sizes[i];
    EXPECT_TRUE(keepers[1].arrivals[i].header == pattern(i % 2 == 0 ? max_bulk_header_bytes : i, 7))
        << sizes[i];
  }
  std::ranges::sort(keepers[0].tokens);
  for (std::size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(keepers[0].tokens[i], 1000 + i);
}

TEST_P(transport_conformance, lets_a_payload_change_after_sent) {
  make(2);
  std::vector<keeper> keepers(2);
  const auto lanes = open_bulk(1, keepers);
  bytes payload = pattern(300000, 1);
  for (std::uint32_t round = 1; round <= 20; ++round) {
    send(*lanes[0], 1, {}, payload, round);
    ASSERT_TRUE(run([&] { return keepers[0].tokens.size() == round; }));
    payload = pattern(300000, round + 1);
  }
  ASSERT_TRUE(run([&] { return keepers[1].arrivals.size() == 20; }));
  std::vector<bool> seen(21);
  for (const auto& message : keepers[1].arrivals) {
    for (std::uint32_t round = 1; round <= 20; ++round) {
      if (message.payload == pattern(300000, round)) seen[round] = true;
    }
  }
  EXPECT_EQ(std::ranges::count(seen, true), 20);
}

TEST_P(transport_conformance, drops_bulk_messages_that_are_not_wanted) {
  make(2);
  std::vector<keeper> keepers(2);
  const auto lanes = open_bulk(1, keepers);
  keepers[1].wants = false;
  const bytes small = pattern(10, 1), large = pattern(2000000, 2);
  send(*lanes[0], 1, {}, small, 1);
  send(*lanes[0], 1, {}, large, 2);
  ASSERT_TRUE(run([&] { return keepers[1].announced == 2 && keepers[0].tokens.size() == 2; }));
  keepers[1].wants = true;
  send(*lanes[0], 1, {}, large, 3);
  ASSERT_TRUE(run([&] { return keepers[1].arrivals.size() == 1; }));
  EXPECT_TRUE(keepers[1].arrivals[0].payload == large);
}

TEST_P(transport_conformance, carries_bulk_from_all_to_all_exactly_once) {
  constexpr std::size_t members = 3, rounds = 12;
  make(members);
  std::vector<keeper> keepers(members);
  const auto lanes = open_bulk(4, keepers);
  std::map<std::string, bytes> payloads;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t from = 0; from < members; ++from) {
      for (std::size_t to = 0; to < members; ++to) {
        const std::string name =
            std::to_string(from) + " to " + std::to_string(to) + " in " + std::to_string(round);
        const bytes& payload = payloads[name] =
            pattern(round % 3 == 0 ? 700000 : 50 * round,
                    static_cast<std::uint32_t>(100 * round + 10 * from + to));
        send(*lanes[from], to, to_bytes(name), payload, round);
      }
    }
  }
  ASSERT_TRUE(run([&] {
    return std::ranges::all_of(keepers, [](const keeper& k) {
      return k.arrivals.size() == members * rounds && k.tokens.size() == members * rounds;
    });
  }));
  group->settle();
  for (std::size_t to = 0; to < members; ++to) {
    ASSERT_EQ(keepers[to].arrivals.size(), members * rounds);
    for (const auto& message : keepers[to].arrivals) {
      const std::string name(reinterpret_cast<const char*>(message.header.data()),
                             message.header.size());
      ASSERT_TRUE(payloads.contains(name)) << "came twice or was never sent: " << name;
      EXPECT_NE(name.find(" to " + std::to_string(to)), std::string::npos);
      EXPECT_TRUE(message.payload == payloads[name]) << name;
      payloads.erase(name);
    }
  }
}

TEST_P(transport_conformance, refuses_a_bulk_address_that_is_none) {
  make(2);
  keeper own, other;
  auto lane = group->at(0).open_bulk(generation{1}, own);
  auto there = group->at(1).open_bulk(generation{1}, other);
  ASSERT_TRUE(lane && there);
  const bytes good = (*there)->local_address();
  bytes damaged = good;
  damaged[damaged.size() / 2] ^= std::byte{1};
  for (const bytes_view bad : {bytes_view(), bytes_view(good).first(good.size() / 2),
                               bytes_view(good).first(1), bytes_view(damaged)}) {
    const status connected = (*lane)->connect(member(1), bad);
    ASSERT_FALSE(connected) << bad.size() << " bytes";
    EXPECT_FALSE(connected.failure().message.empty());
  }
  EXPECT_TRUE((*lane)->connect(member(1), good));
}

TEST_P(transport_conformance, keeps_generations_apart) {
  make(2);
  std::vector<keeper> old_keepers(2), new_keepers(2);
  const auto old_lanes = open_bulk(1, old_keepers);
  const auto new_lanes = open_bulk(2, new_keepers);
  const bytes payload = pattern(500000, 3);
  send(*old_lanes[0], 1, to_bytes("old"), payload, 1);
  send(*new_lanes[0], 1, to_bytes("new"), payload, 2);
  ASSERT_TRUE(run(
      [&] { return old_keepers[1].arrivals.size() == 1 && new_keepers[1].arrivals.size() == 1; }));
  EXPECT_EQ(old_keepers[1].arrivals[0].header, to_bytes("old"));
  EXPECT_EQ(new_keepers[1].arrivals[0].header, to_bytes("new"));
  ASSERT_TRUE(
      run([&] { return old_keepers[0].tokens.size() == 1 && new_keepers[0].tokens.size() == 1; }));
  EXPECT_EQ(old_keepers[0].tokens, std::vector<std::uint64_t>{1});
  EXPECT_EQ(new_keepers[0].tokens, std::vector<std::uint64_t>{2});
}

TEST_P(transport_conformance, ends_bulk_in_both_directions_with_the_lane) {
  for (const std::size_t who : {0, 1}) {
    group.reset();
    at.clear();
    make(2);
    std::vector<keeper> keepers(2);
    auto lanes = open_bulk(1, keepers);
    const bytes payload = pattern(std::size_t{4} << 20, 9);
    for (std::uint64_t i = 0; i < 8; ++i) {
      send(*lanes[0], 1, {}, payload, i);
      send(*lanes[1], 0, {}, payload, i);
    }
    ASSERT_TRUE(run([&] { return keepers[0].announced > 0 && keepers[1].announced > 0; }));
    lanes[who].reset();
    const std::size_t arrivals = keepers[who].arrivals.size(), tokens = keepers[who].tokens.size();
    for (auto& memory : keepers[who].memory()) std::ranges::fill(*memory, std::byte{0});
    group->settle();
    EXPECT_EQ(keepers[who].arrivals.size(), arrivals);
    EXPECT_EQ(keepers[who].tokens.size(), tokens);
    for (auto& memory : keepers[who].memory()) {
      EXPECT_TRUE(std::ranges::all_of(*memory, [](std::byte b) { return b == std::byte{0}; }));
    }
    lanes.clear();
    std::vector<keeper> next(2);
    const auto again = open_bulk(2, next);
    send(*again[0], 1, {}, payload, 1);
    ASSERT_TRUE(run([&] { return next[1].arrivals.size() == 1; }));
    EXPECT_TRUE(next[1].arrivals[0].payload == payload);
  }
}

TEST_P(transport_conformance, lets_a_bulk_handler_end_its_own_lane) {
  for (const int when : {0, 1, 2}) {
    for (const std::size_t size : {std::size_t{10}, std::size_t{1} << 20}) {
      group.reset();
      at.clear();
      make(2);
      std::vector<keeper> keepers(2);
      auto lanes = open_bulk(1, keepers);
      const bytes payload = pattern(size, 9);
      const auto end = [&](std::size_t who) { return [&lanes, who] { lanes[who].reset(); }; };
      if (when == 0) keepers[1].on_place = end(1);
      if (when == 1) keepers[1].on_arrival = end(1);
      if (when == 2) keepers[0].on_sent = end(0);
      for (std::uint64_t i = 0; i < 5; ++i) send(*lanes[0], 1, {}, payload, i);
      ASSERT_TRUE(run([&] { return !lanes[0] || !lanes[1]; })) << when << " " << size;
      const std::size_t heard = keepers[1].announced + keepers[0].tokens.size();
      if (when == 2) lanes[1].reset();
      if (when != 2) lanes[0].reset();
      group->settle();
      EXPECT_EQ(keepers[1].announced + keepers[0].tokens.size(), heard);
    }
  }
}

// ---- the transport as a whole

TEST_P(transport_conformance, ends_the_next_wait_when_woken_before_it) {
  make(1);
  for (const waiting how : {waiting::eager, waiting::patient}) {
    std::thread([&] { group->at(0).wake(); }).join();
    group->at(0).wait(std::chrono::hours(1), how);
    group->at(0).progress();
  }
}

TEST_P(transport_conformance, counts_what_it_was_given_to_send) {
  make(2);
  const auto [own, other] = join(0, 1);
  const traffic before = group->at(0).sent();
  for (int i = 0; i < 10; ++i) at[0]->send(own, pattern(1000, 1));
  const traffic after = group->at(0).sent();
  EXPECT_EQ(after.control_frames - before.control_frames, 10u);
  EXPECT_GE(after.control_bytes - before.control_bytes, 10000u);
  EXPECT_LE(after.control_bytes - before.control_bytes, 11000u);
  std::vector<keeper> keepers(2);
  const auto lanes = open_bulk(1, keepers);
  const bytes payload = pattern(100000, 1);
  send(*lanes[0], 1, to_bytes("header"), payload, 1);
  EXPECT_EQ(group->at(0).sent().bulk_messages, 1u);
  EXPECT_GE(group->at(0).sent().bulk_bytes, 100006u);
  EXPECT_LE(group->at(0).sent().bulk_bytes, 101000u);
  EXPECT_EQ(group->at(1).sent().bulk_messages, 0u);
  ASSERT_TRUE(run([&] { return keepers[1].arrivals.size() == 1; }));
}

}  // namespace troupe::comm
