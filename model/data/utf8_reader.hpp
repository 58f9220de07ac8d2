// A text file in pieces, each of them whole UTF-8 characters. Takes the byte-order mark away and
// refuses other encodings by name and invalid bytes by offset.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/data/input_file.hpp"

namespace troupe::model::data {

class utf8_reader {
 public:
  static result<utf8_reader> open(const std::string& path);

  // The next piece, empty at the end of the file; valid until the next call.
  result<std::string_view> next();

  std::uint64_t file_bytes() const { return file_.size(); }
  bool had_byte_order_mark() const { return had_byte_order_mark_; }

 private:
  explicit utf8_reader(input_file file) : file_(std::move(file)) {}
  input_file file_;
  std::string buffer_;
  std::uint64_t offset_ = 0;   // of the buffer's first byte in the file
  std::size_t handed_on_ = 0;  // bytes of the buffer that the last piece ended at
  bool had_byte_order_mark_ = false;
};

}  // namespace troupe::model::data
