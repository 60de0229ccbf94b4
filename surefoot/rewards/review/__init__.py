"""What people look at of a run, and what their decisions say: picks, bounds, agreement, rules."""

from __future__ import annotations

from surefoot.rewards.review.picks import Candidate, Pick, active_picks, audit_sample, queue
from surefoot.rewards.review.reading import Bound, Judged, bounds, cohen_kappa, double_judged

__all__ = [
    "Bound",
    "Candidate",
    "Judged",
    "Pick",
    "active_picks",
    "audit_sample",
    "bounds",
    "cohen_kappa",
    "double_judged",
    "queue",
]
