"""What both sides of `peer_trl.py` share: prompts, reward, and how they talk to it. Standard library only."""

from __future__ import annotations

import json
import resource
import sys

WORDS = ("river", "engine", "garden", "winter", "letter", "market", "bridge", "silver", "candle", "forest", "window")


def prompts(count: int, step: int) -> list[str]:
    """The questions of one step: the same on both sides."""
    pairs = [(WORDS[(step + i) % len(WORDS)], WORDS[(step + 3 * i + 1) % len(WORDS)]) for i in range(count)]
    return [f"Write a few sentences about a {one} and a {other}." for one, other in pairs]


def reward(text: str) -> float:
    """Share of vowels: cheap, and different for every sample, so that every group teaches something."""
    return sum(c in "aeiou" for c in text.lower()) / max(1, len(text))


def say(**values: object) -> None:
    """One line to the program that holds the two against each other."""
    print("BENCH " + json.dumps(values), flush=True)


def wait() -> bool:
    """Wait for the word to take a step; False when there is none to come."""
    return bool(sys.stdin.readline())


def peak_mb() -> float:
    """Peak resident memory of this process so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
