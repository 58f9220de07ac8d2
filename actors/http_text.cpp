// The two ends of a connection's text, behind http_server.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "actors/http_server.hpp"

namespace troupe::actors {
namespace {

std::string_view reason(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Error";
  }
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

bool is_visible(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Cuts the first line off, without its end; CRLF or LF.
std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool read_request_line(std::string_view line, http_request& into) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return false;
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (!is_token(method) || !target.starts_with('/') || !is_visible(target)) return false;
  if (!line.substr(last + 1).starts_with("HTTP/1.")) return false;
  into.method = method;
  into.path = target.substr(0, target.find('?'));
  return true;
}

bool read_header(std::string_view line, http_request& into) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return false;
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return into.headers.emplace(std::move(name), trimmed(line.substr(colon + 1))).second;
}

}  // namespace

http_reading read_http_request(std::string_view text, std::size_t limit, http_request& into) {
  into = {};
  // Rubbish is refused with its first line, not only when it has filled its place.
  const std::size_t line_end = text.find('\n');
  if (line_end == std::string_view::npos) {
    return text.size() >= limit ? http_reading::too_large : http_reading::unfinished;
  }
  std::string_view rest = text;
  if (!read_request_line(next_line(rest), into)) return http_reading::malformed;
  while (true) {
    if (rest.find('\n') == std::string_view::npos) {
      return text.size() >= limit ? http_reading::too_large : http_reading::unfinished;
    }
    const std::string_view line = next_line(rest);
    if (line.empty()) break;
    if (!read_header(line, into)) return http_reading::malformed;
  }
  if (into.headers.contains("transfer-encoding")) return http_reading::malformed;
  const auto length = into.headers.find("content-length");
  if (length == into.headers.end()) return http_reading::finished;
  std::size_t bytes = 0;
  const char* const end = length->second.data() + length->second.size();
  const auto [stop, trouble] = std::from_chars(length->second.data(), end, bytes);
  if (trouble == std::errc::result_out_of_range) return http_reading::too_large;
  if (trouble != std::errc{} || stop != end) return http_reading::malformed;
  if (bytes > limit || text.size() - rest.size() + bytes > limit) return http_reading::too_large;
  return rest.size() >= bytes ? http_reading::finished : http_reading::unfinished;
}

std::string write_http_response(const http_response& r, bool with_body) {
  std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
      "Connection: close\r\n\r\n",
      r.code, reason(r.code), r.type, r.body.size());
  if (with_body) text += r.body;
  return text;
}

}  // namespace troupe::actors
