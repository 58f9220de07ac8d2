// Text as people have it: plain files and JSON lines, read in pieces of bounded size and handed on
// document by document, checked on the way. Reading never just stops: whatever is not valid UTF-8
// or not the JSON that was promised is an error with file and place.
//
// Plain text: one file is one document. JSON lines: one object a line with the text under one key;
// blank lines are skipped, lines may be of any length. In both a byte-order mark is dropped, CR LF
// inside a text stays as it is, and zero bytes are text like any other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/error.hpp"

namespace troupe::model::data {

// Receives documents. An error that it returns ends the reading.
class document_sink {
 public:
  virtual ~document_sink() = default;
  virtual status add(std::string_view bytes) = 0;  // the next piece of the current document
  virtual status end_document() = 0;
};

struct document_facts {
  std::uint64_t file_bytes = 0;
  std::uint64_t text_bytes = 0;  // what the sink received
  std::uint64_t documents = 0;
  std::uint64_t blank_lines = 0;  // JSON lines
  bool had_byte_order_mark = false;
  bool had_crlf = false;  // plain text: CR LF is part of the document
};

result<document_facts> read_text_file(const std::string& path, document_sink& sink);
result<document_facts> read_json_lines(const std::string& path, const std::string& key,
                                       document_sink& sink);

// Sentences that a person may want to read once: marks dropped, line ends kept, lines skipped.
std::vector<std::string> notes_about(const std::string& path, const document_facts& facts);

}  // namespace troupe::model::data
