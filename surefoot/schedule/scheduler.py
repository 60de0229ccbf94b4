"""The scheduler of a run: an allocation rule chooses domains and levels, a picker in each domain chooses prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from surefoot.errors import DataError, SurefootError
from surefoot.schedule.ledger import Ledger
from surefoot.schedule.prompts import Pool, PromptPicker
from surefoot.schedule.rule import Arms, Outcomes, Rule
from surefoot.types import Draw, Group, Task, UpdateReport, stable_seed

WINDOW = 20
"""Steps within which no prompt is drawn twice."""
PROMPT_TOKEN = 0.1
"""What a token that is only read costs, in tokens that are written: reading is done for all of a prompt at once."""
MOST_REFUSED = 64
"""Tasks of a domain that one draw leaves out in a row before the domain counts as failing."""


class DomainScheduler:
    """Implements `protocols.Scheduler`.

    Args:
        pools: Training tasks by domain, in the order of the rule's arms.
        rule: Chooses domains and levels.
        max_new_tokens: Longest answer of each domain, in tokens.
        prompts: Groups a step.
        samples: Samples a group, where the rule does not say otherwise.
        seed: Every draw depends on it, on the step and on what was observed, and on nothing else.
        second_price: Tokens that a second of grading is worth. Above 0, draws depend on measured time, so that two runs
            of a recipe are no longer alike; replaying a run's log still is exact.
        grader_seconds: Time of one grading by domain, as domain cards say; used in place of measured time.
    """

    def __init__(
        self,
        pools: Mapping[str, Pool],
        arms: Arms,
        rule: Rule,
        max_new_tokens: Mapping[str, int],
        *,
        prompts: int,
        samples: int,
        seed: int,
        second_price: float = 0.0,
        grader_seconds: Mapping[str, float] | None = None,
    ) -> None:
        self.arms, self.rule, self.max_new_tokens = arms, rule, max_new_tokens
        self.prompts, self.samples, self.seed, self.second_price = prompts, samples, seed, second_price
        self._grader_seconds = dict(grader_seconds or {})
        self.pickers = {name: PromptPicker(pools[name], samples, WINDOW, seed) for name in arms.names}
        self.ledger = Ledger()
        self.log: Callable[[dict[str, Any]], None] | None = None
        """Told of each step's outcomes as the rule sees them; `replay` rebuilds the rule's state from these lines."""
        self.refusal: Callable[[Task], str] = lambda task: ""
        """Why a task cannot be sampled (its prompt is too long); such a task is left out for good."""
        self.refused: dict[str, dict[str, str]] = {}
        """Tasks that were left out in the last draw: why, by domain and task id."""
        self._index = {name: row for row, name in enumerate(arms.names)}
        self.failures: dict[str, str] = {}
        self.opened: dict[str, int] = {}
        """Domains that were drawn for the first time at a harder level in the last step, and the level."""
        self._reached: dict[str, int] = {}
        self._levels: dict[str, int] = {}
        self._step = 0
        self._factors = np.ones(len(arms.names))
        self._open = self._factors

    def draw(self, step: int, available: Mapping[str, float] | None = None) -> list[Draw]:
        """The draws of one step.

        Args:
            available: What multiplies the share of a domain: 0 for one that is shut off, 1 where nothing is said.
        """
        self._step, self._levels, self.failures, self.opened, self.refused = step, {}, {}, {}, {}
        self._open = self._factors * [(available or {}).get(name, 1.0) for name in self.arms.names]
        plan = self.rule.allocate(step, self.prompts, self._open)
        draws = []
        for row, level, samples in zip(plan.domain.tolist(), plan.level.tolist(), plan.samples.tolist(), strict=True):
            name = self.arms.names[row]
            task = self._pick(name, level)
            if task is not None:
                self._levels[task.id] = level
                self._reach(name, level)
                seeds = tuple(stable_seed(self.seed, step, task.id, sample) for sample in range(samples))
                draws.append(Draw(task, samples, self.max_new_tokens[name], seeds))
        return draws

    def _reach(self, name: str, level: int) -> None:
        if level > self._reached.get(name, 0):
            self._reached[name] = self.opened[name] = level

    def _pick(self, name: str, level: int) -> Task | None:
        """The next task of a domain; None where it has none, or where its source fails, which `failures` tells."""
        if name in self.failures:
            return None
        try:
            return self._pick_fitting(name, level)
        except Exception as failed:  # a source may be anybody's code
            self.failures[name] = (
                failed.what if isinstance(failed, SurefootError) else f"{type(failed).__name__}: {failed}"
            )
            return None

    def _pick_fitting(self, name: str, level: int) -> Task | None:
        """The next task that can be sampled; those before it that cannot are excluded, and told in `refused`."""
        why = ""
        for _ in range(MOST_REFUSED):
            task = self.pickers[name].pick(level, self._step, self.ledger.rate(name, level))
            if task is None or not (why := self.refusal(task)):
                return task
            self.pickers[name].refuse(task)
            self.refused.setdefault(name, {})[task.id] = why
        raise DataError(f"{MOST_REFUSED} tasks in a row cannot be sampled: {why}", where=f"domain {name}")

    def exclude(self, name: str, prompt_hash: str) -> None:
        """Never draw this prompt of a domain again."""
        if name in self.pickers:
            self.pickers[name].excluded.add(prompt_hash)

    def observe(self, groups: Sequence[Group], update: UpdateReport) -> None:
        """Take in the groups of the step that was drawn last."""
        rows = [self._row(group) for group in groups]
        for group, (_, level, _, valid, passes, _) in zip(groups, rows, strict=True):
            self.pickers[group.task.domain].observe(group.task.id, passes, int(valid))
            self.ledger.add(self._step, group, int(level))
        self.rule.observe(self._step, outcomes_of(rows))
        if self.log:
            self.log({"step": self._step, "groups": rows, "available": self._open.tolist()})

    def scale(self, name: str, factor: float) -> None:
        """Multiply a domain's share by `factor`, at the expense or to the benefit of all others."""
        if name in self._index:
            self._factors[self._index[name]] *= factor

    def skip(self, cursors: Mapping[str, Sequence[int]]) -> None:
        """Go on behind tasks that were used before the first step: a cursor for each level of each domain."""
        for name, places in cursors.items():
            self.pickers[name].cursors[: len(places)] = places

    def state(self) -> dict[str, Any]:
        """The rule's state, the pickers' by domain, and the ledger."""
        pickers = {name: picker.state() for name, picker in self.pickers.items()}
        factors = dict(zip(self.arms.names, self._factors.tolist(), strict=True))
        own = {"ledger": self.ledger.state(), "factors": factors, "reached": self._reached}
        return {"rule": self.rule.state(), "prompts": pickers, **own}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state; domains that are new start afresh, domains that are gone are forgotten."""
        self.rule.restore(state["rule"])
        self.ledger.restore(state["ledger"])
        self._reached = dict(state.get("reached", {}))
        self._factors[:] = [state["factors"].get(name, 1.0) for name in self.arms.names]
        for name, picker in self.pickers.items():
            if name in state["prompts"]:
                picker.restore(state["prompts"][name])

    def _row(self, group: Group) -> list[float]:
        """Domain, level, samples asked for, valid samples, sum of their scores, cost."""
        valid = [reward for reward in group.rewards if reward.valid]
        passes = sum(min(1.0, max(0.0, reward.value)) for reward in valid)
        read = group.rollouts[0].prompt_length if group.rollouts else 0
        cost = sum(rollout.sampled for rollout in group.rollouts) + PROMPT_TOKEN * read
        if self.second_price:
            known = self._grader_seconds.get(group.task.domain)
            cost += self.second_price * sum(v.seconds if known is None else known for v in group.verdicts)
        level = self._levels[group.task.id]
        return [self._index[group.task.domain], level, len(group.rollouts), len(valid), passes, cost]


def outcomes_of(rows: Sequence[Sequence[float]]) -> Outcomes:
    """Outcomes from rows of (domain, level, asked, valid, passes, cost)."""
    table = np.array(rows, dtype=np.float64).reshape(-1, 6)
    domain, level, asked, valid = (table[:, column].astype(np.int64) for column in range(4))
    return Outcomes(domain, level, asked, valid, table[:, 4], table[:, 5])


def replay(rule: Rule, lines: Sequence[Mapping[str, Any]], groups: int) -> None:
    """Bring a fresh rule to where the run that wrote `lines` left it, bit for bit.

    A line holds the outcomes of a step, and `available` where domains were shut off. Raises ValueError where the rule
    does not allocate what was drawn: the log is not of this rule.
    """
    for line in lines:
        outcomes = outcomes_of(line["groups"])
        available = np.asarray(line.get("available") or [1.0])
        plan = rule.allocate(line["step"], groups, available)
        if plan.domain.tolist() != outcomes.domain.tolist() or plan.level.tolist() != outcomes.level.tolist():
            raise ValueError(f"step {line['step']}: the log is not of a run of this rule")
        rule.observe(line["step"], outcomes)
