"""How often a blind guess is right."""

from __future__ import annotations

from collections import Counter

from surefoot.protocols import TaskSource
from surefoot.types import Split

SAMPLE = 64


def guess_rate(source: TaskSource, split: Split = "heldout", sample: int = SAMPLE) -> float:
    """The share of tasks that share the commonest reference answer: what always giving that answer would earn.

    Of the first `sample` tasks of a split; 0 if no answer occurs twice.
    """
    size = source.size(split)
    count = sample if size is None else min(size, sample)
    answers = Counter(str(source.task(split, i).metadata.get("answer", i)) for i in range(count))
    best = max(answers.values(), default=0)
    return round(best / count, 3) if best > 1 else 0.0
