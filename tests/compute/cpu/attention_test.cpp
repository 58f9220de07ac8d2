#include "compute/cpu/attention.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <span>
#include <string>

#include "compute/cpu/instruction_set.hpp"
#include "tests/compute/cpu/attention_reference.hpp"

namespace troupe::compute::cpu {
namespace {

using reference::exact;
using reference::normal;
using reference::problem;

constexpr std::size_t chosen_by_kernel = 0;

struct results {
  std::vector<float> out, lse, dqkv;
  bool operator==(const results& other) const {
    return same(out, other.out) && same(lse, other.lse) && same(dqkv, other.dqkv);
  }
  static bool same(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }
};

// Elements that differ in bits.
std::size_t differences(const std::vector<float>& a, const std::vector<float>& b) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < a.size(); ++i) n += std::memcmp(&a[i], &b[i], sizeof(float)) != 0;
  return n;
}

results run_kernel(const problem& p, std::vector<float> qkv, std::vector<float> dout,
                   std::size_t query_block = chosen_by_kernel, int threads = 1) {
  thread_pool pool(threads);
  // Whatever was in the results before must not matter.
  const float old = std::numeric_limits<float>::quiet_NaN();
  results r{std::vector<float>(p.outs(), old), std::vector<float>(p.rows() * p.heads, old),
            std::vector<float>(qkv.size(), old)};
  const auto view_of = [](std::vector<float>& x) { return host_view(std::span(x)); };
  attention_args forward{p.sequences,  p.seq_len, p.heads,        p.kv_heads,    p.head_dim,
                         view_of(qkv), p.mask(),  view_of(r.out), view_of(r.lse)};
  attention_backward_args backward{p.sequences,   p.seq_len,    p.heads,        p.kv_heads,
                                   p.head_dim,    view_of(qkv), view_of(r.out), view_of(r.lse),
                                   view_of(dout), p.mask(),     view_of(r.dqkv)};
  if (query_block == chosen_by_kernel) {
    attention(pool, forward);
    attention_backward(pool, backward);
  } else {
    attention(pool, forward, query_block);
    attention_backward(pool, backward, query_block);
  }
  return r;
}

results run_reference(const problem& p, const std::vector<float>& qkv,
                      const std::vector<float>& dout) {
  results r{std::vector<float>(p.outs()), std::vector<float>(p.rows() * p.heads),
            std::vector<float>(qkv.size())};
  reference::forward(p, qkv, r.out, r.lse);
  reference::backward(p, qkv, r.out, r.lse, dout, r.dqkv);
  return r;
}

void expect_equal_bits(const results& a, const results& b) {
  EXPECT_EQ(differences(a.out, b.out), 0u);
  EXPECT_EQ(differences(a.lse, b.lse), 0u);
  EXPECT_EQ(differences(a.dqkv, b.dqkv), 0u);
}

std::string describe(const problem& p, std::uint32_t seed) {
  return "seed " + std::to_string(seed) + ": B " + std::to_string(p.sequences) + ", T " +
         std::to_string(p.seq_len) + ", H " + std::to_string(p.heads) + ", K " +
         std::to_string(p.kv_heads) + ", D " + std::to_string(p.head_dim) + ", dropout " +
         std::to_string(p.dropout);
}

std::vector<double> widen(const std::vector<float>& x) { return {x.begin(), x.end()}; }

// Largest difference, as a share of the largest value.
double error(const std::vector<float>& x, const std::vector<double>& y) {
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(x[i]) - y[i]));
    largest = std::max(largest, std::abs(y[i]));
  }
  return worst / largest;
}

// Runs a test body with every instruction set that this machine has; leaves the widest in use.
template <class Body>
void with_every_instruction_set(const Body& body) {
  for (const instruction_set set : {instruction_set::avx2, widest_instruction_set()}) {
    SCOPED_TRACE(set == instruction_set::avx2 ? "AVX2" : "AVX-512");
    choose_instruction_set(set);
    body();
  }
}

TEST(attention, equals_scalar_chains_for_shapes_that_matter) {
  const std::vector<problem> problems = {
      {2, 1, 2, 2, 64},        {1, 7, 2, 1, 12},         {2, 32, 4, 2, 13},
      {1, 256, 3, 3, 64},      {1, 200, 4, 1, 128},      {2, 65, 2, 2, 1},
      {1, 130, 2, 2, 256},     {1, 129, 6, 2, 31, 0.1f}, {2, 100, 2, 2, 64, 0.1f},
      {1, 64, 2, 1, 16, 0.5f}, {1, 500, 1, 1, 64, 0.1f}};
  for (std::uint32_t seed = 0; const problem& p : problems) {
    SCOPED_TRACE(describe(p, ++seed));
    const auto qkv = normal(p.rows() * p.stride(), seed), dout = normal(p.outs(), ~seed);
    const results expected = run_reference(p, qkv, dout);
    with_every_instruction_set([&] { expect_equal_bits(run_kernel(p, qkv, dout), expected); });
  }
}

TEST(attention, equals_scalar_chains_for_random_shapes) {
  std::random_device entropy;
  const std::uint32_t seed = entropy();
  std::mt19937 generator(seed);
  const auto up_to = [&](std::size_t n) { return 1 + generator() % n; };
  for (int i = 0; i < 30; ++i) {
    problem p{up_to(3), up_to(280), 0, up_to(3), up_to(80), i % 3 == 0 ? 0.1f : 0.0f};
    p.heads = p.kv_heads * up_to(3);
    SCOPED_TRACE(describe(p, seed));
    // Large scores make probabilities that vanish, small ones make even rows.
    const float size = i % 4 == 0 ? 6.0f : 1.0f;
    const auto qkv = normal(p.rows() * p.stride(), generator(), size);
    const auto dout = normal(p.outs(), generator());
    const std::size_t query_block = i % 2 == 0 ? chosen_by_kernel : up_to(150);
    const results expected = run_reference(p, qkv, dout);
    with_every_instruction_set(
        [&] { expect_equal_bits(run_kernel(p, qkv, dout, query_block), expected); });
  }
}

TEST(attention, has_the_same_bits_for_every_block_of_queries_and_every_number_of_threads) {
  for (const float dropout : {0.0f, 0.1f}) {
    const problem p{2, 333, 4, 2, 40, dropout};
    const auto qkv = normal(p.rows() * p.stride(), 1), dout = normal(p.outs(), 2);
    const results expected = run_kernel(p, qkv, dout);
    for (const std::size_t block : {1u, 6u, 48u, 61u, 64u, 96u, 250u, 1000u}) {
      SCOPED_TRACE("query block " + std::to_string(block));
      expect_equal_bits(run_kernel(p, qkv, dout, block), expected);
    }
    for (const int threads : {2, 3}) {
      SCOPED_TRACE(std::to_string(threads) + " threads");
      expect_equal_bits(run_kernel(p, qkv, dout, chosen_by_kernel, threads), expected);
    }
  }
}

TEST(attention, has_the_same_bits_for_sequences_in_one_call_and_apart) {
  const problem all{3, 150, 2, 1, 24};
  const problem one{1, 150, 2, 1, 24};
  const auto qkv = normal(all.rows() * all.stride(), 3), dout = normal(all.outs(), 4);
  const results together = run_kernel(all, qkv, dout);
  results apart;
  for (std::size_t b = 0; b < all.sequences; ++b) {
    const auto cut = [&](const std::vector<float>& x) {
      const auto n = static_cast<std::ptrdiff_t>(x.size() / all.sequences);
      const auto begin = x.begin() + static_cast<std::ptrdiff_t>(b) * n;
      return std::vector<float>(begin, begin + n);
    };
    const results r = run_kernel(one, cut(qkv), cut(dout));
    apart.out.insert(apart.out.end(), r.out.begin(), r.out.end());
    apart.lse.insert(apart.lse.end(), r.lse.begin(), r.lse.end());
    apart.dqkv.insert(apart.dqkv.end(), r.dqkv.begin(), r.dqkv.end());
  }
  expect_equal_bits(together, apart);
}

// Not even infinities and NaN: what comes later is left out, not multiplied by zero.
TEST(attention, does_not_let_a_later_token_touch_an_earlier_one) {
  const problem p{1, 150, 2, 2, 20};
  auto qkv = normal(p.rows() * p.stride(), 5), dout = normal(p.outs(), 6);
  with_every_instruction_set([&] {
    const results clean = run_kernel(p, qkv, dout);
    for (const std::size_t cut : {1u, 63u, 64u, 67u, 100u, 149u}) {
      SCOPED_TRACE("tokens from " + std::to_string(cut) + " on are broken");
      auto broken = qkv;
      std::fill(broken.begin() + static_cast<std::ptrdiff_t>(cut * p.stride()), broken.end(),
                std::numeric_limits<float>::quiet_NaN());
      const results r = run_kernel(p, broken, dout);
      const std::size_t outs = p.outs() / p.seq_len;
      EXPECT_EQ(std::memcmp(r.out.data(), clean.out.data(), cut * outs * sizeof(float)), 0);
      for (std::size_t i = 0; i < cut; ++i) {
        for (std::size_t d = 0; d < p.heads * p.head_dim; ++d) {  // dq; dk and dv see later queries
          ASSERT_EQ(r.dqkv[i * p.stride() + d], clean.dqkv[i * p.stride() + d]) << "token " << i;
        }
      }
    }
  });
}

TEST(attention, agrees_with_double_precision) {
  for (const problem& p : {problem{1, 300, 2, 1, 64}, problem{2, 90, 2, 2, 13, 0.1f}}) {
    SCOPED_TRACE(describe(p, 7));
    const auto qkv = normal(p.rows() * p.stride(), 7), dout = normal(p.outs(), 8);
    const exact truth(p, widen(qkv), widen(dout));
    const results r = run_kernel(p, qkv, dout);
    EXPECT_LT(error(r.out, truth.out), 1e-6);
    EXPECT_LT(error(r.lse, truth.lse), 1e-6);
    EXPECT_LT(error(r.dqkv, truth.dqkv), 3e-6);
  }
}

TEST(attention, double_reference_has_the_slope_of_its_own_forward) {
  const problem p{1, 20, 4, 2, 6, 0.1f};
  const auto dout = widen(normal(p.outs(), 9));
  auto qkv = widen(normal(p.rows() * p.stride(), 10));
  const auto loss = [&] {
    const exact e(p, qkv, dout);
    double sum = 0;
    for (std::size_t i = 0; i < dout.size(); ++i) sum += e.out[i] * dout[i];
    return sum;
  };
  const exact truth(p, qkv, dout);
  double largest = 0;
  for (const double g : truth.dqkv) largest = std::max(largest, std::abs(g));
  for (std::size_t i = 0; i < qkv.size(); i += 7) {
    const double before = qkv[i], step = 1e-5;
    qkv[i] = before + step;
    const double above = loss();
    qkv[i] = before - step;
    const double below = loss();
    qkv[i] = before;
    EXPECT_NEAR((above - below) / (2 * step), truth.dqkv[i], 1e-6 * largest) << "element " << i;
  }
}

TEST(attention, drops_the_share_of_probabilities_that_was_asked_for) {
  // With equal values the output is the sum of what dropout left of a row: one on average.
  problem p{1, 256, 4, 4, 16, 0.25f};
  std::vector<float> qkv(p.rows() * p.stride(), 1.0f);
  const results r = run_kernel(p, qkv, normal(p.outs(), 11));
  double sum = 0;
  for (const float x : r.out) sum += static_cast<double>(x);
  EXPECT_NEAR(sum / static_cast<double>(r.out.size()), 1.0, 0.02);
  EXPECT_NE(r.out[p.out(0, 0, 200)], r.out[p.out(0, 1, 200)]) << "heads share a mask";
}

}  // namespace
}  // namespace troupe::compute::cpu
