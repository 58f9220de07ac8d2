#include "config/base/error.hpp"

#include <unistd.h>

#include <cstdio>

namespace troupe {

void fail_ensure(std::string_view message, const char* file, int line) {
  std::fprintf(stderr, "troupe: defect: %.*s (%s:%d)\n", static_cast<int>(message.size()),
               message.data(), file, line);
  std::fflush(stderr);
  _exit(static_cast<int>(exit_code::defect));
}

}  // namespace troupe
