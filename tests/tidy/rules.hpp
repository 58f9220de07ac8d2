// The rules that keep the tree as docs/architecture.md describes it, each a pure function over
// paths and texts. What a compiler or clang-format already notices is not checked here a second
// time.
#pragma once

#include "tests/tidy/source_tree.hpp"

namespace troupe::tidy {

// A folder includes only from the folders that stand below it, and every quoted include names a
// file by its path from the root.
findings include_directions(const source_tree& tree);

// Each third-party library is included only where it is at home.
findings library_homes(const source_tree& tree);

// Every folder with sources has a row with its promise in docs/architecture.md, and every row has
// its folder.
findings folder_promises(const source_tree& tree);

// Every tests/**/*_test.cpp is named in a CMakeLists.txt under tests/.
findings registered_tests(const source_tree& tree);

// Every source file is compiled: named in the CMakeLists.txt of its folder.
findings compiled_sources(const source_tree& tree);

// Every X/y.cpp has tests/X/y_test.cpp, or a line in tests/tidy/tested_elsewhere.txt that names the
// test which covers it and says why. A line that is not needed any more is a finding too.
findings mirrored_tests(const source_tree& tree);

// Code that feeds bits calls none of libm's transcendentals, no distribution of the standard
// library, no clock; no code depends on the locale.
findings forbidden_calls(const source_tree& tree);

// Longer than 500 lines, tabs, blanks at the end of lines, notes to oneself, lines left from
// debugging.
findings leftovers(const source_tree& tree);

// Every file in examples/ is named in a CMakeLists.txt under tests/, or in an example script that
// is.
findings run_examples(const source_tree& tree);

// Pages stand by themselves: each relative link and each named file exists, and no page names a
// folder of the machine that it was written on.
findings self_contained_pages(const source_tree& tree);

}  // namespace troupe::tidy
