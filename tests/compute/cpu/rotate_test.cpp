#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <span>

#include "compute/cpu/kernels.hpp"
#include "tests/compute/cpu/attention_reference.hpp"

namespace troupe::compute::cpu {
namespace {

using reference::normal;

struct table {
  std::vector<float> cosines, sines;
  table(std::size_t seq_len, std::size_t half) {
    for (std::size_t t = 0; t < seq_len; ++t) {
      for (std::size_t j = 0; j < half; ++j) {
        const double angle = static_cast<double>(t) /
                             std::pow(10000.0, static_cast<double>(j) / static_cast<double>(half));
        cosines.push_back(static_cast<float>(std::cos(angle)));
        sines.push_back(static_cast<float>(std::sin(angle)));
      }
    }
  }
};

struct problem {
  std::size_t sequences, seq_len, heads, head_dim, row_stride;
};

void turn(const problem& p, const table& t, std::vector<float>& x, bool inverse, int threads = 1) {
  thread_pool pool(threads);
  rotate(pool, {p.sequences * p.seq_len, p.seq_len, p.heads, p.head_dim, p.row_stride,
                host_view(std::span(t.cosines)), host_view(std::span(t.sines)), inverse,
                host_view(std::span(x))});
}

constexpr problem problems[] = {{2, 70, 3, 64, 5 * 64},
                                {1, 9, 2, 12, 24},
                                {3, 33, 4, 26, 110},
                                {1, 1, 1, 2, 2},
                                {2, 130, 1, 128, 384}};

TEST(rotate, equals_a_scalar_rotation_bit_for_bit_and_leaves_other_heads_alone) {
  for (const problem& p : problems) {
    SCOPED_TRACE("head_dim " + std::to_string(p.head_dim));
    const std::size_t half = p.head_dim / 2;
    const table t(p.seq_len, half);
    for (const bool inverse : {false, true}) {
      auto x = normal(p.sequences * p.seq_len * p.row_stride, 1), y = x;
      for (std::size_t row = 0; row < p.sequences * p.seq_len; ++row) {
        for (std::size_t head = 0; head < p.heads; ++head) {
          for (std::size_t j = 0; j < half; ++j) {
            float& a = y[row * p.row_stride + head * p.head_dim + j];
            float& b = (&a)[half];
            const float c = t.cosines[row % p.seq_len * half + j];
            const float s = inverse ? -t.sines[row % p.seq_len * half + j]
                                    : t.sines[row % p.seq_len * half + j];
            const float old = a;
            a = std::fma(-b, s, a * c);
            b = std::fma(old, s, b * c);
          }
        }
      }
      turn(p, t, x, inverse);
      EXPECT_EQ(std::memcmp(x.data(), y.data(), x.size() * sizeof(float)), 0);
    }
  }
}

TEST(rotate, is_undone_by_its_inverse) {
  for (const problem& p : problems) {
    const table t(p.seq_len, p.head_dim / 2);
    const auto before = normal(p.sequences * p.seq_len * p.row_stride, 2);
    auto x = before;
    turn(p, t, x, false);
    EXPECT_EQ(x == before, p.seq_len == 1);  // position 0 turns by nothing
    turn(p, t, x, true);
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], before[i], 1e-6f) << i;
  }
}

// The score of two tokens may depend on their distance only.
TEST(rotate, makes_products_of_tokens_a_function_of_their_distance) {
  const problem p{1, 40, 1, 16, 16};
  const table t(p.seq_len, 8);
  const auto q = normal(16, 3), k = normal(16, 4);
  std::vector<float> qs, ks;
  for (std::size_t i = 0; i < p.seq_len; ++i) {
    qs.insert(qs.end(), q.begin(), q.end());
    ks.insert(ks.end(), k.begin(), k.end());
  }
  turn(p, t, qs, false);
  turn(p, t, ks, false);
  const auto score = [&](std::size_t i, std::size_t j) {
    return reference::chain<float>(16, &qs[i * 16], &ks[j * 16]);
  };
  for (std::size_t i = 5; i < p.seq_len; ++i) EXPECT_NEAR(score(i, i - 5), score(5, 0), 2e-5f);
  EXPECT_GT(std::abs(score(5, 0) - score(9, 0)), 1e-2f);
}

TEST(rotate, has_the_same_bits_for_every_number_of_threads) {
  const problem& p = problems[0];
  const table t(p.seq_len, p.head_dim / 2);
  auto one = normal(p.sequences * p.seq_len * p.row_stride, 5), three = one;
  turn(p, t, one, false);
  turn(p, t, three, false, 3);
  EXPECT_EQ(std::memcmp(one.data(), three.data(), one.size() * sizeof(float)), 0);
}

}  // namespace
}  // namespace troupe::compute::cpu
