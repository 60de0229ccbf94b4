"""Which domains and prompts are drawn, and how many samples each gets."""

from surefoot.schedule.adaptive import AdaptiveRule, Tuning
from surefoot.schedule.ledger import Ledger
from surefoot.schedule.others import DumpRule, FilteringRule, FixedRule, SecRule
from surefoot.schedule.prompts import Pool, PromptPicker
from surefoot.schedule.rule import Allocation, Arms, Outcomes, Rule
from surefoot.schedule.scheduler import DomainScheduler, replay

RULES = ("adaptive", "proportional", "uniform", "dapo", "sec", "dump")
"""What `schedule.rule` may be."""

__all__ = [
    "RULES",
    "AdaptiveRule",
    "Allocation",
    "Arms",
    "DomainScheduler",
    "DumpRule",
    "FilteringRule",
    "FixedRule",
    "Ledger",
    "Outcomes",
    "Pool",
    "PromptPicker",
    "Rule",
    "SecRule",
    "Tuning",
    "replay",
]
