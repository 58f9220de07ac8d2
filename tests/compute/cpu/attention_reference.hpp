// Attention in plain loops, the arithmetic of attention.hpp word for word: the oracle for bits.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "compute/ops.hpp"
#include "compute/random.hpp"
#include "compute/scalar_math.hpp"

namespace troupe::compute::cpu::reference {

struct problem {
  std::size_t sequences, seq_len, heads, kv_heads, head_dim;
  float dropout = 0;

  std::size_t stride() const { return (heads + 2 * kv_heads) * head_dim; }
  std::size_t rows() const { return sequences * seq_len; }
  std::size_t outs() const { return rows() * heads * head_dim; }
  std::size_t q(std::size_t b, std::size_t h, std::size_t i) const {
    return (b * seq_len + i) * stride() + h * head_dim;
  }
  std::size_t k(std::size_t b, std::size_t h, std::size_t j) const {
    return q(b, heads + h / (heads / kv_heads), j);
  }
  std::size_t v(std::size_t b, std::size_t h, std::size_t j) const {
    return q(b, heads + kv_heads + h / (heads / kv_heads), j);
  }
  std::size_t out(std::size_t b, std::size_t h, std::size_t i) const {
    return ((b * seq_len + i) * heads + h) * head_dim;
  }
  std::size_t lse(std::size_t b, std::size_t h, std::size_t i) const {
    return (b * heads + h) * seq_len + i;
  }
  dropout_mask mask() const {
    return {dropout, 0x1234567890abcdefu, random_purpose::dropout_attention, 17, 3, 5};
  }
  bool keeps(std::size_t b, std::size_t h, std::size_t i, std::size_t j) const {
    if (dropout == 0) return true;
    const dropout_mask m = mask();
    const random_key key{m.seed, m.purpose, m.step, m.first_sequence + b, m.layer};
    return random_word(key, (h * seq_len + i) * seq_len + j) >= dropout_threshold(dropout);
  }
};

template <class Real>
Real chain(std::size_t n, const Real* a, const Real* b, Real from = 0) {
  for (std::size_t d = 0; d < n; ++d) from = std::fma(a[d], b[d], from);
  return from;
}

inline float fold(const std::array<float, 8>& l) {
  return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
}

inline float scale(const problem& p) { return 1.0f / std::sqrt(static_cast<float>(p.head_dim)); }

inline void forward(const problem& p, const std::vector<float>& qkv, std::vector<float>& out,
                    std::vector<float>& lse) {
  const std::size_t D = p.head_dim;
  const float keep_scale = 1.0f / (1.0f - p.dropout);
  for (std::size_t b = 0; b < p.sequences; ++b) {
    for (std::size_t h = 0; h < p.heads; ++h) {
      for (std::size_t i = 0; i < p.seq_len; ++i) {
        float m = -std::numeric_limits<float>::infinity();
        std::array<float, 8> lanes{};
        std::vector<float> sums(D, 0.0f);
        for (std::size_t block = 0; block <= i; block += 64) {
          const std::size_t keys = std::min<std::size_t>(64, i + 1 - block);
          std::array<float, 64> s{};
          float top = m;
          for (std::size_t j = 0; j < keys; ++j) {
            s[j] = chain(D, &qkv[p.q(b, h, i)], &qkv[p.k(b, h, block + j)]);
            top = std::max(top, s[j]);
          }
          const float c = block == 0 || top == m ? 1.0f : scalar::exp((m - top) * scale(p));
          m = top;
          for (float& l : lanes) l *= c;
          for (float& a : sums) a *= c;
          for (std::size_t j = 0; j < keys; ++j) {
            float e = scalar::exp((s[j] - m) * scale(p));
            lanes[j % 8] += e;
            if (p.dropout > 0) e = p.keeps(b, h, i, block + j) ? e * keep_scale : 0.0f;
            for (std::size_t d = 0; d < D; ++d) {
              sums[d] = std::fma(e, qkv[p.v(b, h, block + j) + d], sums[d]);
            }
          }
        }
        const float total = fold(lanes);
        const float inverse = 1.0f / total;
        for (std::size_t d = 0; d < D; ++d) out[p.out(b, h, i) + d] = sums[d] * inverse;
        lse[p.lse(b, h, i)] = std::fma(m, scale(p), scalar::log(total));
      }
    }
  }
}

inline void backward(const problem& p, const std::vector<float>& qkv, const std::vector<float>& out,
                     const std::vector<float>& lse, const std::vector<float>& dout,
                     std::vector<float>& dqkv) {
  const std::size_t D = p.head_dim;
  const float keep_scale = 1.0f / (1.0f - p.dropout);
  std::fill(dqkv.begin(), dqkv.end(), 0.0f);
  for (std::size_t b = 0; b < p.sequences; ++b) {
    for (std::size_t h = 0; h < p.heads; ++h) {
      for (std::size_t i = 0; i < p.seq_len; ++i) {
        std::array<float, 8> lanes{};
        for (std::size_t d = 0; d < D; ++d) {
          const std::size_t at = p.out(b, h, i) + d;
          lanes[d % 8] = std::fma(dout[at], out[at], lanes[d % 8]);
        }
        const float row = fold(lanes);
        for (std::size_t j = 0; j <= i; ++j) {
          const float s = chain(D, &qkv[p.q(b, h, i)], &qkv[p.k(b, h, j)]);
          const float e = scalar::exp(std::fma(s, scale(p), -lse[p.lse(b, h, i)]));
          float dp = chain(D, &dout[p.out(b, h, i)], &qkv[p.v(b, h, j)]);
          float kept = e;
          if (p.dropout > 0) {
            const bool keep = p.keeps(b, h, i, j);
            dp = keep ? dp * keep_scale : 0.0f;
            kept = keep ? e * keep_scale : 0.0f;
          }
          const float ds = (e * (dp - row)) * scale(p);
          for (std::size_t d = 0; d < D; ++d) {
            float& dq = dqkv[p.q(b, h, i) + d];
            float& dk = dqkv[p.k(b, h, j) + d];
            float& dv = dqkv[p.v(b, h, j) + d];
            dq = std::fma(ds, qkv[p.k(b, h, j) + d], dq);
            dk = std::fma(ds, qkv[p.q(b, h, i) + d], dk);
            dv = std::fma(kept, dout[p.out(b, h, i) + d], dv);
          }
        }
      }
    }
  }
}

// The same functions in double and the textbook way: no blocks, no running maximum.
struct exact {
  std::vector<double> out, lse, dqkv;

  static std::vector<double> probabilities(const problem& p, const std::vector<double>& qkv,
                                           std::size_t b, std::size_t h, std::size_t i,
                                           double& lse) {
    std::vector<double> e(i + 1);
    double top = -std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j <= i; ++j) {
      e[j] = chain(p.head_dim, &qkv[p.q(b, h, i)], &qkv[p.k(b, h, j)]) /
             std::sqrt(static_cast<double>(p.head_dim));
      top = std::max(top, e[j]);
    }
    double total = 0;
    for (double& x : e) total += x = std::exp(x - top);
    for (double& x : e) x /= total;
    lse = top + std::log(total);
    return e;
  }

  exact(const problem& p, const std::vector<double>& qkv, const std::vector<double>& dout)
      : out(p.outs()), lse(p.rows() * p.heads), dqkv(qkv.size()) {
    const double keep_scale = 1.0 / (1.0 - static_cast<double>(p.dropout));
    for (std::size_t b = 0; b < p.sequences; ++b) {
      for (std::size_t h = 0; h < p.heads; ++h) {
        for (std::size_t i = 0; i < p.seq_len; ++i) {
          const auto e = probabilities(p, qkv, b, h, i, lse[p.lse(b, h, i)]);
          std::vector<double> de(i + 1);
          double row = 0;
          for (std::size_t j = 0; j <= i; ++j) {
            const double factor = p.keeps(b, h, i, j) ? keep_scale : 0.0;
            for (std::size_t d = 0; d < p.head_dim; ++d) {
              out[p.out(b, h, i) + d] += e[j] * factor * qkv[p.v(b, h, j) + d];
              dqkv[p.v(b, h, j) + d] += e[j] * factor * dout[p.out(b, h, i) + d];
              de[j] += dout[p.out(b, h, i) + d] * qkv[p.v(b, h, j) + d] * factor;
            }
            row += e[j] * de[j];
          }
          for (std::size_t j = 0; j <= i; ++j) {
            const double ds = e[j] * (de[j] - row) / std::sqrt(static_cast<double>(p.head_dim));
            for (std::size_t d = 0; d < p.head_dim; ++d) {
              dqkv[p.q(b, h, i) + d] += ds * qkv[p.k(b, h, j) + d];
              dqkv[p.k(b, h, j) + d] += ds * qkv[p.q(b, h, i) + d];
            }
          }
        }
      }
    }
  }
};

inline std::vector<float> normal(std::size_t n, std::uint32_t seed, float size = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> draw(0, size);
  std::vector<float> x(n);
  for (float& value : x) value = draw(generator);
  return x;
}

}  // namespace troupe::compute::cpu::reference
