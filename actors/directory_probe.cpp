#include "actors/directory_probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "config/base/json.hpp"

namespace troupe::actors {
namespace {

constexpr std::size_t races = 4;
constexpr std::uint64_t small_file = 1 << 16;
constexpr std::string_view folder_stem = "probe-";

std::string folder_of(const std::string& run_directory, const std::string& probe) {
  return join_path(run_directory, std::string(folder_stem) + probe);
}
std::string race_path(const std::string& folder, std::size_t race) {
  return join_path(folder, fmt::format("race-{}", race));
}
std::string answer_path(const std::string& folder, const probed_member& m) {
  return join_path(folder, fmt::format("answer-{}", m.id.value));
}

std::string print(const probe_answer& a) {
  json_page page;
  page.text("secret", a.secret).text("identity", a.identity).begin_array("races");
  for (const race_result& r : a.races) {
    page.begin_element().boolean("told_won", r.told_won).text("holder", r.holder).end();
  }
  return page.finish();
}

result<probe_answer> parse(std::string_view text, const std::string& path) {
  result<nlohmann::json> parsed = parse_json(text, path);
  if (!parsed) return parsed.failure();
  json_fields fields(*parsed, path);
  probe_answer a;
  a.secret = fields.text("secret");
  a.identity = fields.text("identity");
  fields.each("races", [&](json_fields& one) {
    race_result& r = a.races.emplace_back();
    r.told_won = one.boolean("told_won");
    r.holder = one.text("holder");
  });
  if (status whole = fields.finish(); !whole) return whole.failure();
  return a;
}

std::string text_or_nothing(file_system& files, const std::string& path) {
  result<std::string> text = read_file(files, path, small_file);
  return text ? *text : "";
}

std::string called(const probed_member& m) { return fmt::format("{} on {}", m.name, m.host); }

error refusal(const probe_facts& facts, const std::string& what) {
  return {exit_code::cannot_use,
          fmt::format("{} cannot hold a run of several workers: {}; choose a directory on a local "
                      "disk, or on NFS version 4, with --run-dir",
                      facts.directory, what)};
}

// What is wrong with one race; nothing if one member won and everybody saw so.
std::optional<error> judge_race(const probe_facts& facts, const std::vector<bool>& counts,
                                std::size_t race) {
  const std::string& holder = facts.holders[race];
  if (holder.empty()) return refusal(facts, "a name that several members made is not there");
  const auto is_holder = [&](const probed_member& m) { return m.identity == holder; };
  if (std::ranges::none_of(facts.members, is_holder)) {
    return refusal(facts, fmt::format("{} appeared in it, which no member has written", holder));
  }
  const probed_member* winner = nullptr;
  const probed_member* reader = nullptr;
  for (std::size_t i = 0; i < facts.members.size(); ++i) {
    if (!counts[i]) continue;
    const probed_member& m = facts.members[i];
    const race_result& met = facts.answers[i]->races[race];
    if (met.holder != holder && met.holder != m.identity) reader = &m;
    if (!met.told_won && met.holder != m.identity) continue;
    if (winner != nullptr) {
      return refusal(facts, fmt::format("it let both {} and {} make the same name", called(*winner),
                                        called(m)));
    }
    winner = &m;
  }
  if (reader != nullptr) {
    return refusal(facts, fmt::format("{} reads another content than others under the same name",
                                      called(*reader)));
  }
  if (winner != nullptr && winner->identity != holder) {
    return refusal(facts, fmt::format("a name that {} had made was overwritten", called(*winner)));
  }
  return std::nullopt;
}

}  // namespace

probe_verdict judge(const probe_facts& facts) {
  const std::size_t n = facts.members.size();
  ensure(facts.answers.size() == n && facts.why_none.size() == n,
         "a probe of the run directory was judged without all its answers");
  probe_verdict verdict;
  verdict.sees_it.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::optional<probe_answer>& a = facts.answers[i];
    std::string why = facts.why_none[i];
    if (a && a->secret != facts.secret) why = "it answered another question";
    if (a && a->identity != facts.members[i].identity) why = "another process answered for it";
    if (a && a->races.size() != facts.holders.size()) why = "its answer is incomplete";
    if (!a && why.empty()) why = "no answer of it appeared";
    verdict.sees_it[i] = why.empty();
    if (why.empty()) continue;
    verdict.warnings.push_back(fmt::format(
        "{} does not share the run directory {}: {}; it cannot become coordinator; if it has the "
        "same path there, that is another disk",
        called(facts.members[i]), facts.directory, why));
  }
  if (std::ranges::none_of(verdict.sees_it, std::identity())) return verdict;
  for (std::size_t race = 0; race < facts.holders.size() && !verdict.refused; ++race) {
    verdict.refused = judge_race(facts, verdict.sees_it, race);
  }
  return verdict;
}

status ask_probe(file_system& files, const std::string& run_directory, const std::string& probe,
                 const std::string& secret) {
  const std::string folder = folder_of(run_directory, probe);
  if (status made = make_directories(files, folder); !made) return made;
  return replace(files, join_path(folder, "question"), secret);
}

probe_facts read_probe(file_system& files, const std::string& run_directory,
                       const std::string& probe, const std::string& secret,
                       std::vector<probed_member> members) {
  const std::string folder = folder_of(run_directory, probe);
  probe_facts facts;
  facts.directory = run_directory;
  facts.secret = secret;
  facts.members = std::move(members);
  for (const probed_member& m : facts.members) {
    std::optional<probe_answer>& answer = facts.answers.emplace_back();
    std::string& why = facts.why_none.emplace_back();
    const std::string path = answer_path(folder, m);
    result<bool> there = files.exists(path);
    if (there && !*there) continue;
    result<std::string> text = there ? read_file(files, path, small_file) : there.failure();
    result<probe_answer> parsed = text ? parse(*text, path) : text.failure();
    if (parsed) {
      answer = std::move(*parsed);
    } else {
      why = parsed.failure().message;
    }
  }
  for (std::size_t race = 0; race < races; ++race) {
    facts.holders.push_back(text_or_nothing(files, race_path(folder, race)));
  }
  return facts;
}

status end_probe(file_system& files, const std::string& run_directory, const std::string& probe) {
  return remove_all(files, folder_of(run_directory, probe));
}

status remove_probes(file_system& files, const std::string& run_directory) {
  result<std::vector<directory_entry>> entries = files.list(run_directory);
  if (!entries) return entries.failure();
  for (const directory_entry& e : *entries) {
    if (!e.name.starts_with(folder_stem)) continue;
    if (status removed = remove_all(files, join_path(run_directory, e.name)); !removed) {
      return removed;
    }
  }
  return done{};
}

status answer_probe(file_system& files, const std::string& run_directory, const std::string& probe,
                    const probed_member& me) {
  const std::string folder = folder_of(run_directory, probe);
  probe_answer answer;
  answer.identity = me.identity;
  result<std::string> secret = read_file(files, join_path(folder, "question"), small_file);
  if (!secret) {
    return error{exit_code::cannot_use,
                 fmt::format("{} does not see in {} what the coordinator wrote there: {}; is it "
                             "the same directory?",
                             called(me), run_directory, secret.failure().message)};
  }
  answer.secret = *secret;
  for (std::size_t race = 0; race < races; ++race) {
    const std::string path = race_path(folder, race);
    const result<publish_outcome> said = publish(files, path, me.identity);
    race_result& met = answer.races.emplace_back();
    met.told_won = said && *said == publish_outcome::published;
    met.holder = text_or_nothing(files, path);
  }
  return replace(files, answer_path(folder, me), print(answer));
}

}  // namespace troupe::actors
