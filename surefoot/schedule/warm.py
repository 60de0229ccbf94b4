"""Starts a scheduler from a profile (`surefoot data profile`) instead of from nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from surefoot.errors import DataError
from surefoot.schedule.prompts import KEPT, Record
from surefoot.schedule.scheduler import WINDOW, DomainScheduler, outcomes_of

GROUPS = 16
"""Groups of a profile that the rule hears of as if it had drawn them: enough to start from, and soon outweighed."""


def warm(scheduler: DomainScheduler, domain: str, path: Path) -> int:
    """Tell a fresh scheduler what a profile knows of a domain; gives the number of prompts.

    The rule hears of the first groups, so that shares start where the model stands; prompts that are always or never
    right are skipped from the first step on. Prompts are known by what the model sees, so the profile must be made
    with the worked examples of the recipe; with others only the rule profits. What a run logs of its draws does not
    say any of this: to `replay` it, warm the rule first. Raises DataError for a file that is no profile.
    """
    try:
        prompts = json.loads(path.read_text(encoding="utf-8"))["prompts"]
        rows = [_row(scheduler.arms.names.index(domain), prompt) for prompt in prompts if prompt["asked"]]
        records = {
            str(prompt["hash"]): Record(float(prompt["passes"]), float(prompt["valid"]), -WINDOW) for prompt in prompts
        }
    except FileNotFoundError:
        raise DataError("there is no such profile", where=str(path), fix="surefoot data profile FILE") from None
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"not a profile: {error}", where=str(path), fix="surefoot data profile FILE") from None
    if rows:
        scheduler.rule.observe(0, outcomes_of(rows[:GROUPS]))
    picker = scheduler.pickers[domain]
    for key in list(records)[: KEPT[picker.pool.endless]]:
        picker.records[key] = records[key]
    return len(records)


def _row(domain: int, prompt: dict[str, Any]) -> list[float]:
    """Domain, level, samples asked for, valid samples, sum of their scores, cost."""
    asked, valid, passes, tokens = (float(prompt[name]) for name in ("asked", "valid", "passes", "tokens"))
    return [domain, 0, asked, valid, passes, tokens]
