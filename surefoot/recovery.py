"""What a run does when a part of it fails: shuts domains off, sets tasks aside, samples again, takes old weights up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from surefoot.config import Recipe
from surefoot.errors import ResourceError, RunError, SurefootError
from surefoot.learner import PolicyLearner
from surefoot.learner.weights import weight_tensors
from surefoot.models import load_model
from surefoot.protocols import Scheduler, TrainingEngine
from surefoot.schedule.breakers import Breakers, Change, first_line
from surefoot.store import Checkpoint, CheckpointStore, Quarantine
from surefoot.store.quarantine import evidence
from surefoot.types import Draw, Group, Rollout, Sampling, UpdateReport

MOST_RETURNS = 2
"""Times that weights are taken back without one good update in between before the run is given up."""
MOST_SUSPECTS = 256
"""Tasks under suspicion that are remembered; the longest known are forgotten first."""


class Tell(Protocol):
    """Says something to the user and writes it into the run's events."""

    def __call__(self, kind: str, text: str, **details: Any) -> None: ...


@dataclass(slots=True)
class Streaks:
    """How long things have been going wrong."""

    blank: int = 0
    """Steps in a row without one gradable rollout."""
    diverged: int = 0
    """Updates in a row that were not finite; those without any signal in between do not count."""
    since: int = 0
    """Step of the first of them."""
    returns: int = 0
    """Times that weights were taken back since the last good update."""


@dataclass
class Recovery:
    """Watches the steps of a run and acts on what fails. Its state is part of every checkpoint."""

    recipe: Recipe
    scheduler: Scheduler
    engine: TrainingEngine
    learner: PolicyLearner
    checkpoints: CheckpointStore
    quarantine: Quarantine
    tell: Tell
    breakers: Breakers = field(init=False)
    streaks: Streaks = field(default_factory=Streaks)
    suspects: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Evidence against tasks of whose last group nothing could be graded, by hash of the prompt."""

    def __post_init__(self) -> None:
        names = [domain.name for domain in self.recipe.domains if domain.weight > 0]
        self.breakers = Breakers(names, self.recipe.faults, self.recipe.rollout.prompts)

    def available(self, step: int) -> dict[str, float]:
        """What multiplies the shares of domains that are shut off or on probation."""
        return self.breakers.available(step)

    def rollouts(self, draws: Sequence[Draw], sampling: Sampling) -> Iterator[Rollout]:
        """All samples of all draws. If the engine fails, what it still owes is sampled again, once.

        It is asked for the same draws as before, and gives the same samples as it would have: rows that are computed
        together stay together. Raises ResourceError if it fails again.
        """
        got: set[tuple[str, int]] = set()
        for last in (False, True):
            try:
                for rollout in self.engine.rollout(draws, sampling):
                    if (key := (rollout.task_id, rollout.sample)) not in got:
                        got.add(key)
                        yield rollout
                return
            except SurefootError:
                raise
            except Exception as failed:
                self._engine_failed(failed, sum(draw.samples for draw in draws) - len(got), last)

    def _engine_failed(self, failed: Exception, missing: int, last: bool) -> None:
        why = f"{type(failed).__name__}: {first_line(str(failed))}"
        if last:
            raise ResourceError(
                f"the engine failed twice in one step ({why})",
                fix="what was checkpointed is safe: find the cause, then continue with --resume",
            ) from failed
        self.tell("engine_failed", f"the engine failed ({why}); {missing} samples are drawn again", missing=missing)
        self.engine.refresh(self.engine.version)

    # ------------------------------------------------------------------------------------------------- after a step

    def observe(self, step: int, groups: Sequence[Group], update: UpdateReport) -> None:
        """Take in how a step ended, and act."""
        for change in self.breakers.observe(step, groups, self.scheduler.failures):
            self._tell_breaker(step, change)
        self._set_aside(step, groups)
        self.streaks.blank = 0 if any(map(_gradable, groups)) else self.streaks.blank + 1
        if update.diverged:
            self._diverged(step, groups, update.skipped)
        elif not update.skipped:
            self.streaks.diverged = self.streaks.returns = 0

    @property
    def doubtful(self) -> bool:
        """Whether the weights are under suspicion: they may be what makes updates fail, so they are no checkpoint."""
        return self.streaks.diverged > 0

    @property
    def hopeless(self) -> bool:
        """Whether going on would only waste time."""
        return self.streaks.blank >= self.recipe.faults.give_up or self.streaks.returns > MOST_RETURNS

    def check(self) -> None:
        """Raise RunError if the run is hopeless. Save it before."""
        if self.streaks.blank >= self.recipe.faults.give_up:
            raise RunError(
                f"nothing could be graded for {self.streaks.blank} steps, so there is nothing to learn from",
                fix="see events.jsonl for the reasons; when graders and sandbox work again, continue with --resume",
            )
        if self.streaks.returns > MOST_RETURNS:
            raise RunError(
                f"updates are still not finite after weights were taken back {MOST_RETURNS} times",
                fix="look at the batches in skipped/, lower learner.lr or set learner.dtype = 'float32', then --resume",
            )

    def _tell_breaker(self, step: int, change: Change) -> None:
        if change.state == "opened":
            text = f"step {step}: {change.domain} is shut off until step {change.again}: {change.why}"
        else:
            text = f"step {step}: {change.domain} is back: {change.why}"
        again = {"again": change.again} if change.again else {}
        self.tell(f"breaker_{change.state}", text, step=step, domain=change.domain, why=change.why, **again)

    def _set_aside(self, step: int, groups: Sequence[Group]) -> None:
        """Exclude tasks that cannot be graded while others of their domain can, in this step or the next of it."""
        working = {group.task.domain for group in groups if _gradable(group)}
        for group in groups:
            before = self.suspects.pop(group.task.prompt_hash, None)
            if not _gradable(group):
                strikes = before["strikes"] + 1 if before else 1
                self.suspects[group.task.prompt_hash] = {**evidence(step, group), "strikes": strikes}
        for key, suspect in list(self.suspects.items()):
            domain = suspect["domain"]
            if domain not in self.breakers.breakers or not self.breakers.is_closed(domain):
                del self.suspects[key]  # it is the domain's fault
            elif domain in working and suspect["strikes"] >= self.recipe.faults.poison:
                del self.suspects[key]
                self._quarantine(step, key, suspect)
        for key in list(self.suspects)[:-MOST_SUSPECTS]:
            del self.suspects[key]

    def _quarantine(self, step: int, prompt: str, suspect: Mapping[str, Any]) -> None:
        task, domain = suspect["task"], suspect["domain"]
        self.scheduler.exclude(domain, prompt)
        self.quarantine.add(step, suspect)
        why = first_line(suspect["rollouts"][0]["reason"]) if suspect["rollouts"] else "it has no rollouts"
        text = f"step {step}: task {task} is set aside, none of its answers could be graded: {why}"
        self.tell("task_quarantined", text, step=step, task=task, domain=domain, why=why)

    def _diverged(self, step: int, groups: Sequence[Group], reason: str) -> None:
        streaks = self.streaks
        streaks.since = streaks.since if streaks.diverged else step
        streaks.diverged += 1
        kept = self.quarantine.keep_batch(step, groups)
        place = f"{kept.parent.name}/{kept.name}"
        self.tell("batch_kept", f"step {step}: {reason}; its batch is kept in {place}", step=step, batch=place)
        if streaks.diverged >= self.recipe.faults.roll_back:
            self._roll_back(step)

    def _roll_back(self, step: int) -> None:
        streaks, count = self.streaks, self.streaks.diverged
        kept = self.checkpoints.before(streaks.since, self.recipe.checkpoint.every)
        streaks.returns += 1
        streaks.diverged = 0
        if kept is None:
            text = f"step {step}: {count} updates in a row were not finite, and no checkpoint is older than they are"
            self.tell("roll_back_failed", text, step=step)
        elif streaks.returns <= MOST_RETURNS:
            take_up(kept, self.learner, self.engine)
            text = f"step {step}: {count} updates in a row were not finite: back to the weights of step {kept.step}"
            self.tell("rolled_back", text, step=step, to=kept.step)

    # ------------------------------------------------------------------------------------------------- checkpoints

    def state(self) -> dict[str, Any]:
        """Everything that later decisions depend on, as JSON-ready data."""
        return {"breakers": self.breakers.state(), "streaks": asdict(self.streaks), "suspects": self.suspects}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state; nothing for a run from before there was one."""
        self.breakers.restore(state.get("breakers", {}))
        self.streaks = Streaks(**state.get("streaks", {}))
        self.suspects = {key: dict(suspect) for key, suspect in state.get("suspects", {}).items()}


def _gradable(group: Group) -> bool:
    return any(verdict.grade != "ungradable" for verdict in group.verdicts)


def take_up(kept: Checkpoint, learner: PolicyLearner, engine: TrainingEngine) -> None:
    """Give the policy weights and optimiser of a checkpoint; its version and the learning rate's schedule go on."""
    masters = weight_tensors(load_model(str(kept.path)).decoder, "master")
    now = learner.counters()
    counters = {**kept.state["learner"], "updates": now["updates"], "version": now["version"] + 1}
    learner.restore({**learner.tensors(), **kept.tensors, **masters}, counters)
    engine.refresh(learner.version)
