"""Running an evaluation: samples of held-out tasks, graded as they finish and recorded as they are graded."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from surefoot.errors import ConfigError, DataError, RunError
from surefoot.evaluate.answers import AnswerOf, final_answer
from surefoot.evaluate.log import Key, SampleLog, header_of, key_of
from surefoot.evaluate.modes import mode_of
from surefoot.evaluate.records import DomainRecord, Evaluation, Sample, Skipped, TaskRecord, save
from surefoot.evaluate.regrade import first_failure, printable, regrade
from surefoot.evaluate.variants import OF, regrades
from surefoot.protocols import ChecksPrompts, Domain, Engine, Graders
from surefoot.types import Draw, Message, Rollout, Sampling, Task, Verdict, stable_seed

SAMPLES_FILE = "samples.jsonl"
EVALUATION_FILE = "evaluation.json"

HeldOut = Callable[[Domain, int], Sequence[Task]]
"""The first n held-out tasks of a domain, or as many as there are. What it gives beyond n is not used."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an evaluation is."""

    done: int
    total: int
    reused: int
    """Samples found in the log and not drawn again; they count in `done`."""
    tokens: int
    """Tokens sampled in this call."""
    seconds: float

    @property
    def remaining_seconds(self) -> float | None:
        """Estimated from the pace so far; None before the first sample."""
        fresh = self.done - self.reused
        return self.seconds / fresh * (self.total - self.done) if fresh else None


@dataclass(frozen=True, slots=True)
class Plan:
    """What an evaluation will cost at most, known before it begins."""

    tasks: int
    samples: int
    max_tokens: int


def heldout_tasks(domain: Domain, count: int) -> Sequence[Task]:
    """The default of `HeldOut`: indices 0, 1, ... of the source's held-out split, until it ends."""
    tasks: list[Task] = []
    for index in range(count):
        try:
            tasks.append(domain.source.task("heldout", index))
        except IndexError:
            break
    return tasks


def plan(domains: Sequence[Domain], *, tasks: int, samples: int, heldout: HeldOut = heldout_tasks) -> Plan:
    """Count tasks, samples and the most tokens that `evaluate` with the same arguments would sample."""
    suite = [entry for entry in _suite(domains, heldout, tasks, samples) if not regrades(entry[0])]
    each = [(len(drawn), domain.longest_sample) for domain, drawn in suite]
    total = sum(count for count, _ in each)
    return Plan(total, total * samples, sum(count * limit for count, limit in each) * samples)


def evaluate(
    domains: Sequence[Domain],
    engine: Engine,
    graders: Graders,
    *,
    tasks: int,
    samples: int,
    sampling: Sampling,
    seed: int,
    progress: Callable[[Progress], None] | None = None,
    model: str = "",
    label: str = "",
    directory: Path | None = None,
    heldout: HeldOut = heldout_tasks,
    answer: AnswerOf = final_answer,
) -> Evaluation:
    """Sample the first `tasks` held-out tasks of each domain `samples` times each, and grade every sample.

    The seed of a sample is `stable_seed("eval", seed, task.id, sample)`: before and after a run use the same ones.

    Args:
        progress: Called after each graded sample, and once at the start.
        model: Name of the model, for the reader; also part of what a log must match.
        label: Its stage (base, warm start, after RL), the head of its column in reports.
        directory: Where `samples.jsonl` grows and `evaluation.json` is written at the end. Samples already there are
            not drawn again, so an evaluation that was killed goes on where it stopped, and a larger one (more tasks or
            samples) draws only what is new. None keeps nothing.

    A task whose prompt is too long for the engine is left out of the figures, and listed in its domain's `skipped`.

    Raises:
        DataError: A domain has no held-out task, two tasks share an id, or every prompt is too long.
        RunError: The directory holds samples of another model or plan, or the graders lost rollouts.
    """
    whole = _suite(domains, heldout, tasks, samples)
    suite = [entry for entry in whole if not regrades(entry[0])]
    header = header_of(model, engine, sampling, seed)
    refused = _refused(suite, engine)
    with SampleLog(directory / SAMPLES_FILE if directory else None, header) as log:
        keys = {
            (task.id, i): key_of(task, domain.max_new_tokens, stable_seed("eval", seed, task.id, i))
            for domain, drawn in suite
            for task in drawn
            for i in range(samples)
        }
        _sample_missing(suite, engine, graders, sampling, samples, keys, log, answer, progress, refused)
        if len(refused) == sum(len(drawn) for _, drawn in suite):
            name, why = next(iter(refused.items()))
            fix = "raise rollout.max_prompt_tokens, or take a model with a longer window"
            raise DataError(f"every prompt is too long: {why}", where=f"task {name!r}", fix=fix)
        records = [_domain_record(domain, drawn, samples, keys, log, refused) for domain, drawn in suite]
        boundary = [(domain, drawn) for domain, drawn in whole if regrades(domain)]
        evaluation = Evaluation(
            model=model,
            domains=(*records, *regrade(boundary, records, graders)),
            samples=samples,
            sampling=sampling,
            seed=seed,
            policy_version=engine.version,
            label=label,
        )
    if directory:
        save(evaluation, directory / EVALUATION_FILE)
    return evaluation


Suite = list[tuple[Domain, Sequence[Task]]]
Keys = Mapping[tuple[str, int], Key]


def _suite(domains: Sequence[Domain], heldout: HeldOut, tasks: int, samples: int) -> Suite:
    if tasks < 1 or samples < 1 or not domains:
        raise ConfigError("an evaluation needs at least one domain, one task and one sample")
    suite: Suite = [(domain, heldout(domain, tasks)[:tasks]) for domain in domains]
    for domain, drawn in suite:
        if not drawn:
            raise DataError("this domain has no held-out tasks", where=domain.name, fix="give it some, or leave it out")
    names = Counter(domain.name for domain in domains)
    if twice := [name for name, count in names.items() if count > 1]:
        raise DataError("two domains share this name", where=twice[0], fix="rename one of them")
    ids = Counter(task.id for _, drawn in suite for task in drawn)
    if twice := [name for name, count in ids.items() if count > 1]:
        raise DataError("two held-out tasks share this id", where=twice[0], fix="make task ids unique")
    return suite


def _refused(suite: Suite, engine: Engine) -> dict[str, str]:
    """Tasks that the engine says it cannot take, and why, by id."""
    if not isinstance(engine, ChecksPrompts):
        return {}
    whys = {task.id: engine.refusal(task) for _, drawn in suite for task in drawn}
    return {name: why for name, why in whys.items() if why}


def _taken(rollouts: Iterable[Rollout], refused: dict[str, str]) -> Iterator[Rollout]:
    """The rollouts without those that an endpoint refused for their length, whose tasks are noted in `refused`."""
    for rollout in rollouts:
        if rollout.stop == "aborted":
            refused[rollout.task_id] = printable(rollout.text)
        else:
            yield rollout


def _sample_missing(
    suite: Suite,
    engine: Engine,
    graders: Graders,
    sampling: Sampling,
    samples: int,
    keys: Keys,
    log: SampleLog,
    answer: AnswerOf,
    progress: Callable[[Progress], None] | None,
    refused: dict[str, str],
) -> None:
    """Draw, grade and record every sample that the log does not have yet; `refused` grows where an endpoint refuses."""
    by_id = {task.id: task for _, drawn in suite for task in drawn if task.id not in refused}
    total = len(by_id) * samples
    missing = {name: [i for i in range(samples) if keys[name, i] not in log.samples] for name in by_id}
    draws = [
        Draw(task, len(missing[task.id]), domain.max_new_tokens, tuple(keys[task.id, i][-1] for i in missing[task.id]))
        for domain, drawn in suite
        for task in drawn
        if missing.get(task.id)
    ]
    reused = total - sum(map(len, missing.values()))
    done, tokens, began = reused, 0, time.monotonic()

    def tell() -> None:
        if progress:
            progress(Progress(done, total, reused, tokens, time.monotonic() - began))

    tell()
    if not draws:
        return
    for rollout, verdict in graders.grade(_taken(engine.rollout(draws, sampling), refused), by_id):
        index = missing[rollout.task_id][rollout.sample]
        key = keys[rollout.task_id, index]
        log.append(key, _sample(by_id[rollout.task_id], rollout, verdict, index, key[-1], answer))
        done, tokens = done + 1, tokens + rollout.sampled
        tell()
    lost = [key[0] for key in keys.values() if key not in log.samples and key[0] not in refused]
    if lost:
        raise RunError(
            f"{len(lost)} of {total} samples came back without a verdict",
            where=lost[0],
            fix="run the same command again: recorded samples are kept",
        )


def _sample(task: Task, rollout: Rollout, verdict: Verdict, index: int, seed: int, answer: AnswerOf) -> Sample:
    found = answer(task, rollout)
    return Sample(
        sample=index,
        seed=seed,
        grade=verdict.grade,
        score=verdict.score,
        text=printable(rollout.text),
        answer=None if found is None else printable(found),
        tokens=rollout.sampled,
        stop=rollout.stop,
        reason=printable(verdict.reason or first_failure(verdict)),
        mode=mode_of(rollout, verdict, task),
        context=rollout.prompt_length,
    )


def _domain_record(
    domain: Domain, drawn: Sequence[Task], samples: int, keys: Keys, log: SampleLog, refused: Mapping[str, str]
) -> DomainRecord:
    records = []
    for task in drawn:
        if task.id in refused:
            continue
        reference = task.metadata.get("answer")
        records.append(
            TaskRecord(
                id=task.id,
                prompt_hash=task.prompt_hash,
                messages=tuple(Message(role=m["role"], content=printable(m["content"])) for m in task.messages),
                samples=tuple(log.samples[keys[task.id, i]] for i in range(samples)),
                reference=None if reference is None else str(reference),
                variant_of=task.metadata.get(OF),
            )
        )
    skipped = tuple(Skipped(t.id, t.prompt_hash, refused[t.id]) for t in drawn if t.id in refused)
    return DomainRecord(domain.name, domain.chance, domain.max_new_tokens, tuple(records), skipped)
