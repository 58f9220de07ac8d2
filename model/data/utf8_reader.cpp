#include "model/data/utf8_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "model/data/utf8.hpp"

namespace troupe::model::data {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;
constexpr std::size_t head_bytes = 4096;  // enough to recognise an encoding

}  // namespace

result<utf8_reader> utf8_reader::open(const std::string& path) {
  auto file = input_file::open(path);
  if (!file) return file.failure();
  std::string head(std::min<std::uint64_t>(file->size(), head_bytes), '\0');
  if (auto read = file->read(0, std::as_writable_bytes(std::span(head))); !read)
    return read.failure();
  if (const std::string_view name = other_encoding(head); !name.empty()) {
    return error{exit_code::bad_data,
                 fmt::format("data file {}: looks like {}; text has to be UTF-8, convert it with "
                             "'iconv -f {} -t UTF-8'",
                             path, name, name.substr(0, 6))};
  }
  utf8_reader reader(std::move(*file));
  if (head.starts_with(byte_order_mark)) {
    reader.had_byte_order_mark_ = true;
    reader.offset_ = byte_order_mark.size();
  }
  return reader;
}

result<std::string_view> utf8_reader::next() {
  buffer_.erase(0, handed_on_);  // at most the three bytes of a character that the last piece cut
  offset_ += handed_on_;
  handed_on_ = 0;

  const std::size_t kept = buffer_.size();
  const std::uint64_t left = file_.size() - offset_ - kept;
  buffer_.resize(kept + std::min<std::uint64_t>(left, piece_bytes));
  const auto fresh = std::as_writable_bytes(std::span(buffer_)).subspan(kept);
  if (auto read = file_.read(offset_ + kept, fresh); !read) return read.failure();

  const utf8_scan scan = scan_utf8(buffer_);
  const bool at_end = fresh.size() == left;
  if (scan.valid < buffer_.size() && (!scan.cut_off || at_end)) {
    return error{exit_code::bad_data,
                 fmt::format("data file {}: not valid UTF-8 at byte {}: {}; if the file is in "
                             "another encoding, convert it (for example 'iconv -f WINDOWS-1252 -t "
                             "UTF-8')",
                             file_.path(), offset_ + scan.valid,
                             why_not_utf8(std::string_view(buffer_).substr(scan.valid)))};
  }
  handed_on_ = scan.valid;
  return std::string_view(buffer_).substr(0, scan.valid);
}

}  // namespace troupe::model::data
