"""Which domains and prompts are drawn, and how many samples each gets."""

from surefoot.schedule.adaptive import AdaptiveRule, Tuning
from surefoot.schedule.choose import make_rule
from surefoot.schedule.ledger import Ledger
from surefoot.schedule.others import DumpRule, FilteringRule, FixedRule, SecRule
from surefoot.schedule.prompts import Pool, PromptPicker
from surefoot.schedule.rule import Allocation, Arms, Outcomes, Rule
from surefoot.schedule.scheduler import DomainScheduler, replay

__all__ = [
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
    "make_rule",
    "replay",
]
