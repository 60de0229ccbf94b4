"""Adaptive stopping: it stops where the interval is narrow, goes on where it is not, and draws nothing twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from evaluation_stand_ins import CoinEngine, ExactGraders, domain

from surefoot.errors import ConfigError
from surefoot.evaluate.adaptive import evaluate_until
from surefoot.evaluate.intervals import mean_bounds
from surefoot.evaluate.metric import PASS_1, estimate
from surefoot.evaluate.records import Evaluation
from surefoot.types import Sampling


def run(engine: CoinEngine, half_width: float, directory: Path | None = None, start: int = 4) -> Evaluation:
    return evaluate_until(
        [domain("long", size=500), domain("short", size=10)],
        engine,
        ExactGraders(),
        half_width=half_width,
        tasks=200,
        samples=4,
        sampling=Sampling(),
        seed=0,
        start=start,
        directory=directory,
    )


@pytest.mark.parametrize("in_directory", [True, False])
def test_stops_when_narrow_enough(tmp_path: Path, in_directory: bool) -> None:
    engine = CoinEngine()
    got = run(engine, 0.08, tmp_path if in_directory else None)
    long, short = got.domains
    assert len(long.tasks) in {32, 64, 128} and len(short.tasks) == 10
    found = estimate(PASS_1, long)
    assert found.high - found.low <= 0.16
    assert len(engine.drawn) == len(set(engine.drawn)) == (len(long.tasks) + 10) * 4
    if in_directory:
        again = CoinEngine()
        assert run(again, 0.08, tmp_path) == got and not again.drawn


def test_limits() -> None:
    assert len(run(CoinEngine(), 1e-6).domains[0].tasks) == 200
    assert len(run(CoinEngine(), 1.0).domains[0].tasks) == 4
    with pytest.raises(ConfigError):
        run(CoinEngine(), 0.0)


def test_the_interval_still_covers_after_stopping() -> None:
    rng, hits, runs = np.random.default_rng(5), 0, 3000
    p, odds = rng.uniform(0.1, 0.9, runs), 1.5
    for truth in p:
        x = rng.binomial(8, rng.beta(truth * odds, (1 - truth) * odds, 256)) / 8
        for m in (32, 64, 128, 256):
            low, high = mean_bounds(x[:m], floor=1 / 8)
            if high - low <= 0.2:
                break
        hits += bool(low <= truth <= high)
    assert 0.93 <= hits / runs <= 0.97
