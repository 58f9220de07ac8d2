// The repository as the rules see it: paths and texts, nothing else. A rule is a pure function over
// this, so a wrong example is three lines of a test and needs no file.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::tidy {

// Path relative to the repository's root, with '/', to the whole text.
using source_tree = std::map<std::string, std::string>;

// Everything under `root` that is kept under version control by convention: not build/, outputs/
// and hidden folders, except .ci.
source_tree read_tree(const std::filesystem::path& root);

struct finding {
  std::string path;
  std::size_t line = 0;  // 1-based; 0: the whole file
  std::string message;   // what is wrong and what to do
};
using findings = std::vector<finding>;

// "path:line: message" a line each.
std::string print(const findings& all);

bool is_source(std::string_view path);         // .cpp or .hpp
std::string folder_of(std::string_view path);  // "" for files at the root
std::vector<std::string> lines_of(const std::string& text);
// The text with comments and the contents of string and character literals replaced by blanks;
// lines stay lines.
std::string code_only(const std::string& text);

}  // namespace troupe::tidy
