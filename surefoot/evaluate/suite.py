"""Suites: what to measure, as a TOML file. A recipe without a model, and a few keys that only an evaluation has.

[suite]
description = "one line for `surefoot suites`"
variants = ["paraphrase", "distractor", "inputs"]      # see `variants`; each adds a domain NAME~VARIANT

[conversations]                                        # see `conversations`; left out: none
scripts = 8
turns = 8

[evaluate]                                             # and [rollout], [sandbox], seed, as in a recipe
tasks = 32

[[domains]]
name = "gsm8k"
source = "file:{data}/gsm8k/test.jsonl"                # {data}: the folder given by --data
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import Field, ValidationError

from surefoot.config import DomainConfig, Recipe, Section
from surefoot.errors import ConfigError
from surefoot.evaluate.variants import check_variants
from surefoot.recipe import apply_override, parse_recipe

S = TypeVar("S", bound=Section)


class SuiteSection(Section):
    """`[suite]`: what an evaluation has and a training run has not."""

    description: str = ""
    """One line on what the suite measures."""
    variants: tuple[str, ...] = ()
    """Changed copies of every task that are measured too, by the names in `evaluate.variants`."""


class ConversationSection(Section):
    """`[conversations]`: scripted conversations in which instructions must be kept turn after turn."""

    scripts: int = Field(default=8, ge=1)
    """Different conversations: a subject with its questions, and a set of instructions."""
    turns: int = Field(default=8, ge=1)
    """Questions in each."""
    samples: int = Field(default=4, ge=1)
    """How often each is held."""
    padding: int = Field(default=0, ge=0)
    """Words of reading matter put before each question, so that the context grows faster."""
    max_new_tokens: int = Field(default=64, ge=1)
    """Longest reply in tokens."""


@dataclass(frozen=True, slots=True)
class EvaluationSuite:
    """A suite that is ready for a model."""

    name: str
    recipe: Recipe
    variants: tuple[str, ...] = ()
    conversations: ConversationSection | None = None
    description: str = ""

    def only(self, domains: Sequence[DomainConfig]) -> EvaluationSuite:
        """The suite with these domains in place of its own."""
        return replace(self, recipe=self.recipe.model_copy(update={"domains": tuple(domains)}))


def suites() -> list[tuple[str, str]]:
    """The suites that come with Surefoot, each with its description."""
    return [
        (path.name.removesuffix(".toml"), str(tomllib.loads(path.read_text())["suite"]["description"]))
        for path in sorted(_folder().iterdir(), key=lambda path: path.name)
        if path.name.endswith(".toml")
    ]


def load_suite(name: str, model: str, overrides: Sequence[str] = (), *, data: Path | None = None) -> EvaluationSuite:
    """Read a suite, by its name or the path of a TOML file of yours, for a model.

    Args:
        overrides: `section.key=value` as for a recipe; `suite.` and `conversations.` are sections, too.
        data: Folder that `{data}` in a source stands for.

    Raises:
        ConfigError: No such suite (with the nearest), a key or value that is wrong, or `{data}` and no folder.
    """
    where, text = _read(name)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as broken:
        raise ConfigError(f"not valid TOML: {broken}", where=where) from broken
    for override in overrides:
        apply_override(content, override)
    told = _section(SuiteSection, content.pop("suite", {}), "suite", where)
    talks = content.pop("conversations", None)
    check_variants(told.variants, where)
    return EvaluationSuite(
        name=Path(name).stem,
        recipe=parse_recipe(_with_data(content, data, where) | {"model": model}, where=where),
        variants=told.variants,
        conversations=None if talks is None else _section(ConversationSection, talks, "conversations", where),
        description=told.description,
    )


def _folder() -> Any:
    return resources.files("surefoot.evaluate") / "suites"


def _read(name: str) -> tuple[str, str]:
    """Where a suite is from, and its text."""
    path = Path(name).expanduser()
    if path.suffix == ".toml":
        try:
            return str(path), path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the suite cannot be read: {error}", where=str(path)) from error
    known = [suite for suite, _ in suites()]
    if name in known:
        return f"suite {name}", str((_folder() / f"{name}.toml").read_text())
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise ConfigError(
        f"there is no suite {name!r}{hint}", where="--suite", fix=f"suites: {', '.join(known)}; or the path of a .toml"
    )


def _section(kind: type[S], content: Any, name: str, where: str) -> S:
    try:
        return kind.model_validate(content)
    except ValidationError as invalid:
        error = invalid.errors()[0]
        key = ".".join([name, *map(str, error["loc"])])
        known = ", ".join(kind.model_fields)
        what = f"unknown key {key!r}" if error["type"] == "extra_forbidden" else f"{key}: {error['msg']}"
        raise ConfigError(what, where=where, fix=f"keys of [{name}]: {known}") from invalid


def _with_data(content: Mapping[str, Any], data: Path | None, where: str) -> dict[str, Any]:
    """The content with `{data}` filled in, wherever it stands."""

    def fill(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: fill(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [fill(inner) for inner in value]
        if not isinstance(value, str) or "{data}" not in value:
            return value
        if data is None:
            raise ConfigError(
                "this suite reads public data sets, and none were named",
                where=where,
                fix="give the folder that holds them: --data DIR (docs/evaluation.md lists the files it looks for)",
            )
        return value.replace("{data}", str(data))

    return cast(dict[str, Any], fill(content))
