"""Red-teams a domain's verifier with its real grader, in its real jail."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from surefoot.config import IntegrityConfig
from surefoot.domains.audit.cases import Case, try_cases
from surefoot.domains.audit.probes import Probe, attacks, guesses, reference
from surefoot.domains.audit.result import FAULTS, SLOW_SECONDS, Audit, ProbeResult, Rate
from surefoot.domains.audit.trial import Trial, extraction
from surefoot.domains.audit.twin import Replies, compare, repeated
from surefoot.domains.audit.variants import variants
from surefoot.domains.fingerprint import fingerprint
from surefoot.domains.pool import DEMONSTRATED, TaskPool
from surefoot.errors import SurefootError
from surefoot.protocols import Domain, Sandbox
from surefoot.rewards.grading import GradingPool
from surefoot.types import Split, Task, Verdict

COMMON = 3
"""Commonest held-out answers that are tried as constants."""
LEAK_PROMPTS, LEAK_SECONDS = 200, 5.0
Sent = tuple[Task, Probe]


def audit(
    domain: Domain,
    sandbox: Sandbox,
    tasks: int = 12,
    *,
    source: str = "",
    twin: Replies | None = None,
    cases: Sequence[Case] = (),
    integrity: IntegrityConfig | None = None,
) -> Audit:
    """Audit a domain on its first `tasks` training tasks.

    Args:
        source: What the domain was built from, for the report.
        twin: What a second process with another hash seed says of the same domain, from `ask_twin`; None leaves that
            comparison out.
        cases: Texts that people rejected, which must not be paid.
        integrity: What the recipe does about findings; it decides whether a case is paid.

    Never raises for a domain that cannot be used: the report's `error` says so.
    """
    try:
        pool = TaskPool(domain, heldout=tasks)
        chosen = first_tasks(pool, tasks)
        _ = pool.heldout
        with GradingPool([domain], sandbox, workers=2, seconds=60.0) as graders:
            trial = Trial(graders)
            found = _measured(domain, pool, chosen, trial, source, twin)
            tried, paid, lost = try_cases(domain, cases, trial, integrity or IntegrityConfig())
            return replace(found, probes=(*found.probes, *tried), cases=paid, lost_cases=lost)
    except SurefootError as error:
        nothing = Rate(0, 0)
        return Audit(
            *(domain.name, source, 0, nothing, nothing, nothing, (), 0, (), 0, 0, 0, 0.0, 0.0, 0),
            *(domain.chance, 0, 0, nothing, 0),
            error=str(error).splitlines()[0],
        )


def first_tasks(pool: TaskPool, count: int) -> list[Task]:
    """The first `count` training tasks, each id once."""
    found: dict[str, Task] = {}
    for task in islice(pool.training_tasks(), 2 * count):
        found.setdefault(task.id, task)
        if len(found) == count:
            break
    return list(found.values())


def _measured(
    domain: Domain, pool: TaskPool, tasks: Sequence[Task], trial: Trial, source: str, twin: Replies | None
) -> Audit:
    how = extraction(domain)
    trial.warm(tasks[0])
    answers = [(task, Probe("reference", "reference", text)) for task in tasks if (text := reference(task)) is not None]
    oracle = _graded(trial, answers)
    sound = [task for (task, _), verdict in oracle if verdict.grade == "right"]
    common = _commonest(pool.heldout)
    attempts = [(task, p) for i, task in enumerate(tasks) for p in attacks(task, tasks, how, first=i == 0)]
    blind = [(task, p) for task in tasks for p in guesses(task, tasks, common, how)]
    kept = [(task, p) for task in sound for p in variants(task, how)]
    graded = [*oracle, *_graded(trial, attempts), *_graded(trial, blind), *_graded(trial, kept)]
    leak = _leakage(domain)
    mine = repeated(domain, trial)
    differing, compared, changed = compare(mine, twin) if twin is not None else (0, 0, 0)
    differing_here, _, changed_here = compare(mine, repeated(domain, trial))
    return Audit(
        domain=domain.name,
        source=source,
        tasks=len(tasks),
        fooled=_by_task(graded, FAULTS, "right"),
        refused=_by_task(graded, ("variant",), "wrong"),
        oracle_failures=Rate(sum(v.grade == "wrong" for _, v in oracle), len(oracle)),
        probes=_results(graded),
        ungradable=trial.ungradable,
        reasons=tuple(reason.splitlines()[0][:200] for reason, _ in trial.reasons.most_common(3)),
        disagreements=differing + differing_here,
        compared=compared + len(mine["verdicts"]),
        unstable=max(changed, changed_here),
        mean_seconds=sum(trial.seconds) / max(1, len(trial.seconds)),
        slowest_seconds=max(trial.seconds, default=0.0),
        slow=sum(s > SLOW_SECONDS for s in trial.seconds),
        chance=domain.chance,
        prompts=leak[0],
        distinct=leak[1],
        leaked=leak[2],
        heldout_in_train=len({task.prompt_hash for task in tasks} & pool.hashes),
        shots_shown=sum(bool(task.metadata.get(DEMONSTRATED)) for task in straight(domain, "train", len(tasks))),
        fingerprint=fingerprint(domain),
    )


def _graded(trial: Trial, sent: Sequence[Sent]) -> list[tuple[Sent, Verdict]]:
    verdicts = trial.verdicts([(task, probe.text) for task, probe in sent])
    return list(zip(sent, verdicts, strict=True))


def _by_task(graded: Sequence[tuple[Sent, Verdict]], kinds: Sequence[str], grade: str) -> Rate:
    tried = {task.id for (task, probe), _ in graded if probe.kind in kinds}
    hit = {task.id for (task, probe), verdict in graded if probe.kind in kinds and verdict.grade == grade}
    return Rate(len(hit), len(tried))


def _results(graded: Sequence[tuple[Sent, Verdict]]) -> tuple[ProbeResult, ...]:
    by_probe: dict[tuple[str, str], list[tuple[Sent, Verdict]]] = {}
    for (task, probe), verdict in graded:
        if verdict.grade != "ungradable":
            by_probe.setdefault((probe.kind, probe.name), []).append(((task, probe), verdict))
    return tuple(_result(found) for found in by_probe.values())


def _result(found: Sequence[tuple[Sent, Verdict]]) -> ProbeResult:
    probe = found[0][0][1]
    wanted = "wrong" if probe.kind in ("variant", "taste", "reference") else "right"
    telling = next(((task, p) for (task, p), verdict in found if verdict.grade == wanted), None)
    example = f"{telling[0].id}: {telling[1].text[:80]!r}" if telling else ""
    return ProbeResult(
        kind=probe.kind,
        name=probe.name,
        accepted=sum(verdict.grade == "right" for _, verdict in found),
        tried=len(found),
        score=sum(verdict.score for _, verdict in found) / len(found),
        example=example,
    )


def _commonest(tasks: Sequence[Task]) -> list[str]:
    """The commonest bare answers of other tasks than those that are audited, if they occur more than once."""
    found = Counter(str(task.checks.get("answer", reference(task) or "")) for task in tasks)
    return [text for text, count in found.most_common(COMMON) if text and count > 1]


def _leakage(domain: Domain) -> tuple[int, int, Rate]:
    """Training prompts looked at, distinct ones among them, and held-out prompts that are among them."""
    deadline = time.monotonic() + LEAK_SECONDS
    heldout = {_read(task) for task in _until(deadline - LEAK_SECONDS / 2, straight(domain, "heldout", LEAK_PROMPTS))}
    train = [_read(task) for task in _until(deadline, straight(domain, "train", LEAK_PROMPTS))]
    return len(train), len(set(train)), Rate(len(heldout & set(train)), len(heldout))


def _read(task: Task) -> str:
    return " ".join(" ".join(message["content"] for message in task.messages).casefold().split())


def _until(deadline: float, tasks: Iterator[Task]) -> Iterator[Task]:
    for task in tasks:
        yield task
        if time.monotonic() > deadline:
            return


def straight(domain: Domain, split: Split, count: int) -> Iterator[Task]:
    """The first `count` tasks of a split as the source has them, or as many as there are."""
    size = domain.source.size(split)
    for index in range(count if size is None else min(count, size)):
        yield domain.source.task(split, index)
