#include "model/data/shard_writer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::model::data {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

}  // namespace

std::string stem_of(const std::string& out) {
  constexpr std::string_view ending = ".bin";
  return out.ends_with(ending) ? out.substr(0, out.size() - ending.size()) : out;
}

std::string shard_name(const std::string& out, std::size_t shard) {
  return fmt::format("{}_{:06}.bin", stem_of(out), shard);
}

shard_writer::shard_writer(file_system& files, shard_options options)
    : files_(files), options_(std::move(options)), kind_(llmc_kind_for(options_.vocabulary)) {
  ensure(options_.vocabulary > 0 && options_.vocabulary <= std::uint64_t{1} << 32,
         "a token file needs the size of its vocabulary");
  ensure(options_.shard_tokens > 0 && options_.shard_tokens <= llmc_max_tokens,
         "a shard of that many tokens cannot be written");
}

shard_writer::~shard_writer() {
  file_.reset();
  for (std::size_t i = 0; i < shards_.size(); ++i)
    if (shards_[i].path.empty()) (void)files_.remove(temporary_name(i));
}

std::string shard_writer::temporary_name(std::size_t shard) const {
  return fmt::format("{}{}{}-{}", options_.out, temporary_mark, ::getpid(), shard);
}

status shard_writer::add(std::span<const std::uint32_t> tokens) {
  while (!tokens.empty()) {
    if (!file_)
      if (auto begun = begin_shard(); !begun) return begun;
    written_shard& shard = shards_.back();
    const std::uint64_t room = options_.shard_tokens - shard.tokens;
    const auto part = tokens.first(std::min<std::uint64_t>(room, tokens.size()));
    for (const std::uint32_t token : part) {
      if (token >= options_.vocabulary)
        return error{exit_code::bad_data, fmt::format("token id {} does not fit a vocabulary of {}",
                                                      token, options_.vocabulary)};
      const std::size_t at = buffer_.size();
      buffer_.resize(at + kind_.token_bytes);
      std::memcpy(buffer_.data() + at, &token, kind_.token_bytes);  // little-endian: the low bytes
    }
    hash_.add(std::as_bytes(part));
    shard.tokens += part.size();
    tokens = tokens.subspan(part.size());
    if (buffer_.size() >= buffer_bytes)
      if (auto flushed = flush(); !flushed) return flushed;
    if (shard.tokens == options_.shard_tokens)
      if (auto ended = end_shard(); !ended) return ended;
  }
  return done{};
}

status shard_writer::begin_shard() {
  shards_.emplace_back();
  auto opened = files_.open(temporary_name(shards_.size() - 1), open_mode::truncate);
  if (!opened) return opened.failure();
  file_ = std::move(*opened);
  written_bytes_ = llmc_header_bytes;  // the header comes last, when the tokens are counted
  hash_ = hasher();
  return done{};
}

status shard_writer::flush() {
  if (auto written = file_->write_at(written_bytes_, buffer_); !written) return written;
  written_bytes_ += buffer_.size();
  buffer_.clear();
  return done{};
}

status shard_writer::end_shard() {
  if (auto flushed = flush(); !flushed) return flushed;
  if (auto head = file_->write_at(0, llmc_header(kind_, shards_.back().tokens)); !head) return head;
  if (auto synced = file_->sync(); !synced) return synced;
  file_.reset();
  shards_.back().hash = hash_.finish();
  return done{};
}

result<std::vector<written_shard>> shard_writer::finish() {
  if (file_)
    if (auto ended = end_shard(); !ended) return ended.failure();
  ensure(!shards_.empty(), "a token file without tokens was finished");
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const std::string name = shards_.size() == 1 ? options_.out : shard_name(options_.out, i);
    if (auto renamed = files_.rename(temporary_name(i), name); !renamed) return renamed.failure();
    shards_[i].path = name;
  }
  if (auto synced = files_.sync_directory(parent_path(options_.out)); !synced)
    return synced.failure();
  return shards_;
}

}  // namespace troupe::model::data
