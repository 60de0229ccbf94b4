"""Errors that a user can act on: each says what is wrong, where, and what to do about it."""

from __future__ import annotations


class SurefootError(Exception):
    """Base of every error that Surefoot raises on purpose.

    Args:
        what: What is wrong, in one sentence.
        where: The place (file, line, key, domain), if there is one.
        fix: What the user can do about it.

    The command line prints these without a traceback and exits with `exit_code`.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None) -> None:
        self.what, self.where, self.fix = what, where, fix
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        remedy = f"\n  -> {self.fix}" if self.fix else ""
        return f"{place}{self.what}{remedy}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.where, self.fix)


def _rebuild(cls: type[SurefootError], what: str, where: str | None, fix: str | None) -> SurefootError:
    return cls(what, where=where, fix=fix)


class ConfigError(SurefootError):
    """A recipe, a `--set` value or a command-line argument is wrong."""

    exit_code = 2


class DataError(SurefootError):
    """A task file, a row of it, or a task is wrong."""

    exit_code = 2


class ModelError(SurefootError):
    """A model directory or its tokenizer cannot be used."""

    exit_code = 2


class RunError(SurefootError):
    """A run directory is missing, damaged, in use, or does not fit the recipe."""

    exit_code = 2


class SandboxError(SurefootError):
    """The sandbox cannot be started, or not at the level that was asked for."""


class GraderError(SurefootError):
    """A grader failed: the rollout is *ungradable*, which is never a reward of 0."""


class ResourceError(SurefootError):
    """The machine ran out of memory or disk; what was saved before is still valid."""
