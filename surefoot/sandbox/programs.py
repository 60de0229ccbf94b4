"""Program-style tasks: feed standard input, compare standard output here, where the program cannot reach."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from surefoot.protocols import Program
from surefoot.sandbox.compare import Comparison, same_output
from surefoot.sandbox.sandbox import Sandbox
from surefoot.types import Check, Execution


@dataclass(frozen=True, slots=True)
class Case:
    """One test of a program: what it reads and what it must print."""

    stdin: str
    expected: str


def judge_program(
    sandbox: Sandbox,
    program: Program,
    cases: Sequence[Case],
    how: Comparison = "tokens",
    *,
    stop_early: bool = False,
) -> tuple[tuple[Check, ...], tuple[Execution, ...]]:
    """Run `program` on every case, each in a jail of its own; a case passes if it ends well and prints what it must.

    Args:
        how: See `compare.same_output`.
        stop_early: Stop at the first case that fails.
    """
    checks: list[Check] = []
    executions: list[Execution] = []
    runs: Iterable[Execution] = (sandbox.run(replace(program, stdin=case.stdin)) for case in cases)
    for index, (case, execution) in enumerate(zip(cases, runs, strict=True)):
        executions.append(execution)
        checks.append(_check(f"case {index}", case, execution, how))
        if stop_early and not checks[-1].passed:
            break
    return tuple(checks), tuple(executions)


def _check(name: str, case: Case, execution: Execution, how: Comparison) -> Check:
    if execution.outcome != "ok":
        last = execution.stderr.strip().splitlines()[-1:]
        return Check(name, False, " ".join([execution.outcome, execution.detail, *last])[:500])
    same, difference = same_output(execution.stdout, case.expected, how)
    return Check(name, same, "" if same else f"stdin {case.stdin[:100]!r}: {difference}")
