// The angles of rotary embedding: position x theta^(-2j/D), computed in double by our own functions
// and rounded to float once, so that tables have the same bits everywhere.

#include <vector>

#include "compute/math.hpp"
#include "model/transformer_layer.hpp"

namespace troupe::model {
namespace {

constexpr double pi = 3.14159265358979323846;

// Llama-3's stretching of slow rotations for windows longer than those first trained on.
double scaled_frequency(double frequency, const rope_scaling& s) {
  const double wavelength = 2.0 * pi / frequency;
  const double original = static_cast<double>(s.original_positions);
  if (wavelength < original / s.high_freq_factor) return frequency;
  if (wavelength > original / s.low_freq_factor) return frequency / s.factor;
  const double mix =
      (original / wavelength - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return (1.0 - mix) * frequency / s.factor + mix * frequency;
}

}  // namespace

rotary_tables make_rotary_tables(compute::executor& device, const description& d,
                                 std::size_t seq_len) {
  const std::size_t half = d.head_dim / 2;
  std::vector<float> cosines(seq_len * half), sines(seq_len * half);
  for (std::size_t j = 0; j < half; ++j) {
    double frequency = compute::math::pow(
        d.rope_theta, -2.0 * static_cast<double>(j) / static_cast<double>(d.head_dim));
    if (d.rope_scaling) frequency = scaled_frequency(frequency, *d.rope_scaling);
    for (std::size_t t = 0; t < seq_len; ++t) {
      const double angle = static_cast<double>(t) * frequency;
      cosines[t * half + j] = static_cast<float>(compute::math::cos(angle));
      sines[t * half + j] = static_cast<float>(compute::math::sin(angle));
    }
  }
  rotary_tables tables{device.allocate(cosines.size(), compute::dtype::float32),
                       device.allocate(sines.size(), compute::dtype::float32)};
  device.run([&](compute::ops& ops) {
    ops.copy(compute::host_view(std::span<const float>(cosines)), tables.cosines.all());
    ops.copy(compute::host_view(std::span<const float>(sines)), tables.sines.all());
  });
  return tables;
}

}  // namespace troupe::model
