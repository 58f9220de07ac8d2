#include "actors/status_server.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "actors/status_client.hpp"
#include "tests/actors/http_probe.hpp"
#include "tests/actors/metrics_reader.hpp"
#include "tests/actors/worlds_to_see.hpp"

namespace troupe::actors {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

struct served {
  manual_clock clock{noon};
  std::atomic<int> stops = 0;
  std::unique_ptr<status_server> server;

  explicit served(const std::string& secret = "word") {
    auto started = status_server::start(
        "127.0.0.1:0", {.secret = secret, .stop = [this] { ++stops; }, .clock = &clock});
    EXPECT_TRUE(started) << started.failure().message;
    server = std::move(*started);
  }
  http_answer get(const std::string& path) {
    auto answer = http_get(server->address(), path);
    EXPECT_TRUE(answer) << answer.failure().message;
    return answer ? *answer : http_answer{};
  }
  int post(const std::string& secret) {
    auto answer = http_post(server->address(), "/api/stop", secret);
    EXPECT_TRUE(answer) << answer.failure().message;
    return answer ? answer->code : 0;
  }
};

TEST(status_server, is_not_ready_before_the_first_snapshot) {
  served s;
  EXPECT_EQ(s.get("/metrics").code, 503);
  EXPECT_EQ(s.get("/healthz").code, 503);
}

TEST(status_server, serves_the_newest_snapshot_in_all_its_forms) {
  served s;
  world_status seen = world_to_see();
  s.server->publish(std::make_shared<const world_status>(seen));
  EXPECT_EQ(s.get("/api/status").body, to_json(seen, noon));
  EXPECT_EQ(s.get("/").body, to_text(seen, noon));
  const metrics_read metrics = metrics_reader::read(s.get("/metrics").body);
  EXPECT_THAT(metrics.complaints, IsEmpty());
  EXPECT_EQ(metrics.series.at("troupe_train_step"), 120);
  seen.step = 121;
  s.server->publish(std::make_shared<const world_status>(seen));
  EXPECT_EQ(s.get("/api/status").body, to_json(seen, noon));
  EXPECT_EQ(s.get("/api/nothing").code, 404);
  EXPECT_THAT(ask(s.server->address(), "GET /metrics HTTP/1.1\r\n\r\n"),
              HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
}

TEST(status_server, health_is_lost_without_commits_and_found_again) {
  served s;
  world_status seen = world_to_see();
  seen.stall_seconds = 30;
  s.server->publish(std::make_shared<const world_status>(seen));
  EXPECT_EQ(s.get("/healthz").code, 200);
  s.clock.advance(std::chrono::seconds(60));
  EXPECT_EQ(s.get("/healthz").code, 503);
  seen.last_commit = s.clock.wall();
  s.server->publish(std::make_shared<const world_status>(seen));
  EXPECT_EQ(s.get("/healthz").code, 200);
}

TEST(status_server, stops_the_run_for_its_secret_only) {
  served s;
  EXPECT_EQ(s.post("wrong"), 403);
  EXPECT_EQ(s.post("wor"), 403);
  EXPECT_EQ(s.post(""), 403);
  EXPECT_THAT(ask(s.server->address(), "POST /api/stop HTTP/1.1\r\n\r\n"),
              StartsWith("HTTP/1.1 403 "));
  EXPECT_EQ(s.get("/api/stop").code, 405);
  EXPECT_EQ(s.stops, 0);
  EXPECT_EQ(s.post("word"), 202);
  EXPECT_EQ(s.stops, 1);
}

TEST(status_server, a_run_without_a_secret_cannot_be_stopped_this_way) {
  served s("");
  EXPECT_EQ(s.post(""), 403);
  EXPECT_EQ(s.stops, 0);
}

TEST(status_server, secrets_are_equal_only_if_all_of_them_is) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "ab"));
  EXPECT_FALSE(same_secret("", "a"));
}

TEST(status_server, readers_and_the_publisher_do_not_wait_for_each_other) {
  served s;
  world_status seen = world_to_see();
  s.server->publish(std::make_shared<const world_status>(seen));
  std::atomic<bool> enough = false;
  std::thread publisher([&] {
    while (!enough) {
      ++seen.step;
      s.server->publish(std::make_shared<const world_status>(seen));
    }
  });
  double before = 0;
  for (int i = 0; i < 50; ++i) {
    const metrics_read m = metrics_reader::read(s.get("/metrics").body);
    EXPECT_THAT(m.complaints, IsEmpty());
    EXPECT_GE(m.series.at("troupe_train_step"), before);
    before = m.series.at("troupe_train_step");
  }
  enough = true;
  publisher.join();
}

TEST(status_server, an_address_that_cannot_be_had_is_told_with_its_key) {
  const served s;
  const auto taken = status_server::start(to_text(s.server->address()), {});
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.failure().message, StartsWith("metrics.prometheus_listen: cannot listen on"));
  EXPECT_THAT(taken.failure().message, HasSubstr(to_text(s.server->address())));
  EXPECT_FALSE(status_server::start("nonsense", {}));
}

}  // namespace
}  // namespace troupe::actors
