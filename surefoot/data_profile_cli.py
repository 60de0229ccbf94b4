"""`surefoot data profile` and `surefoot data split`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

console = Console()


def profile_file(
    file: Annotated[Path, typer.Argument(help="A file of tasks, as `surefoot data ingest` writes it.")],
    model: Annotated[str, typer.Option(help="Whose pass rate is measured.")] = "smollm2-135m-instruct",
    tasks: Annotated[int, typer.Option(min=1, help="Rows, drawn at random.")] = 200,
    samples: Annotated[int, typer.Option(min=1, help="Samples a task.")] = 8,
    temperature: Annotated[float, typer.Option(min=0.0)] = 1.0,
    shots: Annotated[int, typer.Option(min=0, help="Worked examples, as in the recipe.")] = 0,
    max_new_tokens: Annotated[int | None, typer.Option(min=1, help="Longest answer. [the file's own]")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Sequences at the same time.")] = 64,
    out: Annotated[Path | None, typer.Option(help="Where to write it. [FILE.profile.json]")] = None,
) -> None:
    """Measure how hard the tasks are for a model, and what they cost; a run that names the file starts warm."""
    from surefoot import build
    from surefoot.config import DomainConfig, Recipe, RolloutConfig
    from surefoot.data.profile import Profile, drawn, profile
    from surefoot.data.reading import file_hash

    config = DomainConfig(
        name="data", source=f"file:{file}", options={"heldout": 0.0}, shots=shots, max_new_tokens=max_new_tokens
    )
    recipe = Recipe(model=model, domains=(config,), rollout=RolloutConfig(batch=batch))
    build.set_threads(recipe.threads)
    with build.open_suite(recipe.domains, recipe.rollout, recipe.sandbox, heldout=0, seed=0) as suite:
        domain = suite.domains[0]
        into = Profile(file.name, file_hash(file), model, temperature, samples, shots, domain.max_new_tokens)
        engine = build.open_engine(model, recipe, suite)
        try:
            with console.status("sampling") as status:
                profile(
                    into,
                    domain,
                    drawn(domain, tasks),
                    engine,
                    suite.graders,
                    progress=lambda done, total: status.update(f"{done:,} of {total:,} samples"),
                )
        finally:
            engine.close()
    target = out or file.with_name(f"{file.name}.profile.json")
    into.save(target)
    _print(into.summary(), into.refused)
    _say(f'written: {target}; in the recipe: profile = "{target}"')


def _print(found: dict[str, Any], refused: int) -> None:
    low, high = found["interval"]
    _say(f"{found['tasks']} tasks, pass rate {found['pass_rate']:.1%} [{low:.1%}, {high:.1%}]")
    _say(
        f"never right: {found['never_right']}, always right: {found['always_right']}, ungradable: {found['ungradable']}"
    )
    mixed = ", ".join(f"{share:.0%} of those of {size}" for size, share in found["mixed_groups"].items())
    _say(f"groups with both outcomes: {mixed}")
    _say(f"{found['tokens_a_sample']:.0f} tokens and {found['seconds_a_sample']:.2f} s a sample")
    if refused:
        _say(f"{refused} prompts are too long for the engine")


def split_file(
    file: Annotated[Path, typer.Argument(help="A file of tasks, as `surefoot data ingest` writes it.")],
    out: Annotated[Path, typer.Option(help="Folder for train.jsonl and heldout.jsonl.")],
    share: Annotated[float, typer.Option(min=0.001, max=0.9, help="Part of the rows to hold out.")] = 0.1,
    by: Annotated[str | None, typer.Option(help="Rows with the same value of this metadata stay together.")] = None,
    threshold: Annotated[float, typer.Option(min=0.1, max=1.0, help="Similar rows stay together.")] = 0.6,
    seed: Annotated[int, typer.Option()] = 0,
) -> None:
    """Split into train and held-out, keeping near-duplicates and rows of one source on the same side."""
    from surefoot.data.split import split

    done = split(file, out / "train.jsonl", out / "heldout.jsonl", share=share, by=by, threshold=threshold, seed=seed)
    _say(f"{out / 'train.jsonl'}: {done.train:,} rows; {out / 'heldout.jsonl'}: {done.heldout:,}")
    _say(f"{done.groups:,} groups of rows that stay together, the largest of {done.largest:,}")
    _say(
        f'in the recipe: source = "file:{out / "train.jsonl"}", options = {{heldout_file = "{out / "heldout.jsonl"}"}}'
    )


def _say(text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
