"""What a changed recipe means for a run that is resumed with it."""

from __future__ import annotations

from dataclasses import dataclass

from surefoot import recipe as recipes
from surefoot.config import Recipe

MEANINGS = {
    "model": "nothing: the weights are those of the checkpoint",
    "steps": "the run ends there; a learning rate that falls does so over the new length",
    "seed": "prompts and samples from here on are others than those of the run as it was",
    "run_dir": "nothing: the run stays where it is",
    "threads": "sums are rounded in another order, so the run is no longer repeatable bit for bit",
    "device": "sums are rounded in another order, so the run is no longer repeatable bit for bit",
    "rollout": "holds for the samples from here on; earlier metrics are not of the same kind",
    "learner.kl": "where there was no reference model, the weights of the checkpoint become it",
    "learner.dtype": "products are rounded differently from here on; weights and optimiser are kept",
    "learner": "holds for the updates from here on; the optimiser's state is kept",
    "warm_start": "nothing: the warm start is over",
    "sandbox": "programs run under other limits, so the same answer may get another verdict than before",
    "reward": "rewards before and after are not comparable",
    "schedule.rule": "the new rule begins afresh; what is known of single prompts is kept",
    "schedule": "holds for the draws from here on; what was learnt about domains is kept",
    "evaluate": "holds for evaluations still to come; those that exist are kept, so compare with care",
    "checkpoint": "holds for checkpoints from here on; nothing that is learnt changes",
    "cluster": "nothing that is learnt changes",
    "faults": "holds from here on; domains that are shut off stay so until they are tried again",
}
"""What a change means, by key or section; the longest name that fits is taken."""
DOMAIN_MEANINGS = {
    "weight": "its share of the prompts changes from here on",
    "min_share": "its share of the prompts changes from here on",
    "max_share": "its share of the prompts changes from here on",
    "chance": "only reports change",
    "card": "only reports and partial credit change",
    "max_new_tokens": "its answers may be longer or shorter from here on",
}
OTHER_TASKS = "its tasks or verdicts are others from here on; what is known of its pass rate may be wrong for a while"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs between the recipe of a run and the one that it is resumed with."""

    what: str
    """`key: old -> new`."""
    meaning: str

    def __str__(self) -> str:
        return f"{self.what}; {self.meaning}"


def differences(old: Recipe, new: Recipe) -> list[Difference]:
    """Everything in which two recipes differ, with what it means; a domain that came or went is one difference."""
    before, after = ({domain.name for domain in recipe.domains} for recipe in (old, new))
    came = [
        Difference(
            f"domains.{name}: added", "it starts as in a new run: no pass rate, no prompt seen, no baseline in reports"
        )
        for name in sorted(after - before)
    ]
    went = [
        Difference(f"domains.{name}: removed", "what was learnt about it is forgotten; its rollouts so far are kept")
        for name in sorted(before - after)
    ]
    common = before & after
    old, new = (
        recipe.model_copy(update={"domains": tuple(d for d in recipe.domains if d.name in common)})
        for recipe in (old, new)
    )
    lines = recipes.differences(old, new)
    return came + went + [Difference(line, _meaning(line.split(": ", 1)[0])) for line in lines]


def _meaning(key: str) -> str:
    if key.startswith("domains."):
        return DOMAIN_MEANINGS.get(key.rsplit(".", 1)[1], OTHER_TASKS)
    parts = key.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((MEANINGS[name] for name in names if name in MEANINGS), "holds from here on")
