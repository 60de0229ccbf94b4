"""Projects judged by pytest files that their code cannot reach."""

from __future__ import annotations

import pytest

from surefoot.errors import SandboxError
from surefoot.protocols import Limits
from surefoot.sandbox import Sandbox
from surefoot.sandbox.testfiles import judge_project

PROJECT = {
    "calc/__init__.py": "from calc.core import add, Account\n",
    "calc/core.py": """
class Overdrawn(ValueError): pass
class Account:
    def __init__(self, balance): self.balance = balance
    def draw(self, n):
        if n > self.balance: raise Overdrawn(f"{n} > {self.balance}")
        self.balance -= n
        return self.balance
def add(a, b): return a + b
""",
    "tool.py": "from calc import add\ndef triple(x): return add(x, add(x, x))\n",
}
TESTS = {
    "tests/test_calc.py": """
import pytest
import tool
from calc import Account, add
from calc.core import Overdrawn

@pytest.fixture
def account(): return Account(10)

@pytest.mark.parametrize("a, b, c", [(1, 2, 3), (0, 0, 0), ("a", "b", "ab")])
def test_add(a, b, c): assert add(a, b) == c

def test_account(account):
    assert account.draw(4) == 6 and account.balance == 6
    with pytest.raises(Overdrawn, match="7 > 6"): account.draw(7)

class TestTool:
    def test_triple(self): assert tool.triple(2) == 6
""",
}


def grades(sandbox: Sandbox, project: dict[str, str], tests: dict[str, str] = TESTS) -> dict[str, bool]:
    checks, execution = judge_project(sandbox, project, tests, limits=Limits(cpu_seconds=1.0))
    print([check.evidence for check in checks if not check.passed], execution)
    return {check.name.split("::", 1)[-1]: check.passed for check in checks}


def test_a_right_project_passes(sandbox: Sandbox) -> None:
    found = grades(sandbox, PROJECT)
    assert len(found) == 5 and all(found.values()), found


def test_a_module_called_solution_is_the_projects_own(sandbox: Sandbox) -> None:
    tests = {"test_x.py": "from solution import f\ndef test_f(): assert f(2) == 4"}
    assert grades(sandbox, {"solution.py": "def f(x): return 2 * x"}, tests) == {"test_f": True}


def test_a_wrong_project_fails_where_it_is_wrong(sandbox: Sandbox) -> None:
    wrong = {**PROJECT, "tool.py": "def triple(x): return 0"}
    found = grades(sandbox, wrong)
    assert not found.pop("TestTool::test_triple") and all(found.values())


SPOOFS = {
    "rewritten tests": {"tests/test_calc.py": "def test_add(): pass"},
    "conftest": {
        "conftest.py": "import pytest\n@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_makereport(item, call):\n"
        "    from _pytest.reports import TestReport\n    r = TestReport.from_item_and_call(item, call)\n"
        "    r.outcome = 'passed'\n    return r\n",
        "tests/conftest.py": "import os; os._exit(0)",
    },
    "configuration": {
        "pytest.ini": "[pytest]\naddopts = --collect-only\n",
        "setup.cfg": "[tool:pytest]\naddopts = -k none\n",
    },
    "a pytest of its own": {"pytest.py": "def main(*a, **k): return 0\n", "_pytest/__init__.py": ""},
    "site": {"sitecustomize.py": "import os; os._exit(0)", "usercustomize.py": "import os; os._exit(0)"},
    "exit": {"calc/__init__.py": "import os; os._exit(0)"},
    "patching from within": {
        "calc/__init__.py": "import sys\nfor m in list(sys.modules.values()):\n"
        "    if hasattr(m, 'raises'): m.raises = lambda *a, **k: __import__('contextlib').nullcontext()\n"
        "def add(a, b): return 0\nclass Account: pass\n"
    },
}


@pytest.mark.parametrize("name", SPOOFS)
def test_a_project_that_cheats_fails(namespaces: Sandbox, name: str) -> None:
    wrong = {**PROJECT, "tool.py": "def triple(x): return 0", **SPOOFS[name]}
    checks, execution = judge_project(namespaces, wrong, TESTS, limits=Limits(cpu_seconds=1.0))
    assert checks and not all(check.passed for check in checks)
    assert execution.outcome != "sandbox_error"


def test_skipped_and_missing_tests_are_no_pass(namespaces: Sandbox) -> None:
    skipped = {"test_x.py": "import pytest\ndef test_a(): pytest.skip('x')\n@pytest.mark.xfail\ndef test_b(): assert 0"}
    assert grades(namespaces, PROJECT, skipped) == {"test_a": False, "test_b": False}
    checks, _ = judge_project(namespaces, PROJECT, {"test_x.py": "x = 1"})
    assert not any(check.passed for check in checks)
    with pytest.raises(SandboxError, match="no test file"):
        judge_project(namespaces, PROJECT, {"data.txt": ""})
