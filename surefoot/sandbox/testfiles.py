"""Repository-style tasks: a project's files in one jail, its pytest files in another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from surefoot.errors import SandboxError
from surefoot.protocols import Limits
from surefoot.sandbox.sandbox import Sandbox
from surefoot.types import Check, Execution


def judge_project(
    sandbox: Sandbox,
    project: Mapping[str, str],
    tests: Mapping[str, str],
    *,
    image: str = "python",
    limits: Limits | None = None,
) -> tuple[tuple[Check, ...], Execution]:
    """Run pytest over `tests` against `project`, each in a jail of its own; one check for each test.

    The protected files are restored by construction: where the tests run there are only `tests`, and what `project`
    holds under the same paths (or as `conftest.py`) has no effect. Tests reach the project through stand-ins, as in
    `Sandbox.judge`; tests that patch the project's modules from within cannot be judged in this way, and fail.

    Args:
        project: Relative path -> content, with the model's changes.
        tests: Relative path -> content of the protected files: test files, and what they need besides.

    Raises SandboxError if pytest is not installed beside Surefoot.
    """
    modules = sorted({_top_level(path) for path in project if path.endswith(".py") and path not in tests})
    paths = [path for path in tests if PurePosixPath(path).name.startswith("test_") or path.endswith("_test.py")]
    if not paths:
        raise SandboxError("there is no test file among the tests", fix="name it test_*.py")
    files = {path: content for path, content in project.items() if path not in tests}
    asked = {"files": dict(tests), "paths": paths, "modules": modules}
    return sandbox.judge_apart({"code": "", "files": files}, "testfiles", asked, image=image, limits=limits)


def _top_level(path: str) -> str:
    first, *rest = PurePosixPath(path).parts
    return first if rest else PurePosixPath(first).stem
