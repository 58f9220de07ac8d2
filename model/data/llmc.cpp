#include "model/data/llmc.hpp"

#include <fmt/format.h>

#include <cstring>

namespace troupe::model::data {
namespace {

constexpr std::int32_t evaluation_magic = 20240522;
constexpr std::int32_t model_magic = 20240326;

std::int32_t integer_at(std::span<const std::byte> bytes, std::size_t index) {
  std::int32_t value;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

std::string why_wrong_magic(std::int32_t magic) {
  if (magic == evaluation_magic)
    return "is a multiple-choice evaluation shard of llm.c, not a token file";
  if (magic == model_magic) return "is a model file of llm.c, not a token file";
  return fmt::format(
      "is not an llm.c token file: it begins with magic {}, {} (16-bit tokens) or {} (32-bit "
      "tokens) is "
      "needed; files without a header have to be written anew with one",
      magic, llmc_16_bit.magic, llmc_32_bit.magic);
}

// What the size would fit, to help whoever wrote the file.
std::string why_wrong_size(std::uint64_t body, std::uint64_t tokens, const llmc_kind& kind) {
  const llmc_kind& other = kind.token_bytes == 2 ? llmc_32_bit : llmc_16_bit;
  if (body == tokens * other.token_bytes)
    return fmt::format("the size fits {}-bit tokens: the header has the magic of the other width",
                       8 * other.token_bytes);
  if (body % kind.token_bytes != 0)
    return fmt::format("{} bytes are not a whole number of {}-byte tokens", body, kind.token_bytes);
  return fmt::format("there are {} tokens, the file {}", body / kind.token_bytes,
                     body < tokens * kind.token_bytes ? "has lost its end" : "goes on behind them");
}

}  // namespace

std::array<std::byte, llmc_header_bytes> llmc_header(const llmc_kind& kind, std::uint64_t tokens) {
  ensure(tokens <= llmc_max_tokens, "a token file cannot count so many tokens");
  std::array<std::int32_t, 256> words{};
  words[0] = kind.magic;
  words[1] = kind.version;
  words[2] = static_cast<std::int32_t>(tokens);
  std::array<std::byte, llmc_header_bytes> bytes;
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

bool has_llmc_magic(std::span<const std::byte> head) {
  if (head.size() < 4) return false;
  const std::int32_t magic = integer_at(head, 0);
  return magic == llmc_16_bit.magic || magic == llmc_32_bit.magic || magic == evaluation_magic ||
         magic == model_magic;
}

result<llmc_shard> llmc_shard::open(const std::string& path) {
  auto file = input_file::open(path);
  if (!file) return file.failure();
  const auto bad = [&](const std::string& cause) {
    return error{exit_code::bad_data, fmt::format("data file {}: {}", path, cause)};
  };

  std::array<std::byte, llmc_header_bytes> header{};
  const std::size_t present = std::min<std::uint64_t>(file->size(), header.size());
  if (auto read = file->read(0, std::span(header).first(present)); !read) return read.failure();
  if (present < 4) return bad(fmt::format("has only {} bytes, no llm.c header", present));
  const std::int32_t magic = integer_at(header, 0);
  if (magic != llmc_16_bit.magic && magic != llmc_32_bit.magic) return bad(why_wrong_magic(magic));
  if (present < header.size())
    return bad(
        fmt::format("has only {} bytes, less than the header of {}", present, header.size()));

  const llmc_kind& kind = magic == llmc_16_bit.magic ? llmc_16_bit : llmc_32_bit;
  const std::int32_t version = integer_at(header, 1), count = integer_at(header, 2);
  if (version != kind.version)
    return bad(fmt::format("header says version {}, magic {} needs version {}", version, magic,
                           kind.version));
  if (count < 0) return bad(fmt::format("header says {} tokens", count));
  const auto tokens = static_cast<std::uint64_t>(count);
  const std::uint64_t body = file->size() - header.size();
  if (body != tokens * kind.token_bytes) {
    return bad(
        fmt::format("is {} bytes long, but its header says {} tokens of {} bytes, that is {} "
                    "bytes; {}",
                    file->size(), tokens, kind.token_bytes,
                    header.size() + tokens * kind.token_bytes, why_wrong_size(body, tokens, kind)));
  }
  if (tokens == 0) return bad("holds 0 tokens");
  llmc_shard shard(path, tokens, kind.token_bytes);
  shard.file_ = std::make_shared<const input_file>(std::move(*file));
  return shard;
}

llmc_shard::llmc_shard(std::string path, std::uint64_t tokens, std::size_t token_bytes)
    : path_(std::move(path)), tokens_(tokens), token_bytes_(token_bytes) {}

status llmc_shard::read(std::uint64_t first, std::span<std::uint32_t> out) const {
  ensure(first + out.size() <= tokens_, "tokens behind the end of a shard were asked for");
  std::shared_ptr<const input_file> file = file_;
  if (!file) {
    auto opened = input_file::open(path_);
    if (!opened)
      return error{exit_code::io, opened.failure().message + " (it was there at the start)"};
    if (opened->size() != file_bytes())
      return error{exit_code::io,
                   fmt::format("data file {}: had {} bytes at the start and now has {}; "
                               "it was changed while in use",
                               path_, file_bytes(), opened->size())};
    file = std::make_shared<const input_file>(std::move(*opened));
  }
  const std::uint64_t offset = llmc_header_bytes + first * token_bytes_;
  const auto bytes = std::as_writable_bytes(out);
  if (token_bytes_ == 4) return file->read(offset, bytes);

  // 16-bit tokens go to the back half of `out` and are widened from the front: token i is written
  // at byte 4 i and never passes token i + 1, which waits at byte 2 n + 2 i + 2.
  const auto narrow = bytes.subspan(bytes.size() / 2);
  if (auto got = file->read(offset, narrow); !got) return got;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t token;
    std::memcpy(&token, narrow.data() + i * sizeof token, sizeof token);
    out[i] = token;
  }
  return done{};
}

}  // namespace troupe::model::data
