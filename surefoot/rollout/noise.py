"""Uniform random numbers that are a pure function of (seed, token index): no state, no neighbours, no device."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

GOLDEN, MIX_A, MIX_B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def uniforms(seeds: NDArray[np.uint64], index: NDArray[np.int64]) -> NDArray[np.float32]:
    """One number in [0, 1) for each pair of seed [n] and token index [n], exact in float32 (24 bits).

    Token i of a sample takes output i of the SplitMix64 generator (doi 10.1145/2660193.2660195) that starts at its
    hashed seed, so that neighbouring seeds share nothing.
    """
    with np.errstate(over="ignore"):
        state = _mix(seeds + GOLDEN) + GOLDEN * index.astype(np.uint64)
        return (_mix(state) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * MIX_A
    z = (z ^ (z >> np.uint64(27))) * MIX_B
    return z ^ (z >> np.uint64(31))
