// Logits and back, by polynomials: a third of the standard library's time, and
// the same bits on every machine and in the twin.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace draftd {

// Within 7e-6, exact for powers of two; for positive normal numbers.
inline float log2_near(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const float exponent = static_cast<float>(static_cast<std::int32_t>(bits >> 23) - 127);
  const float f = std::bit_cast<float>((bits & 0x7FFFFF) | 0x3F800000) - 1.0F;
  float g = 0.026273051F;
  g = g * f + -0.098387614F;
  g = g * f + 0.184862226F;
  g = g * f + -0.276728332F;
  g = g * f + 0.442659438F;
  return exponent + (f + f * (1.0F - f) * g);
}

// Within 5e-7 of the value, exact for integers; for -100 to 100.
inline float exp2_near(float value) {
  const auto whole = static_cast<std::int32_t>(value + 128.0F) - 128;  // floor
  const float f = value - static_cast<float>(whole);
  float g = -0.0018978155F;
  g = g * f + -0.0108646285F;
  g = g * f + -0.066679016F;
  g = g * f + -0.306851149F;
  const float fraction = 1.0F + (f + f * (1.0F - f) * g);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(fraction) + (static_cast<std::uint32_t>(whole) << 23));
}

inline float logit(float probability, float least, float most) {
  const float p = std::clamp(probability, least, most);
  return (log2_near(p) - log2_near(1.0F - p)) * 0.693147181F;
}

// What the model mixes: no evidence is taken for more certain than this.
inline float stretch(float probability) { return logit(probability, 0.0005F, 0.9995F); }

inline float squash(float z) { return 1.0F / (1.0F + exp2_near(std::clamp(z, -20.0F, 20.0F) * -1.44269504F)); }

}  // namespace draftd
