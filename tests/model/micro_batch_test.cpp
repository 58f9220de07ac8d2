#include "model/micro_batch.hpp"

#include <gtest/gtest.h>

namespace troupe::model {
namespace {

void expect_ranges(const micro_batch& batch, std::size_t per_rank, std::size_t seq_len,
                   const std::vector<leaf_range>& expected) {
  const std::vector<leaf_range> got = leaf_ranges(batch, per_rank, seq_len);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].first_row, expected[i].first_row) << i;
    EXPECT_EQ(got[i].rows, expected[i].rows) << i;
    EXPECT_EQ(got[i].opens, expected[i].opens) << i;
    EXPECT_EQ(got[i].closes, expected[i].closes) << i;
  }
}

TEST(leaf_ranges, a_micro_batch_may_be_exactly_one_virtual_rank) {
  expect_ranges({1, 4, 2}, 2, 10, {{0, 20, true, true}});
}

TEST(leaf_ranges, a_micro_batch_may_be_the_start_middle_or_end_of_a_virtual_rank) {
  expect_ranges({1, 3, 1}, 3, 10, {{0, 10, true, false}});
  expect_ranges({1, 4, 1}, 3, 10, {{0, 10, false, false}});
  expect_ranges({1, 5, 1}, 3, 10, {{0, 10, false, true}});
}

TEST(leaf_ranges, a_micro_batch_may_span_several_virtual_ranks) {
  expect_ranges({1, 2, 5}, 3, 10,
                {{0, 10, false, true}, {10, 30, true, true}, {40, 10, true, false}});
}

TEST(leaf_ranges, together_open_and_close_every_virtual_rank_once_and_cover_every_row) {
  constexpr std::size_t global_batch = 12, seq_len = 7;
  for (std::size_t ranks : {1, 2, 3, 4, 6, 12}) {
    for (std::size_t size = 1; size <= global_batch; ++size) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, micro-batch " << size);
      std::size_t rows = 0, opened = 0, closed = 0;
      for (std::size_t first = 0; first < global_batch; first += size) {
        const micro_batch batch{1, first, std::min(size, global_batch - first)};
        std::size_t next_row = 0;
        for (const leaf_range& r : leaf_ranges(batch, global_batch / ranks, seq_len)) {
          EXPECT_EQ(r.first_row, next_row);
          EXPECT_GT(r.rows, 0u);
          EXPECT_EQ(r.opens, rows % (global_batch / ranks * seq_len) == 0);
          next_row += r.rows;
          rows += r.rows;
          EXPECT_EQ(r.closes, rows % (global_batch / ranks * seq_len) == 0);
          opened += r.opens;
          closed += r.closes;
        }
        EXPECT_EQ(next_row, batch.sequences * seq_len);
      }
      EXPECT_EQ(rows, global_batch * seq_len);
      EXPECT_EQ(opened, ranks);
      EXPECT_EQ(closed, ranks);
    }
  }
}

}  // namespace
}  // namespace troupe::model
