"""MinHash signatures in bands (Broder, 1997; Leskovec et al., "Mining of Massive Datasets", chapter 3), vectorised."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefoot.data.shingles import Counts, Hashes, Words

PERMUTATIONS = 120
FOUND = 0.995
"""Share of pairs at the threshold that must share a band."""


@dataclass(frozen=True)
class Bands:
    """`count` bands of `rows` minima each: texts of similarity s share one with chance 1 - (1 - s^rows)^count."""

    count: int
    rows: int

    @staticmethod
    def for_threshold(threshold: float) -> Bands:
        """The longest bands by which pairs at the threshold are still found."""
        for rows in range(12, 1, -1):
            count = PERMUTATIONS // rows
            if 1 - (1 - threshold**rows) ** count >= FOUND:
                return Bands(count, rows)
        return Bands(PERMUTATIONS, 1)


def band_hashes(hashes: Hashes, starts: Counts, bands: Bands, seed: int = 1) -> Words:
    """Hash of each band of each text. Texts without shingles must not be among them.

    Args:
        hashes: All shingles, [shingles].
        starts: Where each text's begin, [texts].
    """
    random = np.random.default_rng(seed)
    found = np.zeros((bands.count, len(starts)), np.uint64)  # [bands, texts]
    scratch = np.empty_like(hashes)
    for band in range(bands.count):
        for _ in range(bands.rows):
            factor = np.uint32(random.integers(0, 1 << 31) * 2 + 1)
            np.multiply(hashes, factor, out=scratch)  # modulo 2^32, a permutation since the factor is odd
            np.bitwise_xor(scratch, scratch >> np.uint32(15), out=scratch)
            np.multiply(scratch, np.uint32(random.integers(0, 1 << 31) * 2 + 1), out=scratch)
            least = np.minimum.reduceat(scratch, starts)  # [texts]
            found[band] = (found[band] ^ least) * np.uint64(0x9FB21C651E98DF25)
            found[band] ^= found[band] >> np.uint64(29)
    return found
