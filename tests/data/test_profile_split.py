"""Profiles that warm a scheduler, splits that don't leak, and runs that know what they read."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from surefoot import build
from surefoot.cli import app
from surefoot.config import DomainConfig, Recipe, RolloutConfig, ScheduleConfig
from surefoot.data import ingest
from surefoot.data.card import checked
from surefoot.data.clusters import Settings, find_clusters
from surefoot.data.profile import Profile, Prompt
from surefoot.data.split import split
from surefoot.data.tasks import lines
from surefoot.domains import TaskPool, build_domain
from surefoot.errors import DataError
from surefoot.rewards import GradingPool
from surefoot.sandbox import open_sandbox
from surefoot.store.inputs import changed_inputs, write_inputs

WORDS = [f"{a}{b}" for a in ("ba", "ko", "mi", "tu", "re", "sa") for b in ("lax", "nor", "rin", "sun", "tol")]


def sums(path: Path, count: int = 60) -> Path:
    rng = random.Random(1)
    rows = [{"question": f"What is {rng.randint(1, 99)} + {n}?", "answer": "x #### 5"} for n in range(count)]
    path.with_suffix(".raw.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ingest([str(path.with_suffix(".raw.jsonl"))], path)
    return path


def test_the_command_measures_a_real_model_and_the_file_warms_a_scheduler(tmp_path: Path) -> None:
    file = sums(tmp_path / "t.jsonl")
    arguments = ["data", "profile", str(file), "--model", "tiny", "--tasks", "12", "--samples", "2"]
    result = CliRunner().invoke(app, [*arguments, "--max-new-tokens", "4"], catch_exceptions=False)
    assert "12 tasks, pass rate" in result.output
    found = json.loads((tmp_path / "t.jsonl.profile.json").read_text())
    assert len(found["prompts"]) == 12
    assert all(p["asked"] == p["valid"] == 2 and 2 <= p["tokens"] <= 8 for p in found["prompts"])
    assert all(p["low"] < p["mean"] < p["high"] for p in found["prompts"])
    hashes = {build_domain(DomainConfig(name="t", source=f"file:{file}")).source.task("train", 0).prompt_hash}
    assert len(hashes & {p["hash"] for p in found["prompts"]}) in (0, 1)


def test_a_warm_scheduler_favours_what_is_worth_it_from_the_first_step(tmp_path: Path) -> None:
    names = ("hard", "mixed")
    files = {name: sums(tmp_path / f"{name}.jsonl") for name in names}
    for name, passes in zip(names, (0, 4), strict=True):
        source = build_domain(DomainConfig(name=name, source=f"file:{files[name]}", options={"heldout": 0.0})).source
        made = Profile(name, "", "m", 1.0, 8, 0, 16)
        for index in range(50):
            task = source.task("train", index)
            made.prompts.append(Prompt(task.prompt_hash, task.id, passes, 8, 8, 80))
        made.save(tmp_path / f"{name}.profile.json")
    recipe = Recipe(
        model="tiny",
        domains=tuple(
            DomainConfig(
                name=name,
                source=f"file:{files[name]}",
                options={"heldout": 0.0},
                profile=str(tmp_path / f"{name}.profile.json"),
            )
            for name in names
        ),
        rollout=RolloutConfig(prompts=16, samples=8),
        schedule=ScheduleConfig(rule="adaptive"),
    )
    domains = tuple(build_domain(config) for config in recipe.domains)
    pools = {domain.name: TaskPool(domain, 0) for domain in domains}
    with open_sandbox() as box:
        graders = GradingPool(domains, box)
        warmed = build.scheduler(recipe, build.Suite(domains, pools, graders, box)).draw(1)
        cold_recipe = recipe.model_copy(
            update={"domains": tuple(d.model_copy(update={"profile": None}) for d in recipe.domains)}
        )
        cold = build.scheduler(cold_recipe, build.Suite(domains, pools, graders, box)).draw(1)
        graders.close()
    share = [sum(draw.task.domain == "mixed" for draw in draws) / len(draws) for draws in (cold, warmed)]
    assert share[0] == pytest.approx(0.5, abs=0.1)
    assert share[1] > 0.8


def test_a_file_that_is_no_profile_is_refused(tmp_path: Path) -> None:
    file = sums(tmp_path / "t.jsonl", 20)
    config = DomainConfig(name="t", source=f"file:{file}", profile=str(file))
    domain = build_domain(config)
    recipe = Recipe(model="tiny", domains=(config,))
    with open_sandbox() as box, pytest.raises(DataError, match="not a profile"):
        build.scheduler(recipe, build.Suite((domain,), {"t": TaskPool(domain, 0)}, GradingPool((domain,), box), box))
    missing = config.model_copy(update={"profile": str(tmp_path / "none.json")})
    recipe = recipe.model_copy(update={"domains": (missing,)})
    with open_sandbox() as box, pytest.raises(DataError, match="no such profile"):
        build.scheduler(recipe, build.Suite((domain,), {"t": TaskPool(domain, 0)}, GradingPool((domain,), box), box))


def clustered(path: Path) -> Path:
    """300 rows: 100 texts, each with two variants that differ in a number."""
    rng = random.Random(2)
    texts = [" ".join(rng.choice(WORDS) for _ in range(30)) for _ in range(100)]
    rows = [
        {
            "id": f"{n}-{v}",
            "messages": [{"role": "user", "content": f"{text} {v}"}],
            "grader": "exact",
            "checks": {"answer": str(v)},
            "metadata": {"book": n % 20},
        }
        for v in range(3)
        for n, text in enumerate(texts)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_no_cluster_and_no_source_is_on_both_sides(tmp_path: Path) -> None:
    path = clustered(tmp_path / "t.jsonl")
    train, heldout = tmp_path / "train.jsonl", tmp_path / "heldout.jsonl"
    done = split(path, train, heldout, share=0.2)
    assert (done.train, done.heldout, done.groups, done.largest) == (240, 60, 100, 3)
    both = find_clusters([train, heldout], Settings(0.6, numerals=False, answers=False))
    assert all(int(both.heads[row]) >= 240 for row in range(240, 300))
    by_book = split(path, train, heldout, share=0.2, by="book")
    books = [{line.row["metadata"]["book"] for line in lines(side)} for side in (train, heldout)]
    assert not books[0] & books[1]
    assert by_book.groups == 20
    assert checked(heldout).steps[-1].what == "split"
    with pytest.raises(DataError, match="--by"):
        split(path, train, heldout, by="author")


def test_a_run_records_what_it_reads_and_tells_what_changed(tmp_path: Path) -> None:
    file = sums(tmp_path / "t.jsonl", 20)
    recipe = Recipe(model="tiny", domains=(DomainConfig(name="t", source=f"file:{file}"),))
    write_inputs(tmp_path, recipe)
    entry = json.loads((tmp_path / "data.json").read_text())["t"][0]
    assert entry["sha256"] == checked(file).sha256
    assert entry["card"]["rows"] == 20
    assert changed_inputs(tmp_path, recipe) == []
    file.write_text(file.read_text() + "\n")
    assert changed_inputs(tmp_path, recipe) == [f"{file} was changed"]
