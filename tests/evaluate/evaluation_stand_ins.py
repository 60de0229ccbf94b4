"""Stand-ins for a domain, an engine and graders: instant, deterministic, and they keep count of what was drawn."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from surefoot.evaluate.records import DomainRecord, Evaluation, Sample, TaskRecord
from surefoot.protocols import Domain, Sandbox
from surefoot.types import Draw, Rollout, Sampling, Split, Task, Verdict


class Numbers:
    """Tasks `NAME/heldout/0` ... : "Say i"."""

    def __init__(self, name: str, size: int) -> None:
        self.name, self._size = name, size

    def task(self, split: Split, index: int) -> Task:
        if index >= self._size:
            raise IndexError(index)
        prompt = f"{self.name}: say {index}"
        return Task(
            f"{self.name}/{split}/{index}",
            self.name,
            ({"role": "user", "content": prompt},),
            metadata={"answer": str(index)},
        )

    def size(self, split: Split) -> int:
        return self._size


class NoGrader:
    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict:
        raise AssertionError("the evaluator grades through `Graders`")


def domain(name: str = "numbers", size: int = 6, **more: object) -> Domain:
    return Domain(name, Numbers(name, size), NoGrader(), **more)  # type: ignore[arg-type]


class CoinEngine:
    """Answers right, wrong or rambling, depending on the seed alone; gives samples back in a shuffled order."""

    version = 3

    def __init__(self, delay: float = 0.0) -> None:
        self.drawn: list[tuple[str, int]] = []
        self._delay = delay

    def rollout(self, draws: Sequence[Draw], sampling: Sampling) -> Iterator[Rollout]:
        todo = [(draw, i) for draw in draws for i in range(draw.samples)]
        random.Random(0).shuffle(todo)
        for draw, i in todo:
            time.sleep(self._delay)
            seed = draw.seeds[i]
            self.drawn.append((draw.task.id, seed))
            said = str(draw.task.metadata["answer"]) if seed % 3 else "a \ud800 mess"
            yield Rollout(
                task_id=draw.task.id,
                domain=draw.task.domain,
                sample=i,
                tokens=(1, 2, 3),
                mask=(False, True, True),
                logprobs=(0.0, -0.5, -0.5),
                text=f"so <answer>{said}</answer>",
                stop="length" if seed % 7 == 0 else "stop",
                policy_version=3,
                seed=seed,
            )

    def close(self) -> None:
        pass


class ExactGraders:
    def grade(self, rollouts: Iterable[Rollout], tasks: Mapping[str, Task]) -> Iterator[tuple[Rollout, Verdict]]:
        for rollout in rollouts:
            right = f">{tasks[rollout.task_id].metadata['answer']}<" in rollout.text
            grade = "ungradable" if rollout.seed % 11 == 0 else "right" if right else "wrong"
            yield rollout, Verdict(grade, score=float(grade == "right"), reason="" if right else "not the number")


def evaluation(rates: Mapping[str, Sequence[int]], samples: int = 8, label: str = "", **more: float) -> Evaluation:
    """An evaluation with so many right samples in each task of each domain."""
    chance = more.get("chance", 0.0)
    domains = tuple(
        DomainRecord(name, chance, 64, tuple(_record(name, i, c, samples) for i, c in enumerate(right)))
        for name, right in rates.items()
    )
    return Evaluation("toy", domains, samples, label=label)


def _record(name: str, index: int, right: int, samples: int) -> TaskRecord:
    drawn = tuple(
        Sample(
            i,
            i,
            "right" if i < right else "wrong",
            float(i < right),
            f"text {i}",
            "yes" if i < right else "no",
            5,
            "stop",
        )
        for i in range(samples)
    )
    return TaskRecord(
        f"{name}/{index}", f"{index:x}", ({"role": "user", "content": f"question {index}"},), drawn, "yes"
    )
