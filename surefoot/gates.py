"""Gates during training: the policy is evaluated every few steps, and a domain that got less steady has consequences.

Each evaluation is held against the one of the policy that reinforcement learning began with, domain by domain, by the
paired test and with the correction for many domains of `evaluate.comparison`; means hide a domain that breaks, and
single figures move by luck.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from surefoot import loop
from surefoot.config import EvaluateConfig
from surefoot.evaluate import Change, Evaluation, compare, parse_metric
from surefoot.evaluate.metric import Metric
from surefoot.loop import Run
from surefoot.measure import Measure
from surefoot.recovery import take_up
from surefoot.store import CheckpointStore

SLOWER = 0.5
"""What a regressed domain's share of the prompts is multiplied by."""
ACCEPTED = "accepted"


def watched(settings: EvaluateConfig) -> Metric:
    """The metric of the gate: `evaluate.gate`, or pass^k with k half of the samples, at least 2 where there are 2."""
    if settings.gate:
        return parse_metric(settings.gate)
    k = max(min(2, settings.samples), settings.samples // 2)
    return Metric("pass^", k) if k > 1 else Metric("pass@")


def regressions(before: Evaluation, now: Evaluation, metric: Metric) -> list[Change]:
    """The domains in which the metric is worse than before, Holm-adjusted at 5%."""
    return [change for change in compare(before, now, metric).domains if change.direction == "worse"]


@dataclass
class GatedTraining:
    """The loop, with an evaluation and its consequences every `evaluate.every` steps."""

    run: Run
    measure: Measure

    def train(self, before: Evaluation) -> None:
        """Take all steps, or fewer where a regression stops the run.

        A run that is resumed right at a gate holds it again: its samples are on the disk, so the verdict is the same.
        """
        run, every = self.run, self.run.recipe.evaluate.every
        accepted = CheckpointStore(run.directory.checkpoints.parent / ACCEPTED, keep=1)
        if not accepted.paths() and self._rolls_back:
            self._accept(accepted)
        while run.done < run.recipe.steps:
            if run.done and run.done % every == 0 and not self._pass(before, accepted):
                return
            run.until = min(run.done - run.done % every + every, run.recipe.steps)
            loop.train(run)

    @property
    def _rolls_back(self) -> bool:
        return self.run.recipe.evaluate.on_regression == "roll_back"

    def _pass(self, before: Evaluation, accepted: CheckpointStore) -> bool:
        """Hold the gate after `run.done` steps, and act. False if the run is to end."""
        run, settings = self.run, self.run.recipe.evaluate
        label = f"step {run.done}"
        now = self.measure(run.engine, label, run.directory.evaluations / label.replace(" ", "-"))
        worse = regressions(before, now, watched(settings))
        self._tell(worse)
        if not worse:
            if self._rolls_back:
                self._accept(accepted)
            return True
        if settings.on_regression in ("slow", "roll_back"):
            for change in worse:
                run.scheduler.scale(change.name, SLOWER)
        if self._rolls_back:
            self._restore(accepted)
        return settings.on_regression != "stop"

    def _tell(self, worse: Sequence[Change]) -> None:
        run, settings = self.run, self.run.recipe.evaluate
        metric, action = str(watched(settings)), settings.on_regression
        for change in worse:
            run.progress.say(
                f"step {run.done}: {change.name} got less steady, {metric} from {change.before.value:.1%} to "
                f"{change.after.value:.1%} (p = {change.adjusted:.3f}); on_regression = {action}"
            )
        lost = {change.name: [change.before.value, change.after.value] for change in worse}
        run.journal.event("gate", step=run.done, metric=metric, worse=lost, action=action if worse else "none")

    def _accept(self, accepted: CheckpointStore) -> None:
        """Keep the present weights and optimiser to come back to."""
        if not (accepted.directory / f"step-{self.run.done:06d}").exists():
            self.run.write_checkpoint(accepted)

    def _restore(self, accepted: CheckpointStore) -> None:
        """Weights and optimiser of the last gate that was passed; the step number and the schedule go on."""
        run = self.run
        kept = accepted.load(accepted.paths()[-1])
        take_up(kept, run.learner, run.engine)
        run.progress.say(f"step {run.done}: rolled back to the weights of step {kept.step}")
