#include "model/hub/safetensors_events.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "config/base/json.hpp"

namespace troupe::model {
namespace {

using nlohmann::json;

// Where the reader is; each state names what it accepts.
enum class state {
  start,     // '{'
  names,     // a tensor's name or "__metadata__", or the end
  entry,     // '{' of a tensor
  fields,    // one of the three fields, or the end with all of them
  type,      // a text
  shape,     // '['
  sizes,     // whole numbers, or the end
  offsets,   // '['
  bounds,    // exactly two whole numbers
  metadata,  // '{'
  keys,      // a key, or the end
  value,     // a text
  finished,
};

class header_events final : public json::json_sax_t {
 public:
  raw_header header;
  std::string problem;

  bool key(string_t& name) override {
    if (state_ == state::names) return tensor_or_metadata(name);
    if (state_ == state::fields) return field(name);
    if (state_ != state::keys) return unexpected("a key");
    if (header.metadata.contains(name)) {
      return refuse(fmt::format("the metadata key {} appears twice", json_quoted(name)));
    }
    key_ = name;
    return go(state::value);
  }

  bool string(string_t& text) override {
    if (state_ == state::type) {
      header.tensors.back().type = text;
      return go(state::fields);
    }
    if (state_ == state::value) {
      header.metadata.emplace(key_, text);
      return go(state::keys);
    }
    return unexpected("a text");
  }

  bool number_unsigned(number_unsigned_t n) override {
    if (state_ == state::sizes) {
      header.tensors.back().shape.push_back(n);
      return true;
    }
    if (state_ == state::bounds && bounds_ < 2) {
      header.tensors.back().offsets[bounds_++] = n;
      return true;
    }
    return unexpected("a number");
  }

  bool start_object(std::size_t) override {
    if (state_ == state::start) return go(state::names);
    if (state_ == state::entry) return go(state::fields);
    if (state_ == state::metadata) return go(state::keys);
    return unexpected("an object");
  }

  bool end_object() override {
    if (state_ == state::names) return go(state::finished);
    if (state_ == state::keys) return go(state::names);
    if (state_ != state::fields) return unexpected("the end of an object");
    if (seen_ == all_fields) return go(state::names);
    const char* missing = !(seen_ & 1) ? "dtype" : !(seen_ & 2) ? "shape" : "data_offsets";
    return refuse(fmt::format("{} is missing", missing));
  }

  bool start_array(std::size_t) override {
    if (state_ == state::shape) return go(state::sizes);
    if (state_ == state::offsets) return go(state::bounds);
    return unexpected("an array");
  }

  bool end_array() override {
    if (state_ == state::sizes) return go(state::fields);
    if (state_ != state::bounds || bounds_ != 2) return unexpected("the end of an array");
    return go(state::fields);
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("true or false"); }
  bool number_integer(number_integer_t n) override {
    return unexpected(fmt::format("the negative number {}", n));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return unexpected(fmt::format("the number {}, which is not a whole one below 2^64", text));
  }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const json::exception& e) override {
    const std::string_view what = e.what();
    const auto at = what.rfind(": ");
    return refuse(fmt::format("the header is not valid JSON at its byte {}: {}", position,
                              at == std::string_view::npos ? what : what.substr(at + 2)));
  }

 private:
  static constexpr unsigned all_fields = 7;

  bool go(state next) {
    state_ = next;
    return true;
  }
  bool refuse(std::string what) {
    const bool inside =
        state_ >= state::entry && state_ <= state::bounds && !header.tensors.empty();
    problem = inside ? fmt::format("tensor {}: {}", json_quoted(header.tensors.back().name), what)
                     : std::move(what);
    return false;
  }
  bool unexpected(std::string_view found) {
    static constexpr std::string_view wanted[] = {"an object of tensors",
                                                  "a tensor's name",
                                                  "an object with dtype, shape and data_offsets",
                                                  "one of dtype, shape, data_offsets",
                                                  "a text as dtype",
                                                  "an array as shape",
                                                  "whole numbers as shape",
                                                  "an array as data_offsets",
                                                  "exactly two whole numbers as data_offsets",
                                                  "an object of texts as __metadata__",
                                                  "a metadata key",
                                                  "a text as metadata",
                                                  "nothing more"};
    return refuse(fmt::format("expected {}, found {}", wanted[static_cast<int>(state_)], found));
  }

  bool tensor_or_metadata(const std::string& name) {
    if (!names_.insert(name).second) {
      return refuse(fmt::format("the name {} appears twice", json_quoted(name)));
    }
    if (name == "__metadata__") return go(state::metadata);
    header.tensors.push_back({name, {}, {}, {}});
    seen_ = 0;
    bounds_ = 0;
    return go(state::entry);
  }

  bool field(const std::string& name) {
    const unsigned bit = name == "dtype" ? 1 : name == "shape" ? 2 : name == "data_offsets" ? 4 : 0;
    if (bit == 0) return refuse(fmt::format("unknown field {}", json_quoted(name)));
    if (seen_ & bit) return refuse(fmt::format("the field {} appears twice", name));
    seen_ |= bit;
    return go(bit == 1 ? state::type : bit == 2 ? state::shape : state::offsets);
  }

  state state_ = state::start;
  std::unordered_set<std::string> names_;
  std::string key_;      // of the metadata value that follows
  unsigned seen_ = 0;    // fields of the current tensor
  unsigned bounds_ = 0;  // numbers in its data_offsets
};

}  // namespace

result<raw_header> read_header_events(std::string_view text) {
  header_events events;
  if (json::sax_parse(text, &events)) return std::move(events.header);
  return error{exit_code::bad_data, std::move(events.problem)};
}

}  // namespace troupe::model
