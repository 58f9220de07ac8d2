#include "actors/chaos/selector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "config/base/nearest.hpp"

namespace troupe::actors::chaos {
namespace {

using kind = selector::kind;

struct word {
  std::string_view text;
  kind what;
};

constexpr std::array words = {
    word{"domain", kind::domain},   word{"coordinator", kind::coordinator},
    word{"primary", kind::primary}, word{"backup", kind::backup},
    word{"holder", kind::holder},   word{"layer", kind::layer},
    word{"joiner", kind::joiner},   word{"receiver", kind::receiver},
    word{"link", kind::link},       word{"pair", kind::pair},
    word{"side", kind::side},       word{"any", kind::any},
    word{"any-not", kind::any_not}, word{"all", kind::all},
};

error bad(std::string message) { return {exit_code::bad_config, std::move(message)}; }

std::optional<std::uint32_t> whole(std::string_view text) {
  std::uint32_t n = 0;
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (text.empty() || trouble != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return n;
}

std::optional<member_id> member(std::string_view text) {
  if (!text.starts_with('m')) return std::nullopt;
  const auto n = whole(text.substr(1));
  if (!n) return std::nullopt;
  return member_id(*n);
}

std::optional<std::vector<member_id>> members(std::string_view text, char between) {
  std::vector<member_id> all;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(between, at), text.size());
    const auto one = member(text.substr(at, end - at));
    if (!one) return std::nullopt;
    all.push_back(*one);
    at = end + 1;
  }
  return all;
}

// Two members apart, in the form of the example.
result<selector> two_members(selector s, std::string_view rest, char between,
                             std::string_view example) {
  const auto both = members(rest, between);
  if (!both || both->size() != 2 || (*both)[0] == (*both)[1]) {
    return bad(fmt::format("takes two members, as in {}", example));
  }
  s.members = *both;
  return s;
}

error unknown(std::string_view head) {
  std::vector<std::string> names = {"m0"};
  for (const word& w : words) names.emplace_back(w.text);
  const auto near = nearest(head, names);
  return bad(fmt::format("there is no target \"{}\"{}", head,
                         near ? fmt::format("; did you mean {}?", *near)
                              : "; targets are m0, coordinator, any, ... (docs/chaos.md)"));
}

std::vector<member_id> sorted(std::vector<member_id> all) {
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

}  // namespace

result<selector> parse_selector(std::string_view text) {
  selector s;
  if (const auto m = member(text)) {
    s.what = kind::member;
    s.members = {*m};
    return s;
  }
  const std::size_t colon = text.find(':');
  const std::string_view head = text.substr(0, colon);
  const std::string_view rest =
      colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  const auto found = std::ranges::find(words, head, &word::text);
  if (found == words.end()) return unknown(head);
  s.what = found->what;
  switch (s.what) {
    case kind::coordinator:
    case kind::joiner:
    case kind::any:
    case kind::all:
      if (colon != std::string_view::npos) return bad(fmt::format("{} takes no \":\"", head));
      return s;
    case kind::receiver:
      if (rest.empty()) return bad("takes the id of a fault, as in receiver:head");
      s.fault = std::string(rest);
      return s;
    case kind::any_not: {
      result<selector> inner = parse_selector(rest);
      if (!inner) return bad(fmt::format("after any-not: {}", inner.failure().message));
      if (inner->names_links() || inner->what == kind::any || inner->what == kind::all ||
          inner->what == kind::any_not) {
        return bad("any-not takes a member, as in any-not:coordinator");
      }
      s.excepted = {*inner};
      return s;
    }
    case kind::link:
      return two_members(std::move(s), rest, '>', "link:m0>m2");
    case kind::pair:
      return two_members(std::move(s), rest, '-', "pair:m0-m2");
    case kind::side: {
      const auto all = members(rest, ',');
      if (!all) return bad("takes members, as in side:m0,m1");
      s.members = sorted(*all);
      return s;
    }
    default: {
      const auto n = whole(rest);
      if (!n) return bad(fmt::format("takes a number, as in {}:1", head));
      s.number = *n;
      return s;
    }
  }
}

std::string to_text(const selector& s) {
  if (s.what == kind::member) return fmt::format("m{}", s.members.front().value);
  std::string text(std::ranges::find(words, s.what, &word::what)->text);
  const auto listed = [&](std::string_view between) {
    std::string all;
    for (const member_id m : s.members) {
      all += fmt::format("{}m{}", all.empty() ? "" : between, m.value);
    }
    return all;
  };
  switch (s.what) {
    case kind::coordinator:
    case kind::joiner:
    case kind::any:
    case kind::all:
      return text;
    case kind::receiver:
      return text + ":" + s.fault;
    case kind::any_not:
      return text + ":" + to_text(s.excepted.front());
    case kind::link:
      return text + ":" + listed(">");
    case kind::pair:
      return text + ":" + listed("-");
    case kind::side:
      return text + ":" + listed(",");
    default:
      return fmt::format("{}:{}", text, s.number);
  }
}

std::vector<member_id> named_members(const selector& s) {
  std::vector<member_id> all = s.members;
  for (const selector& inner : s.excepted) {
    const std::vector<member_id> more = named_members(inner);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace troupe::actors::chaos
