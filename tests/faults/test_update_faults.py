"""Updates that are not finite: skipped, their batches kept, old weights taken up where they go on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from fault_page import fault
from fault_runs import Place, Recorder, assert_same, events, metrics, opened, train
from safetensors.torch import load_file
from torch import Tensor

from surefoot.errors import RunError
from surefoot.loop import Run


def spoil(run: Run, said: Recorder, steps: Iterable[int]) -> None:
    """From now on, a gradient of the real learner is NaN in these steps."""
    bad = set(steps)
    weight = next(w for name, w in run.learner.compute.named_parameters() if "embedding" not in name)

    def hook(gradient: Tensor) -> Tensor:
        return gradient * float("nan") if len(said.metrics) + 1 in bad else gradient

    weight.register_hook(hook)  # type: ignore[no-untyped-call]


def go(place: Place, spoiled: Iterable[int], resume: bool = False, run: Path | None = None, **more: object) -> Recorder:
    said = Recorder()
    recipe = place.recipe("calm", **{"steps": 8, "rollout": {"samples": 8}, **more})
    with opened(recipe, run or place.run, said, resume) as (built, stages):
        spoil(built, said, (step - built.done for step in spoiled))
        list(stages.go())
    return said


def weights(run: Path, step: int) -> dict[str, Tensor]:
    return load_file(run / "checkpoints" / f"step-{step:06d}" / "model.safetensors")


def equal(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return all(torch.equal(left[name], right[name]) for name in left)


KEPT = "`step 3: the gradient is not finite; its batch is kept in skipped/step-000003.parquet`"


@fault("a gradient is NaN", run="skips the update, keeps its batch in `skipped/`", lost="one update", seen=KEPT)
def test_one(place: Place) -> None:
    said = go(place, [3], checkpoint={"keep": 9})
    assert KEPT.strip("`") in said.text and not events(place.run, "rolled_back")
    rows = pq.read_table(place.run / "skipped" / "step-000003.parquet").to_pylist()
    assert len(rows) == 32 and all(row["tokens"] and row["logprobs"] for row in rows)
    kept = [path.name for path in sorted((place.run / "checkpoints").iterdir())]
    assert "step-000003" not in kept, "weights under suspicion are no checkpoint"
    assert all(torch.isfinite(tensor).all() for tensor in weights(place.run, 8).values())


@fault(
    "updates are not finite, several in a row",
    run="takes up weights and optimiser of the last checkpoint from before them",
    lost="the updates since that checkpoint",
    seen="`step 6: 3 updates in a row were not finite: back to the weights of step 3`",
)
def test_roll_back(place: Place) -> None:
    said = go(place, [4, 5, 6], checkpoint={"every": 3, "keep": 9})
    (event,) = events(place.run, "rolled_back")
    assert (event["step"], event["to"]) == (6, 3) and "back to the weights of step 3" in said.text
    assert equal(weights(place.run, 6), weights(place.run, 3))
    assert [line["step"] for line in metrics(place.run)] == list(range(1, 9))
    assert not equal(weights(place.run, 8), weights(place.run, 6)), "it learns on"


@fault("a run that was rolled back is killed later, and resumed", run="goes on bit for bit", seen="as in any resume")
def test_roll_back_and_resume(place: Place) -> None:
    def stopped_at(step: int, run: Path) -> None:
        said = Recorder()
        with opened(place.recipe("calm", steps=8, rollout={"samples": 8}, checkpoint={"every": 2}), run, said) as (
            built,
            stages,
        ):
            spoil(built, said, [3, 4, 5])
            built.until = step
            list(stages.go())

    go(place, [3, 4, 5], checkpoint={"every": 2}, run=place.folder / "whole")
    for cut in (4, 5, 7):
        run = place.folder / f"cut-{cut}"
        stopped_at(cut, run)
        go(place, [3, 4, 5], checkpoint={"every": 2}, run=run, resume=True)
        assert_same(place.folder / "whole", run)


@fault(
    "no update is finite any more",
    run="rolls back twice, then saves and ends",
    lost="nothing that was learnt",
    seen="`updates are still not finite after weights were taken back 2 times`, exit code 2",
)
def test_hopeless(place: Place) -> None:
    with pytest.raises(RunError, match="still not finite after weights were taken back 2 times"):
        go(place, range(3, 100), steps=40, faults={"roll_back": 2})
    assert len(events(place.run, "rolled_back")) == 2
    last = sorted((place.run / "checkpoints").iterdir())[-1]
    assert all(torch.isfinite(tensor).all() for tensor in load_file(last / "model.safetensors").values())
    recipe = place.recipe("calm", steps=len(metrics(place.run)) + 2, rollout={"samples": 8})
    calm = train(recipe, place.run, resume=True)
    assert len(calm.metrics) == 2 and not events(place.run, "batch_kept")[-1]["step"] > len(metrics(place.run)) - 2
