// A port that anybody on the machine reaches: good requests, bad ones, and none at all.
#include "actors/http_server.hpp"

#include <gmock/gmock.h>

#include <atomic>

#include "actors/machine.hpp"
#include "tests/actors/http_probe.hpp"

namespace troupe::actors {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

const comm::address anywhere{.host = "127.0.0.1", .port = 0};

std::unique_ptr<http_server> serve(http_limits limits = {}, http_handler handler = nullptr) {
  if (!handler) {
    handler = [](const http_request& r) {
      return http_response{200, "text/plain", r.method + " " + r.path + "\n"};
    };
  }
  auto server = http_server::start(anywhere, handler, limits);
  EXPECT_TRUE(server) << server.failure().message;
  return std::move(*server);
}

TEST(http_server, answers_a_request_and_closes) {
  const auto server = serve();
  EXPECT_NE(server->address().port, 0);
  const std::string answer = ask(server->address(), "GET /a/b?c=d HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 9\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nGET /a/b\n"));
}

TEST(http_server, takes_a_request_in_pieces_and_waits_for_its_body) {
  std::atomic<int> asked = 0;
  const auto server = serve({}, [&](const http_request& r) {
    ++asked;
    return http_response{200, "text/plain", r.headers.at("x-word")};
  });
  http_probe probe(server->address());
  for (const char* piece :
       {"POST / HT", "TP/1.1\r\nX-Word: \t hi \r", "\nContent-Length: 4\r\n\r", "\nab", "cd"}) {
    EXPECT_EQ(asked, 0);
    probe.say(piece);
  }
  EXPECT_THAT(probe.hear(), EndsWith("\r\n\r\nhi"));
  EXPECT_EQ(asked, 1);
}

TEST(http_server, a_head_request_gets_no_body) {
  const auto server = serve();
  const std::string answer = ask(server->address(), "HEAD / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 7\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST(http_server, rubbish_is_refused_with_its_first_line) {
  const auto server = serve();
  for (const std::string& rubbish :
       {std::string("\x16\x03\x01\x02\n", 5), std::string("hello\n"),
        std::string("GET x HTTP/1.1\n"), std::string("GET / SPDY/3\n"),
        std::string("GET / HTTP/1.1\r\nno header\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nA: 1\r\na: 2\r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), std::string(3, '\n'),
        std::string("GET /\x01 HTTP/1.1\r\n\r\n")}) {
    EXPECT_THAT(ask(server->address(), rubbish), StartsWith("HTTP/1.1 400 ")) << rubbish;
  }
}

TEST(http_server, a_request_without_an_end_costs_no_memory) {
  const auto server = serve();
  const std::string much(std::size_t{1} << 16, 'A');
  const std::uint64_t before = facts_of_this_process().resident_bytes;
  for (int i = 0; i < 20; ++i) {
    http_probe probe(server->address());
    for (int j = 0; j < 200; ++j) {
      if (probe.say(much) < much.size()) break;
    }
  }
  EXPECT_LT(facts_of_this_process().resident_bytes, before + (std::uint64_t{4} << 20));
  EXPECT_THAT(ask(server->address(), much.substr(0, 8192)), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(
      ask(server->address(), "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"),
      StartsWith("HTTP/1.1 413 "));
}

TEST(http_server, who_says_nothing_is_put_out_after_a_while) {
  const auto server =
      serve({.connections = 4, .request_bytes = 512, .life = std::chrono::milliseconds(50)});
  http_probe silent(server->address());
  EXPECT_TRUE(silent.is_closed());
  EXPECT_THAT(ask(server->address(), "GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
}

TEST(http_server, silent_connections_do_not_keep_others_out) {
  const auto server =
      serve({.connections = 3, .request_bytes = 512, .life = std::chrono::minutes(10)});
  std::vector<std::unique_ptr<http_probe>> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(std::make_unique<http_probe>(server->address()));
  EXPECT_THAT(ask(server->address(), "GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_TRUE(silent.front()->is_closed());
}

TEST(http_server, a_large_answer_arrives_whole) {
  const std::string large(std::size_t{8} << 20, 'x');
  const auto server = serve({}, [&](const http_request&) {
    return http_response{200, "x", large};
  });
  const std::string answer = ask(server->address(), "GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(answer.substr(answer.find("\r\n\r\n") + 4), large);
}

TEST(http_server, ends_with_connections_open_and_gives_its_port_back) {
  comm::address where;
  {
    const auto server = serve();
    where = server->address();
    http_probe open(where);
    EXPECT_THAT(ask(where, "GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  }
  EXPECT_TRUE(http_server::start(where, [](const http_request&) { return http_response{}; }));
}

TEST(http_server, a_taken_port_is_an_error_that_names_it) {
  const auto server = serve();
  const auto second =
      http_server::start(server->address(), [](const http_request&) { return http_response{}; });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.failure().code, exit_code::bad_config);
  EXPECT_THAT(second.failure().message, HasSubstr(to_text(server->address())));
  EXPECT_THAT(second.failure().message, HasSubstr("Address already in use"));
  EXPECT_FALSE(http_server::start({.host = "no.such.host.invalid", .port = 0},
                                  [](const http_request&) { return http_response{}; }));
}

TEST(http_server, fifty_starts_leave_no_file_open) {
  const std::uint64_t before = facts_of_this_process().open_files;
  for (int i = 0; i < 50; ++i) {
    const auto server = serve();
    ask(server->address(), "GET / HTTP/1.1\r\n\r\n");
  }
  EXPECT_EQ(facts_of_this_process().open_files, before);
}

}  // namespace
}  // namespace troupe::actors
