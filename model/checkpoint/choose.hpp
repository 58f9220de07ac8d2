// Which checkpoint a run continues from. The newest whole one, found by looking at what is there:
// there is no "latest" pointer that could be ahead of the disk. What is passed over is told in
// words. A run never starts from nothing because something could not be read.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/checkpoint/load.hpp"

namespace troupe::checkpoint {

enum class condition : std::uint8_t {
  whole,       // as far as look() can tell
  unfinished,  // never published: the save was interrupted
  damaged,     // published, and something is wrong with it now
};
std::string_view name_of(condition c);

struct listed {
  std::uint64_t step = 0;
  std::string folder;  // its path
  condition state = condition::whole;
  std::string why;                   // if it is not whole
  std::optional<manifest> contents;  // if it is whole
};

// All checkpoints in `directory` by rising step; a directory that is not there has none.
result<std::vector<listed>> list(file_system& files, const std::string& directory);

struct wanted {
  enum class kind : std::uint8_t { newest, none, step };
  kind what = kind::newest;
  std::uint64_t step = 0;  // for kind::step
};

struct choice {
  std::optional<std::size_t> index;  // in the list; none: start from the beginning
  std::vector<std::string> skipped;  // one line each, newest first
};

// Pure. Fails if the wanted step is not whole, or if there are published checkpoints and none of
// them is whole.
result<choice> choose(std::span<const listed> all, const wanted& want);

struct resumed {
  std::optional<manifest> from;      // none: nothing was loaded, start from the beginning
  std::vector<std::string> skipped;  // lines for the log
};

// list, choose, `accept` (may refuse a manifest of another identity: that ends it), load; where a
// block turns out to be damaged only now, the next older checkpoint.
result<resumed> resume(file_system& files, const std::string& directory, const wanted& want,
                       const model::model_layout& layout, const block_places& into,
                       const std::function<status(const manifest&)>& accept);

}  // namespace troupe::checkpoint
