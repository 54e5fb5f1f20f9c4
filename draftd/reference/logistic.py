"""Logits and back, by polynomials, in IEEE singles and in the order written here: the twin of cpp/src/learn/logistic.h.

For arrays of any shape; Python's numbers become singles beside them.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

ONE = 0x3F800000
"""Bits of 1.0; below them are 23 of the fraction."""


def polynomial(x: Floats, first: float, *coefficients: float) -> Floats:
    """By Horner's rule, the highest power's coefficient first."""
    value = np.full_like(x, first)
    for coefficient in coefficients:
        value = value * x + coefficient
    return value


def bend(f: Floats, g: Floats) -> Floats:
    """From 0 to 1 as `f` is, and exact there."""
    rest: Floats = 1.0 - f
    return f + f * rest * g


def log2_near(value: Floats) -> Floats:
    """Within 7e-6, exact for powers of two; for positive normal numbers."""
    bits = value.view(np.int32)
    exponent = ((bits >> 23) - 127).astype(np.float32)
    f = (bits & 0x7FFFFF | ONE).view(np.float32) - 1.0
    g = polynomial(f, 0.026273051, -0.098387614, 0.184862226, -0.276728332, 0.442659438)
    return exponent + bend(f, g)


def exp2_near(value: Floats) -> Floats:
    """Within 5e-7 of the value, exact for integers; for -100 to 100."""
    whole = (value + 128.0).astype(np.int32) - 128  # floor
    f = value - whole.astype(np.float32)
    g = polynomial(f, -0.0018978155, -0.0108646285, -0.066679016, -0.306851149)
    fraction = 1.0 + bend(f, g)
    return (fraction.view(np.int32) + (whole << 23)).view(np.float32)


def logit(probability: Floats, least: float, most: float) -> Floats:
    p = np.minimum(np.maximum(probability, np.float32(least)), np.float32(most))
    return (log2_near(p) - log2_near(1.0 - p)) * 0.693147181


def stretch(probability: Floats) -> Floats:
    """What the model mixes: no evidence is taken for more certain than this."""
    return logit(probability, 0.0005, 0.9995)


def squash(z: Floats) -> Floats:
    """The probability of a logit."""
    near = np.minimum(np.maximum(z, np.float32(-20.0)), np.float32(20.0))
    return 1.0 / (1.0 + exp2_near(near * -1.44269504))
