#include "model/data/paths.hpp"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace troupe::model::data {
namespace {

error bad(std::string message) { return {exit_code::bad_data, std::move(message)}; }

int report_and_stop(const char*, int) { return 1; }

}  // namespace

result<std::vector<std::string>> expand_paths(const std::string& pattern) {
  if (pattern.empty()) return bad("a data path is empty; name a file or a pattern");
  struct stat facts {};
  if (::stat(pattern.c_str(), &facts) == 0) return std::vector<std::string>{pattern};
  if (pattern.find_first_of("*?[") == std::string::npos)
    return bad(fmt::format("data file {}: {}", pattern,
                           errno == ENOENT ? "no such file" : std::strerror(errno)));
  if (pattern.find("**") != std::string::npos)
    return bad(fmt::format(
        "data pattern {}: '**' is not supported; name each folder level, like 'corpus/*/*.txt'",
        pattern));

  glob_t found{};
  const int code = ::glob(pattern.c_str(), GLOB_NOSORT | GLOB_ERR, report_and_stop, &found);
  const int cause = errno;
  std::vector<std::string> paths;
  for (std::size_t i = 0; code == 0 && i < found.gl_pathc; ++i)
    paths.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (code == GLOB_NOMATCH || (code == 0 && paths.empty()))
    return bad(fmt::format("data pattern {}: matches no file", pattern));
  if (code != 0)
    return bad(fmt::format("data pattern {}: a folder in it cannot be read ({})", pattern,
                           std::strerror(cause)));
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace troupe::model::data
