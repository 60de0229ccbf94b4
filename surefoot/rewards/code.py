"""Grades Python that a model wrote, by running it in the sandbox. The solution's process never holds an expected value.

What `Task.checks` holds decides how:

- `calls`: `{"function": name, "cases": [{"args": [...], "expected": ..., "hidden": bool, "boundary": bool}]}`. All
  cases are called in one run, and what comes back is compared here. A case may also say `kwargs`, and with `after` what
  its arguments must be afterwards (for functions that change them in place).
- `check`: `{"tests": source that defines check(candidate), "entry": name}`, as HumanEval has it.
- `asserts`: `{"tests": source or list of assert statements}`, as MBPP has it; the first `visible` of them were shown.
- `stdin`: `{"io": [{"input": text, "output": text, "hidden": bool}]}`; the words printed are compared, `compare` may
  name another comparison.

`generated` holds further cases as `adversarial.strengthen` makes them, in the form of `calls`. Those of the dimension
`correctness` decide with the others; those of `robustness` are run for right answers only, and give that dimension.

`prefix` is source put before the solution (HumanEval's prompt; complete by itself), `setup` before the tests.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from surefoot.errors import GraderError, SandboxError
from surefoot.protocols import Call, CallResult, Limits, Program, Sandbox
from surefoot.rewards.efficiency import efficiency
from surefoot.rewards.equal import same, shown
from surefoot.rewards.extract import extract
from surefoot.rewards.jail import Jail
from surefoot.rewards.memory import Memory
from surefoot.sandbox.compare import same_output
from surefoot.types import Check, Execution, Finding, Rollout, Task, Verdict

Style = Literal["auto", "calls", "asserts", "check", "stdin"]
Judged = tuple[list[Check], list[Execution]]
EVIDENCE = 200


@dataclass(frozen=True)
class CodeGrader:
    """Right if every test passed and at least one ran; the score is the share of hidden tests that passed.

    Code that is killed, raises or gives a wrong value is wrong. A fault of the sandbox or of the task is ungradable.

    Args:
        style: How the task is tested; `auto` sees it from what `checks` holds.
        image: Sandbox image that the code runs in.
        limits: Of one run; None for the sandbox's own.
        extract: How the code is found in what the model wrote.
    """

    style: Style = "auto"
    image: str = "python"
    limits: Limits | None = None
    extract: str = "code"
    efficiency: bool = False
    """Give right answers the dimension `efficiency`: cost beside that of the reference solution (`metadata["answer"]`),
    which is run on the same tests, once a task."""
    readability: bool = False
    """Give right answers the dimension `readability`."""
    jail: Jail = field(default_factory=lambda: Jail("surefoot.rewards.readability:handle", seconds=2.0), compare=False)
    costs: Memory[tuple[Execution, ...]] = field(default_factory=lambda: Memory(1000), compare=False, repr=False)

    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict:
        began = time.monotonic()
        code = extract(rollout.text, self.extract)
        if code is None:
            return Verdict("wrong", checks=(Check("code found", False, "no code"),), reason="no code")
        try:
            checks, executions = self._run(task.checks, code, sandbox)
            if task.checks.get("generated") and all(execution.outcome == "ok" for execution in executions):
                found, further = self._generated(task.checks, code, sandbox, "correctness")
                checks, executions = checks + found, executions + further
            verdict = verdict_of(checks, executions)
            if self.readability and verdict.grade == "right":
                verdict = self._readability(task, code, sandbox, verdict)
            if self.efficiency and verdict.grade == "right":
                verdict = self._efficiency(task, sandbox, verdict)
            if task.checks.get("generated") and verdict.grade == "right":
                verdict = self._robustness(task.checks, code, sandbox, verdict)
        except (SandboxError, GraderError) as error:
            return Verdict("ungradable", reason=str(error), seconds=time.monotonic() - began)
        return replace(verdict, seconds=time.monotonic() - began)

    def _generated(self, checks: Mapping[str, Any], code: str, sandbox: Sandbox, dimension: str) -> Judged:
        generated = checks["generated"]
        try:
            cases = [case for case in generated["cases"] if case.get("dimension", "correctness") == dimension]
            source = f"{checks['prefix']}\n{code}" if checks.get("prefix") else code
            if not cases:
                return [], []
            lax = style_of(checks) != "calls"
            found, executions = self._calls({**generated, "cases": cases}, source, sandbox, truth_is_number=lax)
        except (KeyError, TypeError, AttributeError) as error:
            raise GraderError(f"the task's generated tests are malformed ({type(error).__name__}: {error})") from error
        kind = "generated" if dimension == "correctness" else "adversarial"
        return [replace(c, name=f"{kind} {n}", dimension=dimension) for n, c in enumerate(found)], executions

    def _robustness(self, checks: Mapping[str, Any], code: str, sandbox: Sandbox, verdict: Verdict) -> Verdict:
        """The verdict with the share of adversarial tests passed, which cannot make a right answer wrong."""
        found, executions = self._generated(checks, code, sandbox, "robustness")
        if not found or any(execution.outcome == "sandbox_error" for execution in executions):
            return verdict
        return replace(
            verdict,
            checks=(*verdict.checks, *found),
            executions=(*verdict.executions, *executions),
            dimensions={**verdict.dimensions, "robustness": _share(found)},
        )

    def _readability(self, task: Task, code: str, sandbox: Sandbox, verdict: Verdict) -> Verdict:
        """The verdict with the dimension; code on which the measuring fails has none of it."""
        answer = task.metadata.get("answer")
        request = {"code": code, "reference": extract(answer, "code") if isinstance(answer, str) else None}
        reply = self.jail.ask_about(request, {"code": "x = 1"}, sandbox)
        measure = float(reply["readability"]) if reply else 0.0
        return replace(verdict, dimensions={**verdict.dimensions, "readability": measure})

    def _efficiency(self, task: Task, sandbox: Sandbox, verdict: Verdict) -> Verdict:
        answer = task.metadata.get("answer")
        if not isinstance(answer, str) or (reference := extract(answer, "code")) is None:
            return verdict

        def measured() -> tuple[Execution, ...]:
            found = self._run(task.checks, reference, sandbox)[1]
            if task.checks.get("generated"):
                found = found + self._generated(task.checks, reference, sandbox, "correctness")[1]
            return tuple(found)

        costs = self.costs.get((task.domain, task.id, task.prompt_hash), measured)
        if any(execution.outcome != "ok" for execution in costs):
            return verdict
        measure = efficiency(verdict.executions, costs)
        return replace(verdict, dimensions={**verdict.dimensions, "efficiency": measure})

    def _run(self, checks: Mapping[str, Any], code: str, sandbox: Sandbox) -> Judged:
        style = style_of(checks) if self.style == "auto" else self.style
        code = f"{checks['prefix']}\n{code}" if checks.get("prefix") else code
        try:
            if style == "calls":
                return self._calls(checks, code, sandbox)
            if style == "stdin":
                return self._stdin(checks, code, sandbox)
            return self._judge(checks, code, sandbox, check=style == "check")
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise GraderError(f"the task's tests are malformed ({type(error).__name__}: {error})") from error

    def _calls(
        self, checks: Mapping[str, Any], code: str, sandbox: Sandbox, *, truth_is_number: bool = False
    ) -> Judged:
        name, cases = checks["function"], checks["cases"]
        calls = [Call(name, tuple(case["args"]), case.get("kwargs", {})) for case in cases]
        results, execution = sandbox.call(code, calls, image=self.image, limits=self.limits)
        return _compare(name, cases, results, execution, truth_is_number), [execution]

    def _judge(self, checks: Mapping[str, Any], code: str, sandbox: Sandbox, *, check: bool) -> Judged:
        tests = checks["tests"]
        parts = [checks.get("setup") or "", *([tests] if isinstance(tests, str) else tests)]
        entry = checks["entry"] if check else checks.get("entry")
        found, execution = sandbox.judge(
            code, "\n".join(part for part in parts if part), entry=entry, image=self.image, limits=self.limits
        )
        visible = int(checks.get("visible", 0))
        return [replace(c, hidden=i >= visible, evidence=_cut(c.evidence)) for i, c in enumerate(found)], [execution]

    def _stdin(self, checks: Mapping[str, Any], code: str, sandbox: Sandbox) -> Judged:
        how = checks.get("compare", "tokens")
        found: list[Check] = []
        executions: list[Execution] = []
        for number, case in enumerate(checks["io"]):
            program = Program(code=code, stdin=case["input"], image=self.image, limits=self.limits)
            execution = sandbox.run(program)
            executions.append(execution)
            passed, difference = same_output(execution.stdout, case["output"], how)
            if execution.outcome != "ok":
                passed, difference = False, _ending(execution)
            evidence = "" if passed else _cut(f"{difference}; stdin {case['input'][:60]!r}")
            found.append(Check(_name(number, case), passed, evidence, bool(case.get("hidden", True))))
            if execution.outcome in ("timeout", "sandbox_error"):  # the other cases would most likely end the same way
                found += [_not_run(n, c, execution) for n, c in enumerate(checks["io"]) if n > number]
                break
        return found, executions


def style_of(checks: Mapping[str, Any]) -> Style:
    """How a task is to be tested. Raises GraderError if its checks hold no tests."""
    if "cases" in checks:
        return "calls"
    if "io" in checks:
        return "stdin"
    if "tests" in checks:
        tests = checks["tests"]
        return "check" if isinstance(tests, str) and "def check(" in tests else "asserts"
    raise GraderError("the task holds no tests", fix="give it `cases`, `tests` or `io`")


def verdict_of(checks: Sequence[Check], executions: Sequence[Execution]) -> Verdict:
    """What the checks and the way the runs ended come to."""
    broken = next((e for e in executions if e.outcome == "sandbox_error"), None)
    if broken is not None:
        return Verdict("ungradable", reason=f"sandbox: {broken.detail}", executions=tuple(executions))
    if not checks:
        return Verdict("ungradable", reason="the task holds no tests", executions=tuple(executions))
    right = all(check.passed for check in checks)
    hidden = [check for check in checks if check.hidden]
    score = 1.0 if right else min(_share(hidden or checks), _share(checks))
    killed = next((e for e in executions if e.outcome != "ok"), None)
    reason = "" if right else _ending(killed) if killed else next(c.evidence for c in checks if not c.passed)
    return Verdict(
        "right" if right else "wrong",
        score,
        checks=tuple(checks),
        executions=tuple(executions),
        findings=_gap(checks),
        reason=_cut(reason),
    )


def _gap(checks: Sequence[Check]) -> tuple[Finding, ...]:
    """The sign of a solution that was fitted to the examples: it passes all of these and fails hidden tests."""
    visible = [check for check in checks if not check.hidden]
    failed = [check for check in checks if check.hidden and not check.passed]
    if not visible or not failed or not all(check.passed for check in visible):
        return ()
    hidden = sum(check.hidden for check in checks)
    evidence = f"passes all {len(visible)} visible tests, fails {len(failed)} of {hidden} hidden: {failed[0].evidence}"
    return (Finding("visible_hidden_gap", "warning", _cut(evidence)),)


def _compare(
    function: str,
    cases: Sequence[Mapping[str, Any]],
    results: Sequence[CallResult],
    execution: Execution,
    truth_is_number: bool,
) -> list[Check]:
    checks = []
    for number, case in enumerate(cases):
        if number >= len(results):
            checks.append(_not_run(number, case, execution))
            continue
        trouble = _trouble(case, results[number], truth_is_number)
        called = f"{function}({', '.join(shown(arg) for arg in case['args'])})"
        evidence = _cut(f"{called[:120]} {trouble}") if trouble else ""
        checks.append(Check(_name(number, case), not trouble, evidence, bool(case.get("hidden", True))))
    return checks


def _trouble(case: Mapping[str, Any], result: CallResult, truth_is_number: bool = False) -> str:
    """What is wrong with the result of a case; empty if nothing is."""
    if result.error is not None:
        return f"raised {result.error}"
    if not same(result.value, case["expected"], truth_is_number=truth_is_number):
        return f"gave {shown(result.value)}, expected {shown(case['expected'])}"
    if "after" in case:
        after = tuple(case["args"]) if result.args_after is None else result.args_after
        if not same(list(after), list(case["after"])):
            return f"left its arguments as {shown(list(after))}, expected {shown(list(case['after']))}"
    return ""


def _not_run(number: int, case: Mapping[str, Any], execution: Execution) -> Check:
    evidence = _cut(f"not reached: {_ending(execution)}")
    return Check(_name(number, case), False, evidence, bool(case.get("hidden", True)))


def _name(number: int, case: Mapping[str, Any]) -> str:
    kind = "boundary" if case.get("boundary") else "hidden" if case.get("hidden", True) else "example"
    return f"{kind} {number}"


def _ending(execution: Execution) -> str:
    """How a run ended and the last line of its error output."""
    last = execution.stderr.strip().splitlines()[-1:]
    return " ".join(part for part in (execution.outcome, execution.detail, *last) if part)


def _share(checks: Sequence[Check]) -> float:
    return sum(check.passed for check in checks) / len(checks)


def _cut(text: str) -> str:
    return text if len(text) <= EVIDENCE else f"{text[: EVIDENCE - 3]}..."
