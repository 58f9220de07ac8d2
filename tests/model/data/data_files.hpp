// Files for the tests of model/data: a folder of its own for each test, and the formats as a person
// would write them by hand, so that readers and writers are not tested against each other alone.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/error.hpp"

namespace troupe::model::data {

class folder {
 public:
  folder() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-data-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "cannot make " << name;
    path_ = name;
  }
  ~folder() { std::filesystem::remove_all(path_); }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;

  std::string operator/(std::string_view name) const { return (path_ / name).string(); }

  std::string write(std::string_view name, std::string_view bytes) const {
    const std::string path = *this / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The little-endian bytes of `value`.
template <class T>
std::string little(T value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i)
    bytes += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i));
  return bytes;
}

template <class Token>
std::string llmc_file(std::int32_t magic, std::int32_t version, const std::vector<Token>& tokens) {
  std::string bytes =
      little(magic) + little(version) + little(static_cast<std::int32_t>(tokens.size()));
  bytes.resize(1024);
  bytes.append(reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(Token));
  return bytes;
}
inline std::string llmc16(const std::vector<std::uint16_t>& tokens) {
  return llmc_file(20240520, 1, tokens);
}
inline std::string llmc32(const std::vector<std::uint32_t>& tokens) {
  return llmc_file(20240801, 7, tokens);
}

// Expects an error with this code whose message holds all `parts`.
template <class T>
void expect_error(const result<T>& r, exit_code code, const std::vector<std::string>& parts) {
  ASSERT_FALSE(r) << "an error was expected";
  EXPECT_EQ(r.failure().code, code) << r.failure().message;
  for (const std::string& part : parts)
    EXPECT_NE(r.failure().message.find(part), std::string::npos)
        << "'" << part << "' is missing in: " << r.failure().message;
}

#define ASSERT_OK(r) ASSERT_TRUE(r) << (r).failure().message

}  // namespace troupe::model::data
