"""Domains from a Python file of the user's: `PATH.py:attribute`.

The attribute may be

- what `@domain` makes of a function (see `surefoot.domains.define`): the usual way;
- a plain function `tasks(split)` or `tasks(rng)`, graded by the function `grade` of the same file;
- a `Domain`, or a function `build(config) -> Domain`, for full control.

Task functions run in this process. Grader functions run in the jail, as what they read was written by a model.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from surefoot.config import DomainConfig
from surefoot.domains.define import Definition, ListedSource, MadeSource, lists_tasks
from surefoot.errors import ConfigError
from surefoot.protocols import Domain, Grader, SessionLimits, TaskSource
from surefoot.rewards.extracting import ExtractingGrader
from surefoot.rewards.function import FunctionGrader, JailedFunctionGrader
from surefoot.rewards.graders import named_grader
from surefoot.rewards.loading import load_attribute, load_module


def build(config: DomainConfig) -> Domain:
    """The domain of `PATH.py:attribute`. Raises ConfigError if the file or the attribute is missing or broken."""
    path, attribute = _split(config)
    found = load_attribute(path, attribute)
    if inspect.isfunction(found) and not _is_builder(found):
        found, attribute = _plain_pair(path, attribute, config), "grade"
    return domain_of(found, config, where=str(path), path=path, attribute=attribute)


def domain_of(
    found: object, config: DomainConfig, *, where: str, path: Path | None = None, attribute: str = ""
) -> Domain:
    """The domain that an object stands for: a Domain, a `build` function, or what `@domain` made.

    Args:
        where: Where the object comes from, for errors.
        path: The file to load a grader function from inside the jail; None to call it in this process.
        attribute: Name in that file of the object, or of its grader function.
    """
    if isinstance(found, Definition):
        return _of_definition(found, config, path, attribute)
    if callable(found) and not isinstance(found, Domain):
        found = _built(found, config, where)
    if not isinstance(found, Domain):
        raise ConfigError(
            f"{attribute or 'it'} is a {type(found).__name__}, not a domain",
            where=where,
            fix="decorate a function that makes tasks with @domain, or give a function build(config) -> Domain",
        )
    return found if config.extract is None else replace(found, grader=ExtractingGrader(found.grader, config.extract))


def _of_definition(definition: Definition, config: DomainConfig, path: Path | None, attribute: str) -> Domain:
    extract = config.extract or definition.extract
    grader: Grader
    if definition.grade_function is None:
        grader = named_grader(definition.grader_name, extract=extract, where=f"{path or config.source}")
    else:
        grader = JailedFunctionGrader(path, attribute) if path else FunctionGrader(definition.grade_function)
        grader = grader if extract is None else ExtractingGrader(grader, extract)
    domain = Domain(
        name=config.name,
        source=_source(definition, config),
        grader=grader,
        chance=definition.chance,
        description=definition.description,
        environment=definition.make_environment,
        session=SessionLimits(turns=definition.turns) if definition.turns else SessionLimits(),
    )
    limit = definition.max_new_tokens
    return domain if limit is None else replace(domain, max_new_tokens=limit)


def _source(definition: Definition, config: DomainConfig) -> TaskSource:
    make = definition.make
    if config.options:
        accepted = list(inspect.signature(make).parameters)[1:]
        unknown = [key for key in config.options if key not in accepted]
        if unknown:
            fix = f"options of this domain: {', '.join(accepted)}" if accepted else "this domain takes no options"
            raise ConfigError(f"unknown option {unknown[0]!r}", where=f"domains.{config.name}.options", fix=fix)

        def make_with_options(argument: object) -> object:
            return definition.make(argument, **config.options)  # type: ignore[arg-type]

        make = make_with_options  # type: ignore[assignment]
    if definition.endless:
        return MadeSource(make, config.name, definition.name)  # type: ignore[arg-type]
    return ListedSource(make, config.name)  # type: ignore[arg-type]


def _plain_pair(path: Path, attribute: str, config: DomainConfig) -> Definition:
    tasks, grade = load_attribute(path, attribute), getattr(load_module(path), "grade", None)
    if len(inspect.signature(tasks).parameters) == 0:
        raise ConfigError(
            f"{attribute}() takes no argument",
            where=str(path),
            fix=f"write {attribute}(split) with yield, or {attribute}(rng)",
        )
    if grade is None and config.grader is None:
        fix = f"add a function grade(task, rollout) beside {attribute}, or grader = ... to the recipe"
        raise ConfigError(f"there is no grader for {attribute}", where=str(path), fix=fix)
    return Definition(make=tasks, name=attribute, grade_function=grade, description=inspect.getdoc(tasks) or "")


def _built(builder: object, config: DomainConfig, where: str) -> object:
    try:
        return builder(config)  # type: ignore[operator]
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"building the domain failed: {type(error).__name__}: {error}", where=where) from error


def _is_builder(function: Callable[..., Any]) -> bool:
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if first is None or lists_tasks(function):
        return False
    return first.name == "config" or "DomainConfig" in str(first.annotation)


def _split(config: DomainConfig) -> tuple[Path, str]:
    path, colon, attribute = config.source.rpartition(":")
    if not colon or not path.endswith(".py") or not attribute:
        raise ConfigError(
            f"{config.source!r} does not name what to load from the file",
            where=f"domains.{config.name}.source",
            fix="write PATH.py:NAME, the name of a function decorated with @domain",
        )
    return Path(path).expanduser(), attribute
