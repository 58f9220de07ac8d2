#include "model/data/documents.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/data/utf8_reader.hpp"

namespace troupe::model::data {
namespace {

using nlohmann::json;

class json_line_reader {
 public:
  json_line_reader(const std::string& path, const std::string& key, document_sink& sink)
      : path_(path), key_(key), sink_(sink) {}

  document_facts facts;

  status take(std::string_view line) {
    ++number_;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
      ++facts.blank_lines;
      return done{};
    }
    try {
      const json object = json::parse(line);
      if (!object.is_object())
        return bad(fmt::format("a JSON object is needed, this is {}", object.type_name()));
      const auto found = object.find(key_);
      if (found == object.end())
        return bad(fmt::format("has no key '{}' (it has: {})", key_, keys_of(object)));
      if (!found->is_string())
        return bad(fmt::format("'{}' has to be a string, it is {}", key_, found->type_name()));
      const auto& text = found->get_ref<const std::string&>();
      facts.text_bytes += text.size();
      ++facts.documents;
      if (auto added = sink_.add(text); !added) return added;
      return sink_.end_document();
    } catch (const json::exception& e) {
      const std::string_view what =
          e.what();  // "[json.exception.parse_error.101] parse error at ..."
      const std::size_t label = what.find("] ");
      return bad(fmt::format("not valid JSON: {}",
                             label == std::string_view::npos ? what : what.substr(label + 2)));
    }
  }

 private:
  error bad(const std::string& cause) const {
    return {exit_code::bad_data, fmt::format("data file {}, line {}: {}", path_, number_, cause)};
  }

  static std::string keys_of(const json& object) {
    std::string names;
    for (const auto& [name, value] : object.items()) {
      if (names.size() > 60) return names + ", ...";
      names += (names.empty() ? "" : ", ") + name;
    }
    return names.empty() ? "none" : names;
  }

  const std::string& path_;
  const std::string& key_;
  document_sink& sink_;
  std::uint64_t number_ = 0;
};

}  // namespace

result<document_facts> read_text_file(const std::string& path, document_sink& sink) {
  auto reader = utf8_reader::open(path);
  if (!reader) return reader.failure();
  document_facts facts;
  facts.file_bytes = reader->file_bytes();
  facts.had_byte_order_mark = reader->had_byte_order_mark();
  bool ended_in_cr = false;
  for (;;) {
    const auto piece = reader->next();
    if (!piece) return piece.failure();
    if (piece->empty()) break;
    if (!facts.had_crlf)
      facts.had_crlf =
          (ended_in_cr && piece->front() == '\n') || piece->find("\r\n") != piece->npos;
    ended_in_cr = piece->back() == '\r';
    facts.text_bytes += piece->size();
    if (auto added = sink.add(*piece); !added) return added.failure();
  }
  if (facts.text_bytes == 0)
    return error{exit_code::bad_data,
                 fmt::format("data file {}: is empty but for its byte-order mark", path)};
  facts.documents = 1;
  if (auto ended = sink.end_document(); !ended) return ended.failure();
  return facts;
}

result<document_facts> read_json_lines(const std::string& path, const std::string& key,
                                       document_sink& sink) {
  auto reader = utf8_reader::open(path);
  if (!reader) return reader.failure();
  json_line_reader lines(path, key, sink);
  lines.facts.file_bytes = reader->file_bytes();
  lines.facts.had_byte_order_mark = reader->had_byte_order_mark();
  std::string unfinished;  // a line that began in an earlier piece
  for (;;) {
    const auto piece = reader->next();
    if (!piece) return piece.failure();
    if (piece->empty()) break;
    std::string_view rest = *piece;
    for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
      std::string_view line = rest.substr(0, end);
      if (!unfinished.empty()) line = unfinished.append(line);
      if (auto taken = lines.take(line); !taken) return taken.failure();
      unfinished.clear();
    }
    unfinished.append(rest);
  }
  if (!unfinished.empty())
    if (auto taken = lines.take(unfinished); !taken) return taken.failure();
  if (lines.facts.documents == 0)
    return error{exit_code::bad_data,
                 fmt::format("data file {}: holds no document, only blank lines", path)};
  return lines.facts;
}

std::vector<std::string> notes_about(const std::string& path, const document_facts& facts) {
  std::vector<std::string> notes;
  if (facts.had_byte_order_mark)
    notes.push_back(fmt::format("{}: the byte-order mark was dropped", path));
  if (facts.had_crlf)
    notes.push_back(fmt::format("{}: lines end with CR LF, which is kept as it is", path));
  if (facts.blank_lines != 0)
    notes.push_back(fmt::format("{}: {} blank line{} skipped", path, facts.blank_lines,
                                facts.blank_lines == 1 ? "" : "s"));
  return notes;
}

}  // namespace troupe::model::data
