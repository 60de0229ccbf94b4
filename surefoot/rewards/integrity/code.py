"""Findings in Python that a model wrote. The source is parsed, never run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import replace

from surefoot.rewards.extract import blocks, extract
from surefoot.rewards.integrity.hardcoded import hardcoded
from surefoot.rewards.integrity.tampering import tampering
from surefoot.rewards.integrity.tests import tests_of
from surefoot.types import Finding, Rollout, Task, Verdict

LONGEST = 20_000
"""Characters; longer programs are not looked at."""


def is_code(task: Task) -> bool:
    """Whether the task is answered with a program."""
    return any(name in task.checks for name in ("cases", "io", "tests", "test_files"))


def in_code(task: Task, rollout: Rollout, verdict: Verdict) -> Iterator[Finding]:
    """Findings in the program of a rollout; none for tasks that ask for no program, or text that is none."""
    if not is_code(task):
        return
    several = "test_files" in task.checks and task.checks.get("target") is None
    source = "\n".join(blocks(rollout.text)) if several else extract(rollout.text, "code")
    if source is None or len(source) > LONGEST:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return
    tests = tests_of(task.checks)
    prompt = "\n".join(message["content"] for message in task.messages)
    for found in (*hardcoded(tree, tests), *tampering(tree, tests, prompt, program="io" in task.checks)):
        yield replace(found, span=_characters(found.span, source, rollout.text))


def _characters(lines: tuple[int, int] | None, source: str, text: str) -> tuple[int, int] | None:
    """Lines of the source as characters of the text; None where the source was changed on its way out of the text."""
    if lines is None:
        return None
    wanted = "\n".join(source.splitlines()[lines[0] - 1 : lines[1]])
    start = text.find(wanted)
    return (start, start + len(wanted)) if start >= 0 else None
