"""Which domains and prompts are drawn, and how many samples each gets."""

from surefoot.schedule.proportional import Pool, ProportionalScheduler

__all__ = ["Pool", "ProportionalScheduler"]
