"""The rule that a recipe names."""

from __future__ import annotations

from surefoot.config import ScheduleConfig
from surefoot.schedule.adaptive import AdaptiveRule, Tuning
from surefoot.schedule.others import DumpRule, FilteringRule, FixedRule, SecRule
from surefoot.schedule.rule import Arms, Rule


def make_rule(config: ScheduleConfig, arms: Arms, *, samples: int, seed: int) -> Rule:
    """The rule of `schedule.rule` over these arms, for groups of `samples`."""
    if config.rule == "adaptive":
        tuning = Tuning(temperature=config.temperature, stale=config.stale)
        return AdaptiveRule(arms, samples=samples, seed=seed, tuning=tuning)
    if config.rule in ("proportional", "uniform"):  # uniform's arms have equal weights
        return FixedRule(arms, samples=samples, seed=seed)
    others: dict[str, type[FixedRule]] = {"dapo": FilteringRule, "sec": SecRule, "dump": DumpRule}
    return others[config.rule](arms, samples=samples, seed=seed)
