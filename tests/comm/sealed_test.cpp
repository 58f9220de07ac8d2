#include "comm/sealed.hpp"

#include <gmock/gmock.h>

namespace troupe::comm {
namespace {

constexpr std::uint64_t mark = 0x1122334455667788;

bytes some_bytes(std::size_t size) {
  bytes all(size);
  for (std::size_t i = 0; i < size; ++i) all[i] = static_cast<std::byte>(7 * i);
  return all;
}

TEST(sealed, comes_out_as_it_went_in) {
  for (std::size_t size : {0, 1, 500}) {
    const bytes record = seal(mark, 42, some_bytes(size));
    EXPECT_EQ(sealed_size(mark, record), record.size());
    const result<unsealed> opened = unseal(mark, record);
    ASSERT_TRUE(opened);
    EXPECT_EQ(opened->number, 42u);
    EXPECT_EQ(opened->content, some_bytes(size));
  }
}

TEST(sealed, refuses_every_record_with_one_flipped_bit) {
  const bytes record = seal(mark, 42, some_bytes(40));
  for (std::size_t bit = 0; bit < 8 * record.size(); ++bit) {
    bytes flipped = record;
    flipped[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    EXPECT_FALSE(unseal(mark, flipped)) << "bit " << bit;
  }
}

TEST(sealed, refuses_every_length_but_its_own) {
  bytes record = seal(mark, 42, some_bytes(40));
  for (std::size_t size = 0; size < record.size(); ++size) {
    EXPECT_FALSE(unseal(mark, bytes_view(record).first(size))) << size;
  }
  record.push_back(std::byte{0});
  EXPECT_FALSE(unseal(mark, record));
}

TEST(sealed, announces_no_more_than_it_may) {
  bytes record = seal(mark, 1, {});
  record[11] = std::byte{0x40};  // 1 GiB
  EXPECT_EQ(sealed_size(mark, record), std::nullopt);
}

}  // namespace
}  // namespace troupe::comm
