#include "tests/tidy/source_tree.hpp"

#include <fstream>
#include <sstream>

namespace troupe::tidy {
namespace {

namespace fs = std::filesystem;

bool is_skipped_folder(const fs::path& name) {
  const std::string text = name.string();
  if (text == ".ci") return false;
  return text.starts_with(".") || text == "build" || text == "outputs" || text == "__pycache__";
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

enum class state { code, line_comment, block_comment, literal, character, raw };

}  // namespace

source_tree read_tree(const fs::path& root) {
  source_tree tree;
  auto at = fs::recursive_directory_iterator(root);
  for (; at != fs::recursive_directory_iterator(); ++at) {
    if (at->is_directory() && is_skipped_folder(at->path().filename())) {
      at.disable_recursion_pending();
    } else if (at->is_regular_file()) {
      tree.emplace(fs::relative(at->path(), root).generic_string(), read(at->path()));
    }
  }
  return tree;
}

std::string print(const findings& all) {
  std::string text;
  for (const finding& f : all) {
    text += f.path;
    if (f.line > 0) text += ":" + std::to_string(f.line);
    text += ": " + f.message + "\n";
  }
  return text;
}

bool is_source(std::string_view path) { return path.ends_with(".cpp") || path.ends_with(".hpp"); }

std::string folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "" : std::string(path.substr(0, slash));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string code_only(const std::string& text) {
  std::string code = text;
  state now = state::code;
  std::string raw_end;
  const auto blank = [&](std::size_t i) {
    if (code[i] != '\n') code[i] = ' ';
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    switch (now) {
      case state::code:
        if (c == '/' && (next == '/' || next == '*')) {
          now = next == '/' ? state::line_comment : state::block_comment;
          blank(i);
          blank(++i);
        } else if (c == '"' && i > 0 && text[i - 1] == 'R') {
          const std::size_t open = text.find('(', i);
          if (open == std::string::npos) break;
          raw_end = ")" + text.substr(i + 1, open - i - 1) + "\"";
          now = state::raw;
        } else if (c == '"') {
          now = state::literal;
        } else if (c == '\'' && !(i > 0 && std::isalnum(static_cast<unsigned char>(text[i - 1])))) {
          now = state::character;  // not the separator in 1'000'000
        }
        break;
      case state::line_comment:
        if (c == '\n') now = state::code;
        blank(i);
        break;
      case state::block_comment:
        blank(i);
        if (c == '*' && next == '/') {
          blank(++i);
          now = state::code;
        }
        break;
      case state::literal:
      case state::character:
        if (c == (now == state::literal ? '"' : '\'')) {
          now = state::code;
          break;
        }
        blank(i);
        if (c == '\\' && i + 1 < text.size()) blank(++i);
        break;
      case state::raw:
        if (text.compare(i, raw_end.size(), raw_end) == 0) {
          i += raw_end.size() - 1;
          now = state::code;
        } else {
          blank(i);
        }
        break;
    }
  }
  return code;
}

}  // namespace troupe::tidy
