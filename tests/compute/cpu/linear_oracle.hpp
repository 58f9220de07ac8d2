// What tests of the linear layer compare with, bit for bit: a scalar loop, one std::fma after
// another in rising k, then bias, residual and activation as roundings of their own. And memory
// that notices a write outside of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "compute/buffer.hpp"
#include "compute/cpu/instruction_set.hpp"
#include "compute/cpu/kernels.hpp"
#include "compute/scalar_math.hpp"

namespace troupe::compute::cpu {

using values = std::vector<float>;
using random = std::mt19937;

// Memory that begins `offset` floats behind an aligned address, between guards that must not
// change.
class placed {
 public:
  placed(std::size_t size, std::size_t offset) : memory_(size + 2 * guard + 16, guard_value) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    begin_ = guard + (64 - address % 64) % 64 / sizeof(float) + offset;
    size_ = size;
  }
  placed(const values& from, std::size_t offset) : placed(from.size(), offset) {
    std::copy(from.begin(), from.end(), data());
  }
  float* data() { return memory_.data() + begin_; }
  values copy() { return {data(), data() + size_}; }
  view all() { return host_view(std::span<float>(data(), size_)); }
  bool guards_are_whole() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if ((i < begin_ || i >= begin_ + size_) && memory_[i] != guard_value) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t guard = 32;
  static constexpr float guard_value = 12345.0f;
  values memory_;
  std::size_t begin_ = 0;
  std::size_t size_ = 0;
};

inline values random_values(std::size_t size, random& source) {
  std::normal_distribution<float> normal;
  values out(size);
  for (float& v : out) v = normal(source);
  return out;
}

inline std::size_t pick(random& source, std::initializer_list<std::size_t> from) {
  return from.begin()[source() % from.size()];
}

inline ::testing::AssertionResult same_bits(const values& got, const values& expected) {
  if (got.size() != expected.size()) return ::testing::AssertionFailure() << "sizes differ";
  if (std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)) == 0) {
    return ::testing::AssertionSuccess();
  }
  std::size_t i = 0;
  while (std::memcmp(&got[i], &expected[i], sizeof(float)) == 0) ++i;
  return ::testing::AssertionFailure()
         << "element " << i << " is " << got[i] << ", expected " << expected[i];
}

struct shape {
  std::size_t rows, in, out;
};

inline std::string text(const shape& s) {
  return std::to_string(s.rows) + " rows, " + std::to_string(s.in) + " -> " + std::to_string(s.out);
}

inline shape random_shape(random& source) {
  const auto size = [&] { return pick(source, {1, 2, 5, 7, 8, 17, 24, 48, 49, 64, 97, 130, 257}); };
  return {size(), size(), size()};
}

// Calls test() for each instruction set that this processor has.
template <class Test>
void for_each_instruction_set(const Test& test) {
  for (const auto set : {instruction_set::avx2, instruction_set::avx512}) {
    if (set > widest_instruction_set()) continue;
    choose_instruction_set(set);
    SCOPED_TRACE(fma_instruction_set());
    test();
  }
  choose_instruction_set(widest_instruction_set());
}

// The scalar oracles.

inline values scalar_linear(const shape& s, const values& x, const values& w, const values& bias,
                            const values& residual) {
  values y(s.rows * s.out);
  for (std::size_t r = 0; r < s.rows; ++r) {
    for (std::size_t o = 0; o < s.out; ++o) {
      float sum = 0;
      for (std::size_t k = 0; k < s.in; ++k) sum = std::fma(x[r * s.in + k], w[o * s.in + k], sum);
      if (!bias.empty()) sum = sum + bias[o];
      if (!residual.empty()) sum = sum + residual[r * s.out + o];
      y[r * s.out + o] = sum;
    }
  }
  return y;
}

inline values scalar_backward_input(const shape& s, const values& dy, const values& w,
                                    const values& gelu_input) {
  values dx(s.rows * s.in);
  for (std::size_t r = 0; r < s.rows; ++r) {
    for (std::size_t i = 0; i < s.in; ++i) {
      float sum = 0;
      for (std::size_t k = 0; k < s.out; ++k) {
        sum = std::fma(dy[r * s.out + k], w[k * s.in + i], sum);
      }
      if (!gelu_input.empty()) sum = sum * scalar::gelu_derivative(gelu_input[r * s.in + i]);
      dx[r * s.in + i] = sum;
    }
  }
  return dx;
}

inline void scalar_backward_weight(const shape& s, const values& dy, const values& x, values& dw,
                                   values& db) {
  for (std::size_t o = 0; o < s.out; ++o) {
    for (std::size_t i = 0; i < s.in; ++i) {
      float& sum = dw[o * s.in + i];
      for (std::size_t r = 0; r < s.rows; ++r) {
        sum = std::fma(dy[r * s.out + o], x[r * s.in + i], sum);
      }
    }
    for (std::size_t r = 0; r < s.rows; ++r) db[o] = db[o] + dy[r * s.out + o];
  }
}

}  // namespace troupe::compute::cpu
