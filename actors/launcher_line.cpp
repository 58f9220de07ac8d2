#include "actors/launcher_line.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace troupe::actors {
namespace {

constexpr std::string_view leave_word = "leave ", note_word = "note ";
constexpr std::chrono::milliseconds between_looks{5};

// Cuts a number and the space behind it off.
bool take_number(std::string_view& text, std::uint64_t& number) {
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto used = static_cast<std::size_t>(end - text.data());
  if (trouble != std::errc{} || used == text.size() || text[used] != ' ') return false;
  text.remove_prefix(used + 1);
  return true;
}

}  // namespace

std::string print_order(const launcher_order& order) {
  if (const auto* leave = std::get_if<leave_order>(&order)) {
    return std::string(leave_word) + leave->why;
  }
  const auto& note = std::get<world_note>(order);
  return fmt::format("{}{} {} {}", note_word, note.from, note.to, note.asked);
}

std::optional<launcher_order> parse_order(const std::string& text) {
  std::string_view rest = text;
  if (rest.starts_with(leave_word)) {
    rest.remove_prefix(leave_word.size());
    return leave_order{std::string(rest)};
  }
  if (!rest.starts_with(note_word)) return std::nullopt;
  rest.remove_prefix(note_word.size());
  world_note note;
  if (!take_number(rest, note.from) || !take_number(rest, note.to)) return std::nullopt;
  note.asked = rest;
  return note;
}

result<line_ends> open_launcher_line() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    return error{exit_code::io,
                 fmt::format("cannot make a line to a worker: {}", std::strerror(errno))};
  }
  return line_ends{ends[0], ends[1]};
}

bool tell_worker(int fd, const launcher_order& order) {
  const std::string text = print_order(order);
  return send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(text.size());
}

std::optional<launcher_order> launcher_line::next() {
  if (fd_ < 0) return std::nullopt;
  const time_since_start now = clock_->now();
  if (now < next_look_) return std::nullopt;
  std::array<char, 4096> text{};
  const ssize_t got = recv(fd_, text.data(), text.size(), MSG_DONTWAIT);
  if (got > 0) return parse_order({text.data(), static_cast<std::size_t>(got)});
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) fd_ = -1;  // the launcher is gone
  next_look_ = now + between_looks;
  return std::nullopt;
}

}  // namespace troupe::actors
