"""Ray, imported late, and the two ways in which the driver waits for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from surefoot.errors import ConfigError, SurefootError

POLL_SECONDS = 0.5
"""Longest that the driver waits before it looks whether it should give up."""


def the_ray() -> Any:
    """The module. Raises ConfigError where it is not installed."""
    try:
        import ray
    except ImportError as missing:
        raise ConfigError(
            "a cluster needs Ray, which is not installed", where="--cluster", fix="pip install 'surefoot[cluster]'"
        ) from missing
    return ray


def result(reference: Any) -> Any:
    """What a call gave; raises what it raised over there, and Ray's own error if the actor is lost."""
    ray = the_ray()
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as failed:
        if isinstance(failed.cause, SurefootError):
            raise failed.cause from None
        raise RuntimeError(f"a worker failed: {failed.cause!r}") from failed


def is_loss(failed: BaseException) -> bool:
    """Whether an actor, its node or what it made is gone."""
    ray = the_ray()
    return isinstance(failed, ray.exceptions.RayActorError | ray.exceptions.ObjectLostError)


def gather(calls: Mapping[str, Any], check: Callable[[], None]) -> tuple[dict[str, Any], dict[str, BaseException]]:
    """Results of calls on several actors by name, and the errors of those that failed; `check` may give up waiting."""
    ray = the_ray()
    names = {reference: name for name, reference in calls.items()}
    results: dict[str, Any] = {}
    errors: dict[str, BaseException] = {}
    waiting = list(names)
    while waiting:
        finished, waiting = ray.wait(waiting, num_returns=1, timeout=POLL_SECONDS)
        check()
        for reference in finished:
            try:
                results[names[reference]] = result(reference)
            except Exception as failed:
                errors[names[reference]] = failed
    return results, errors
