// Logits and back, four at a time, by polynomials: a fraction of the standard
// library's time, and the same bits on every machine and in the twin.
#pragma once

#include <bit>
#include <cstdint>
#include <numbers>

namespace draftd {

// As wide as every machine has it; compilers turn it into SSE2 or NEON.
using Four = float __attribute__((vector_size(16)));
using FourNumbers = std::int32_t __attribute__((vector_size(16)));

inline Four all(float value) { return Four{value, value, value, value}; }
inline Four clamp(Four value, float least, float most) {
  value = value < all(least) ? all(least) : value;
  return value > all(most) ? all(most) : value;
}

// Within 7e-6, exact for powers of two; for positive normal numbers.
inline Four log2_near(Four value) {
  const auto bits = std::bit_cast<FourNumbers>(value);
  const Four exponent = __builtin_convertvector((bits >> 23) - 127, Four);
  const Four f = std::bit_cast<Four>((bits & 0x7FFFFF) | 0x3F800000) - 1.0F;
  Four g = all(0.026273051F);
  g = g * f + -0.098387614F;
  g = g * f + 0.184862226F;
  g = g * f + -0.276728332F;
  g = g * f + 0.442659438F;
  return exponent + (f + f * (1.0F - f) * g);
}

// Within 5e-7 of the value, exact for integers; for -100 to 100.
inline Four exp2_near(Four value) {
  const FourNumbers whole = __builtin_convertvector(value + 128.0F, FourNumbers) - 128;  // floor
  const Four f = value - __builtin_convertvector(whole, Four);
  Four g = all(-0.0018978155F);
  g = g * f + -0.0108646285F;
  g = g * f + -0.066679016F;
  g = g * f + -0.306851149F;
  const Four fraction = 1.0F + (f + f * (1.0F - f) * g);
  return std::bit_cast<Four>(std::bit_cast<FourNumbers>(fraction) + (whole << 23));
}

inline Four logit(Four probability, float least, float most) {
  const Four p = clamp(probability, least, most);
  return (log2_near(p) - log2_near(1.0F - p)) * std::numbers::ln2_v<float>;
}
inline float logit(float probability, float least, float most) { return logit(all(probability), least, most)[0]; }

// What the model mixes: no evidence is taken for more certain than this.
inline Four stretch(Four probability) { return logit(probability, 0.0005F, 0.9995F); }
inline float stretch(float probability) { return stretch(all(probability))[0]; }

inline Four squash(Four z) {
  return 1.0F / (1.0F + exp2_near(clamp(z, -20.0F, 20.0F) * -std::numbers::log2e_v<float>));
}
inline float squash(float z) { return squash(all(z))[0]; }

}  // namespace draftd
