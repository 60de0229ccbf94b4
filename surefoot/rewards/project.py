"""Grades code by pytest files, which run in a jail that the model's code cannot reach.

`Task.checks` holds:

- `test_files`: path -> content, the protected test files and what they need;
- `target`: path of the one file that the answer is, such as `solution.py`; without it, the answer is fenced blocks that
  begin with a line `# file: PATH`, one for each file that it writes;
- `files`: path -> content of the rest of the project, which the answer may change;
- `visible`: names of tests (`test_a.py::test_b`) that the prompt shows.
"""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from surefoot.errors import ConfigError, GraderError, SandboxError
from surefoot.protocols import Limits
from surefoot.protocols import Sandbox as AnySandbox
from surefoot.rewards.code import verdict_of
from surefoot.rewards.extract import blocks, extract
from surefoot.rewards.verdicts import wrong
from surefoot.sandbox.sandbox import Sandbox
from surefoot.sandbox.testfiles import judge_project
from surefoot.types import Rollout, Task, Verdict

LONGEST, MOST_FILES = 400_000, 50
"""Characters of an answer, and files in it, beyond which it is not read."""
EVIDENCE = 300
_FILE = re.compile(r"\s*(?:#|//|<!--)\s*file:\s*(\S+)")


@dataclass(frozen=True)
class PytestGrader:
    """Right if every test of the test files passes; the score is the share that does."""

    image: str = "python"
    limits: Limits | None = None
    extract: str = "code"

    def __post_init__(self) -> None:
        if importlib.util.find_spec("pytest") is None:
            raise ConfigError("the grader 'pytest' needs pytest", fix="pip install 'surefoot[pytest]'")

    def grade(self, task: Task, rollout: Rollout, sandbox: AnySandbox) -> Verdict:
        if not isinstance(sandbox, Sandbox):
            raise GraderError("pytest files need Surefoot's own sandbox", where=task.id)
        began = time.monotonic()
        tests, files = _mapping(task, "test_files"), _mapping(task, "files")
        if not tests:
            raise GraderError("the task has no test files", where=task.id)
        written = files_of(rollout.text, task.checks.get("target"), self.extract)
        if not written:
            return wrong("files found", "no file in the answer")
        if forbidden := [path for path in written if not is_plain(path)]:
            return wrong("files found", f"not a path inside the project: {forbidden[0]}")
        try:
            checks, execution = judge_project(
                sandbox, {**files, **written}, tests, image=self.image, limits=self.limits
            )
        except SandboxError as error:
            return Verdict("ungradable", reason=str(error), seconds=time.monotonic() - began)
        visible = frozenset(task.checks.get("visible", ()))
        shown = [replace(c, hidden=c.name not in visible, evidence=c.evidence[-EVIDENCE:]) for c in checks]
        return replace(verdict_of(shown, [execution]), seconds=time.monotonic() - began)


def files_of(text: str, target: Any, how: str = "code") -> dict[str, str]:
    """The files that an answer writes, path -> content; none where it is too long, or names a file twice."""
    if len(text) > LONGEST:
        return {}
    if target is not None:
        code = extract(text, how)
        return {} if code is None else {str(target): code}
    found: dict[str, str] = {}
    for block in blocks(text):
        first, _, rest = block.partition("\n")
        named = _FILE.match(first)
        if named is None:
            continue
        if named.group(1) in found or len(found) >= MOST_FILES:
            return {}
        found[named.group(1)] = rest
    return found


def is_plain(path: str) -> bool:
    """Whether a path stays inside the project and is plain ASCII."""
    parts = PurePosixPath(path).parts
    return bool(re.fullmatch(r"[A-Za-z0-9_./-]{1,200}", path)) and path[0] != "/" and ".." not in parts


def _mapping(task: Task, name: str) -> dict[str, str]:
    value = task.checks.get(name) or {}
    if not isinstance(value, Mapping) or not all(isinstance(content, str) for content in value.values()):
        raise GraderError(f"{name!r} must map paths to the text of files", where=task.id)
    return {str(path): content for path, content in value.items()}
