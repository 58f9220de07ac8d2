#include "model/checkpoint/choose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "model/checkpoint/folder.hpp"

namespace troupe::checkpoint {
namespace {

listed look_at(file_system& files, const std::string& folder, const folder_identity& id) {
  listed entry{id.step, folder, condition::unfinished, "", std::nullopt};
  const std::string manifest_path = join_path(folder, manifest_name);
  if (id.partial) {
    entry.why = "its save was interrupted before all files were written";
    return entry;
  }
  auto finished = files.exists(manifest_path);
  if (finished && !*finished) {
    entry.why = fmt::format("{} is missing: its save was interrupted", manifest_path);
    return entry;
  }
  auto contents = finished ? look(files, folder) : result<manifest>(finished.failure());
  if (contents) {
    entry.state = condition::whole;
    entry.contents = *std::move(contents);
  } else {
    entry.state = condition::damaged;
    entry.why = contents.failure().message;
  }
  return entry;
}

std::string line(const listed& entry) {
  return fmt::format("skipped the {} checkpoint of step {}: {}", name_of(entry.state), entry.step,
                     entry.why);
}

}  // namespace

std::string_view name_of(condition c) {
  switch (c) {
    case condition::whole:
      return "whole";
    case condition::unfinished:
      return "unfinished";
    case condition::damaged:
      return "damaged";
  }
  return "";
}

result<std::vector<listed>> list(file_system& files, const std::string& directory) {
  std::vector<listed> all;
  auto there = files.exists(directory);
  if (!there) return there.failure();
  if (!*there) return all;
  auto entries = files.list(directory);
  if (!entries) return entries.failure();
  for (const directory_entry& e : *entries) {
    const auto id = parse_folder_name(e.name);
    if (!id || !e.is_directory) continue;
    all.push_back(look_at(files, join_path(directory, e.name), *id));
  }
  std::ranges::sort(all, {}, [](const listed& e) { return std::tie(e.step, e.folder); });
  return all;
}

result<choice> choose(std::span<const listed> all, const wanted& want) {
  choice c;
  if (want.what == wanted::kind::none) return c;
  std::string damaged;
  for (std::size_t i = all.size(); i-- > 0;) {
    const listed& entry = all[i];
    if (want.what == wanted::kind::step && entry.step != want.step) continue;
    if (entry.state == condition::whole) {
      c.index = i;
      return c;
    }
    const bool has_whole_twin = std::ranges::any_of(all, [&](const listed& other) {
      return other.step == entry.step && other.state == condition::whole;
    });
    if (has_whole_twin) continue;  // an interrupted try at a step that was saved after all
    c.skipped.push_back(line(entry));
    if (entry.state == condition::damaged) damaged += "\n  " + c.skipped.back();
  }
  if (want.what == wanted::kind::step) {
    std::string steps;
    for (const listed& entry : all) {
      if (entry.state == condition::whole) steps += fmt::format(" {}", entry.step);
    }
    return error{
        c.skipped.empty() ? exit_code::cannot_use : exit_code::io,
        fmt::format("there is no whole checkpoint of step {}{}{}; whole ones:{}", want.step,
                    c.skipped.empty() ? "" : ": ", c.skipped.empty() ? "" : c.skipped.front(),
                    steps.empty() ? " none" : steps)};
  }
  if (damaged.empty()) return c;
  return error{
      exit_code::io,
      "no checkpoint can be read, and a run does not start again from nothing where it has "
      "saved before; repair or move them away, or use another run directory:" +
          damaged};
}

result<resumed> resume(file_system& files, const std::string& directory, const wanted& want,
                       const model::model_layout& layout, const block_places& into,
                       const std::function<status(const manifest&)>& accept) {
  auto all = list(files, directory);
  if (!all) return all.failure();
  for (;;) {
    auto chosen = choose(*all, want);
    if (!chosen) return chosen.failure();
    if (!chosen->index) return resumed{std::nullopt, std::move(chosen->skipped)};
    listed& entry = (*all)[*chosen->index];
    if (auto s = accept(*entry.contents); !s) return s.failure();
    auto loaded = load(files, entry.folder, layout, into);
    if (loaded) return resumed{*std::move(loaded), std::move(chosen->skipped)};
    entry.state = condition::damaged;
    entry.why = loaded.failure().message;
  }
}

}  // namespace troupe::checkpoint
