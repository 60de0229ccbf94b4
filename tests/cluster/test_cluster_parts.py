"""The parts that need no Ray: portions of work, pieces of weights, proofs, the file of sizes, the watchdog."""

from __future__ import annotations

import copy
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cluster_runs import recipe_in, train
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import build
from surefoot.cluster.pieces import Staging, cut, digest, size_of
from surefoot.cluster.placement import connected
from surefoot.cluster.proof import fault, proof_of_decoder, proof_of_engine
from surefoot.cluster.sizes import Sizes, read_sizes, write_sizes
from surefoot.cluster.watchdog import Watchdog
from surefoot.cluster.work import Work
from surefoot.config_cluster import ClusterConfig
from surefoot.errors import ConfigError, ResourceError
from surefoot.models import LoadedModel, load_model
from surefoot.types import Draw, Rollout, Task

SAID: list[tuple[str, str]] = []


def tell(kind: str, text: str, **details: Any) -> None:
    SAID.append((kind, text))


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return load_model("tiny")


# -------------------------------------------------------------------------------------------------------------- work


def drawn(task: str, samples: int) -> Draw:
    return Draw(Task(task, "made", ({"role": "user", "content": task},)), samples=samples, max_new_tokens=4)


def answers(draws: list[Draw]) -> Iterator[Rollout]:
    """What an engine gives back: samples numbered from 0 in each draw, marked by the seed that they were drawn with."""
    for draw in draws:
        for number in range(draw.samples):
            yield Rollout(
                draw.task.id, "made", number, (1, 2), (False, True), (0.0, -1.0), "", "end", seed=draw.seeds[number]
            )


@settings(max_examples=60)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=12), st.integers(1, 9), st.integers(0, 2**31))
def test_every_sample_comes_once_whatever_engines_are_lost(sizes: list[int], most: int, seed: int) -> None:
    chance = random.Random(seed)
    draws = [drawn(f"task-{i % 5}-{i}", samples) for i, samples in enumerate(sizes)]
    whole = {(d.task.id, r.sample): r.seed for d in Work(draws, 10**6).give("one", 1) for r in answers([d])}
    work, engines, got = Work(draws, most), ["a", "b", "c"], list[Rollout]()
    streams: dict[str, Iterator[Rollout]] = {}
    while work.unfinished:
        name = chance.choice(engines)
        if name not in work.given:
            if portion := work.give(name, len(engines)):
                streams[name] = answers(portion)
        elif chance.random() < 0.15:
            work.lost(name)
        elif (rollout := next(streams[name], None)) is None:
            work.finished(name)
        else:
            got.append(work.took(name, rollout))
    assert Counter((r.task_id, r.sample) for r in got) == Counter(list(whole))
    assert all(r.seed == whole[r.task_id, r.sample] for r in got)


# ----------------------------------------------------------------------------------------------------------- weights


def test_weights_arrive_whole_or_not_at_all(model: LoadedModel) -> None:
    source, target = copy.deepcopy(model.decoder), copy.deepcopy(model.decoder)
    with torch.no_grad():
        for parameter in source.parameters():
            parameter.add_(torch.randn_like(parameter))
    before, pieces = digest(target), list(cut(source, 10_007))
    assert sum(len(piece.data) for piece in pieces) == size_of(source) and len(pieces) > 3
    staging = Staging(7, size_of(target))
    for piece in [*pieces[:0:-1], pieces[1]]:  # in any order, some twice, the first not at all
        staging.take(piece)
    with pytest.raises(ResourceError, match="have not come"):
        staging.install(target)
    assert digest(target) == before
    staging.take(pieces[0])
    staging.install(target)
    assert digest(target) == digest(source) != before


def test_a_damaged_piece_is_refused(model: LoadedModel) -> None:
    piece = next(cut(model.decoder, 4096))
    damaged = piece.data.copy()
    damaged[17] ^= 1
    with pytest.raises(ResourceError, match="damaged"):
        Staging(1, size_of(model.decoder)).take(replace(piece, data=damaged))


def test_the_proof_fails_where_an_update_did_not_arrive(model: LoadedModel, tmp_path: Path) -> None:
    recipe = recipe_in(tmp_path)
    engine, learner = build.sampling_engine(model, recipe), copy.deepcopy(model.decoder)
    engine.refresh(1)
    assert fault(proof_of_engine(engine), proof_of_decoder(learner, 1), torch.float32) == ""
    with torch.no_grad():
        learner.embedding[0, 0] += 1e-6
    wanted = proof_of_decoder(learner, 1)
    assert "digest" in fault(proof_of_engine(engine), wanted, torch.float32)
    assert "version" in fault(proof_of_engine(engine), replace(wanted, version=2), torch.float32)
    shown = replace(wanted, logprobs=tuple(value - 0.01 for value in wanted.logprobs))
    assert "log-probs" in fault(shown, wanted, torch.float32)
    assert "log-probs" in fault(replace(shown, logprobs=(float("nan"),) * 24), wanted, torch.float32)


# ------------------------------------------------------------------------------------------------------------- sizes


def test_the_file_of_sizes_overrides_the_recipe(tmp_path: Path) -> None:
    config = ClusterConfig(engines=2, graders=1)
    assert read_sizes(tmp_path, config) == Sizes(2, 1)
    write_sizes(tmp_path, Sizes(5, 3))
    assert read_sizes(tmp_path, config) == Sizes(5, 3)
    (tmp_path / "cluster.json").write_text('{"graders": 4}')
    assert read_sizes(tmp_path, config) == Sizes(2, 4)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"engines": 0}', '{"engines": true}', '{"engine": 2}', '{"engines": "2"}']
)
def test_a_file_of_sizes_that_makes_no_sense_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(ConfigError, match=r"cluster\.json"):
        read_sizes(tmp_path, ClusterConfig())


# ---------------------------------------------------------------------------------------------------------- watchdog


def test_the_watchdog_names_the_stage_and_keeps_all_stacks(tmp_path: Path) -> None:
    SAID.clear()
    watchdog = Watchdog(tmp_path, 0.4, tell, lambda: {"engine-1": "stack of engine-1"})
    watchdog.stage("generation")
    for _ in range(4):  # slow but alive
        time.sleep(0.2)
        watchdog.progress()
        watchdog.check()
    watchdog.stage("sync")
    until = time.monotonic() + 20
    with pytest.raises(ResourceError, match="sync is stuck"):
        while time.monotonic() < until:
            watchdog.check()
            time.sleep(0.05)
    page = (tmp_path / "stuck-sync.txt").read_text()
    assert "stack of engine-1" in page and "test_the_watchdog_names" in page
    assert [kind for kind, _ in SAID] == ["stuck"]
    watchdog.close()


def test_the_watchdog_is_silent_between_stages(tmp_path: Path) -> None:
    watchdog = Watchdog(tmp_path, 0.2, tell, dict)
    watchdog.stage("grading")
    watchdog.stage("")
    time.sleep(0.6)
    watchdog.check()
    watchdog.close()
    assert not list(tmp_path.iterdir())


def test_a_driver_that_never_looks_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.cluster.watchdog.GRACE_SECONDS", 0.1)
    codes: list[int] = []
    watchdog = Watchdog(tmp_path, 0.2, tell, dict, codes.append)
    watchdog.stage("learning")
    until = time.monotonic() + 20
    while not codes and time.monotonic() < until:
        time.sleep(0.05)
    watchdog.close()
    assert codes == [70]


# ------------------------------------------------------------------------------------------------------------ errors


def test_an_address_that_makes_no_sense_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no address"), connected("everywhere"):
        pass


def test_a_cluster_that_is_not_there_is_told_of() -> None:
    with pytest.raises(ResourceError, match=r"127\.0\.0\.1:1\b.*nothing answers"), connected("127.0.0.1:1"):
        pass


def test_a_cluster_with_another_engine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the local engine samples"):
        train(recipe_in(tmp_path, rollout={"engine": "vllm"}), tmp_path / "run")
