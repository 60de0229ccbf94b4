"""Reinforcement learning that turns what a model might do into what it reliably does.

What a domain of your own needs can be imported from here; it is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surefoot.domains.define import domain, task
    from surefoot.types import Check, Finding, Rollout, Task, Verdict

__all__ = ["Check", "Finding", "Rollout", "Task", "Verdict", "domain", "task"]

_HOMES = {"domain": "surefoot.domains.define", "task": "surefoot.domains.define"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'surefoot' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "surefoot.types")), name)
