"""Builds domains from what a recipe says: finds the source, then adds what every source can have."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from statistics import fmean

from surefoot.config import DomainConfig, SessionConfig
from surefoot.domains import code, files, instructions, long_context, python_file, reasoning
from surefoot.domains.fingerprint import fingerprint
from surefoot.domains.levels import LevelSource, MixedSource, at_levels
from surefoot.domains.shots import PresentedSource, ShotSource
from surefoot.errors import ConfigError
from surefoot.protocols import Domain, Grader, SessionLimits, TaskSource
from surefoot.rewards.cards import DomainCard, RebasedGrader, read_card
from surefoot.rewards.code import CodeGrader
from surefoot.rewards.episodes import EpisodeGrader
from surefoot.rewards.graders import named_grader
from surefoot.rewards.project import PytestGrader

Builder = Callable[[DomainConfig], Domain]
"""What a source is: it makes the domain that `config` names, and heeds `config.options` and `config.extract`. If
`config.instruction` is set, it leaves out instructions of its own on the form of the answer."""

GROUP = "surefoot.domains"
UNSAID = Domain.__dataclass_fields__["max_new_tokens"].default
"""The token limit of a domain that says none of its own."""


def build_domain(config: DomainConfig, *, default_max_new_tokens: int = 64) -> Domain:
    """The domain that a `[[domains]]` entry describes.

    Args:
        default_max_new_tokens: Longest answer where neither the entry nor the source says; the recipe's
            `rollout.max_new_tokens`.

    Raises:
        ConfigError: unknown source or grader (with the nearest), an option that does not fit, a missing package.
        DataError: what the source reads is missing or malformed.
    """
    steps = [config] if config.levels in (1, ()) else list(at_levels(config))
    built = [_builder(step)(step) for step in steps]
    domain = built[0]
    grader = domain.grader
    if config.grader is not None:
        grader = named_grader(config.grader, extract=config.extract, where=f"domains.{config.name}.grader")
    if config.image is not None:
        grader = _in_image(grader, config)
    how = config.extract or str(getattr(grader, "extract", "whole"))
    sources = [_presented(one.source, config, how) for one in built]
    levels = tuple(LevelSource(source, level) for level, source in enumerate(sources)) if len(sources) > 1 else ()
    if domain.environment is None and config.session != SessionConfig():
        raise ConfigError(f"{config.source} answers in one turn", where=f"domains.{config.name}.session")
    if domain.environment is not None:
        grader = EpisodeGrader(grader, config.session.on_full)
    own_limit = default_max_new_tokens if domain.max_new_tokens == UNSAID else domain.max_new_tokens
    made = replace(
        domain,
        name=config.name,
        source=MixedSource(levels) if levels else sources[0],
        levels=levels,
        grader=grader,
        max_new_tokens=config.max_new_tokens or own_limit,
        weight=config.weight,
        chance=fmean(one.chance for one in built) if config.chance is None else config.chance,
        session=_limits(domain, config.session),
    )
    return made if config.card is None else _with_card(made, config)


def _limits(domain: Domain, wanted: SessionConfig) -> SessionLimits:
    """The source's own bounds of an episode, but for those that the recipe sets."""
    said = wanted.model_dump(exclude={"on_full"}, exclude_none=True)
    return replace(domain.session, **said)


def _presented(source: TaskSource, config: DomainConfig, how: str) -> TaskSource:
    """The source with what every source can have: an instruction, the form of its answers, worked examples."""
    presented = PresentedSource(source, how, config.instruction or "")
    return ShotSource(presented, config.shots, config.name) if config.shots else presented


def _in_image(grader: Grader, config: DomainConfig) -> Grader:
    """The grader with its programs in the image that the domain names."""
    if not isinstance(grader, (CodeGrader, PytestGrader)):
        raise ConfigError(
            f"the grader runs no programs, so there is nothing to run in the image {config.image!r}",
            where=f"domains.{config.name}.image",
        )
    return replace(grader, image=str(config.image))


def _with_card(domain: Domain, config: DomainConfig) -> Domain:
    """The domain with what its audit measured: chance level, floor of partial credit, time of a grading."""
    card = _card_of(domain, config)
    return replace(
        domain,
        grader=RebasedGrader(domain.grader, card) if card.floor > 0 else domain.grader,
        chance=max(domain.chance, card.guess_rate) if config.chance is None else config.chance,
        grader_seconds=card.grader_seconds,
    )


def _card_of(domain: Domain, config: DomainConfig) -> DomainCard:
    """The card that the recipe names. Raises DataError if there is none, ConfigError if it is of another source or of
    other tasks or another grader than the domain has now."""
    assert config.card is not None
    card = read_card(Path(config.card).expanduser())
    if card.source != config.source:
        raise ConfigError(
            f"the card is of {card.source!r}, not of {config.source!r}",
            where=f"domains.{config.name}.card",
            fix=f"surefoot audit {config.source} --out DIR writes the right one",
        )
    if (now := fingerprint(domain)) != card.fingerprint:
        raise ConfigError(
            f"the card is out of date: tasks or grader changed since its audit ({card.fingerprint}, now {now})",
            where=f"domains.{config.name}.card",
            fix=f"audit the domain as this recipe has it: surefoot audit {config.name} --recipe RECIPE --out DIR",
        )
    return card


def available() -> list[tuple[str, str]]:
    """Every source that needs no file, with one line on it, sorted by name."""
    found = [(f"reasoning_gym:{name}", text) for name, text in reasoning.described()]
    found += [("code", "Python functions to write, all topics; hidden tests run in the sandbox"), *code.described()]
    found += long_context.described()
    found.append(("instructions", "keep constraints on form, wording and length, checked by program"))
    found += [(point.name, f"installed by {point.dist.name if point.dist else point.value}") for point in _points()]
    return sorted(found)


def _builder(config: DomainConfig) -> Builder:
    kind, _, rest = config.source.partition(":")
    if kind == "reasoning_gym" and rest:
        return reasoning.build
    if kind == "file" and rest:
        return files.build
    if re.search(r"\.py(:|$)", config.source):
        return python_file.build
    if kind == "code":
        return code.build
    if kind == "long":
        return long_context.build
    if config.source == "instructions":
        return instructions.build
    for point in _points():
        if point.name in (config.source, kind):
            return _load(point.name, point.load, config)
    raise _unknown(config)


def _load(name: str, load: Callable[[], object], config: DomainConfig) -> Builder:
    try:
        found = load()
    except ImportError as error:
        raise ConfigError(
            f"the installed domain {name!r} cannot be imported: {error}", where=f"domains.{config.name}.source"
        ) from error
    return lambda c: python_file.domain_of(found, c, where=name)


def _unknown(config: DomainConfig) -> ConfigError:
    known = [name for name, _ in available()]
    tails = {name.rpartition(":")[2]: name for name in known}
    near = difflib.get_close_matches(config.source, [*known, *tails], n=1, cutoff=0.5)
    hint = f" (did you mean {tails.get(near[0], near[0])!r}?)" if near else ""
    looks_like_path = re.search(r"[/\\]|\.(jsonl?|parquet)(\.gz)?$", config.source)
    if looks_like_path:
        hint = f" (did you mean 'file:{config.source}'?)"
    return ConfigError(
        f"there is no source {config.source!r}{hint}",
        where=f"domains.{config.name}.source",
        fix="surefoot domains list names the built-in ones; your own are file:PATH or PATH.py:attribute",
    )


def _points() -> Iterator[EntryPoint]:
    return iter(sorted(entry_points(group=GROUP), key=lambda point: point.name))
