// "Did you mean ...?": the known word that a mistyped one is nearest to.
//
// Distance counts inserted, dropped, changed and swapped neighbouring letters; upper and lower case
// count as equal, and so do '-' and '_', because those are habits and not mistakes. A word farther
// away than a third of its length is no suggestion: a wrong guess costs the reader more than none.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

std::size_t edit_distance(std::string_view a, std::string_view b);

// The nearest candidate, the first of equals; nothing if none is near.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace troupe
