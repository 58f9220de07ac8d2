#include "comm/secret.hpp"

#include <fmt/format.h>
#include <sodium.h>

namespace troupe::comm {
namespace {

constexpr std::size_t digits = 2 * secret::size;

error unusable(const std::string& path, std::string_view why, std::string_view advice) {
  return {exit_code::cannot_use,
          fmt::format("{} cannot be the run's secret: {}; {}", path, why, advice)};
}

unsigned char* raw(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

// `text` with the digits and perhaps a line's end; false: it has anything else.
bool parse(const std::string& text, std::span<std::byte, secret::size> into) {
  std::size_t length = text.size();
  if (length == digits + 1 && text.back() == '\n') --length;
  std::size_t made = 0;
  return length == digits &&
         sodium_hex2bin(raw(into), into.size(), text.data(), length, nullptr, &made, nullptr) ==
             0 &&
         made == secret::size;
}

}  // namespace

secret::secret(std::span<const std::byte, size> bytes) {
  std::copy(bytes.begin(), bytes.end(), bytes_.begin());
}

secret::~secret() { sodium_memzero(bytes_.data(), bytes_.size()); }

bool operator==(const secret& a, const secret& b) {
  return sodium_memcmp(a.bytes_.data(), b.bytes_.data(), secret::size) == 0;
}

secret random_secret() {
  ensure(sodium_init() >= 0, "libsodium finds no source of random numbers");
  std::array<std::byte, secret::size> bytes;
  randombytes_buf(bytes.data(), bytes.size());
  secret made(bytes);
  sodium_memzero(bytes.data(), bytes.size());
  return made;
}

result<secret> read_secret(file_system& files, const std::string& path) {
  auto in = files.open(path, open_mode::read);
  if (!in) return in.failure();
  const auto own = (*in)->only_for_owner();
  if (!own) return own.failure();
  if (!*own) {
    return unusable(path, "others than its owner may read or write it",
                    fmt::format("make it private (chmod 600 {}), and a new one if anybody may have "
                                "read it",
                                path));
  }
  const auto length = (*in)->size();
  if (!length) return length.failure();
  const std::string expected = fmt::format("it holds {} hexadecimal digits", digits);
  if (*length < digits || *length > digits + 1) {
    return unusable(path, fmt::format("it has {} bytes", *length), expected);
  }
  std::string text(*length, '\0');
  if (auto s = read_exactly(**in, 0, std::as_writable_bytes(std::span(text))); !s) {
    return s.failure();
  }
  std::array<std::byte, secret::size> bytes;
  const bool well_formed = parse(text, bytes);
  const secret found(bytes);
  sodium_memzero(bytes.data(), bytes.size());
  sodium_memzero(text.data(), text.size());
  if (!well_formed) return unusable(path, "it holds something else than digits", expected);
  return found;
}

result<secret> create_secret(file_system& files, const std::string& path) {
  const secret made = random_secret();
  std::string text(digits + 1, '\0');
  sodium_bin2hex(text.data(), text.size(),
                 reinterpret_cast<const unsigned char*>(made.bytes().data()), secret::size);
  text.back() = '\n';
  auto outcome = publish_private(files, path, text);
  sodium_memzero(text.data(), text.size());
  if (!outcome) return outcome.failure();
  if (*outcome == publish_outcome::taken) return read_secret(files, path);
  return made;
}

}  // namespace troupe::comm
