// Three kinds of trouble, three ways.
//
// Our own mistake: `ensure(condition, message)` stops the process (exit 70), also in release
// builds. An expected failure (disk full, bad config, bad data): a returned `result<T>`, which
// holds a value or an `error`. A library's exception: caught in that library's home and turned into
// a result.
//
// An error carries the exit code that the program ends with if nobody can do anything about it; the
// codes are those of sysexits.h, because batch scripts tell "requeue me" from "call a person" by
// them alone.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace troupe {

enum class exit_code : int {
  ok = 0,
  usage = 64,        // wrong command line
  bad_data = 65,     // file, position and value are in the message
  too_few = 69,      // too few members left
  defect = 70,       // an `ensure` failed
  cannot_use = 73,   // the run directory cannot be used
  io = 74,           // input or output failed
  interrupted = 75,  // asked to stop; resume me
  bad_config = 78,   // file, line, key and nearest key are in the message
};

struct error {
  exit_code code = exit_code::defect;
  std::string message;  // what happened, to whom, the exact cause, and what to try
};

// Prints `message` with its place and aborts the process with exit code 70.
[[noreturn]] void fail_ensure(std::string_view message, const char* file, int line);

// `ensure(condition, message)`: a condition that only a defect of ours can break.
#define ensure(condition, message)                          \
  do {                                                      \
    if (!(condition)) [[unlikely]]                          \
      ::troupe::fail_ensure((message), __FILE__, __LINE__); \
  } while (false)

// A value or an error. `if (!r) return r.failure();` is the usual way to pass an error on.
template <class T>
class [[nodiscard]] result {
 public:
  result(T value) : state_(std::move(value)) {}          // NOLINT: implicit on purpose
  result(error failure) : state_(std::move(failure)) {}  // NOLINT: implicit on purpose

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  // By value: a reference into a result that is about to end would dangle.
  T operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  T& value() {
    ensure(state_.index() == 0, "a result's value was taken although it holds an error: " + text());
    return std::get<0>(state_);
  }
  const T& value() const {
    ensure(state_.index() == 0, "a result's value was taken although it holds an error: " + text());
    return std::get<0>(state_);
  }
  const error& failure() const {
    ensure(state_.index() == 1, "a result's error was taken although it holds a value");
    return std::get<1>(state_);
  }

 private:
  std::string text() const { return state_.index() == 1 ? std::get<1>(state_).message : ""; }
  std::variant<T, error> state_;
};

// Success without a value.
struct done {};
using status = result<done>;

}  // namespace troupe
