"""Signs that a rollout games its reward: pure functions from (task, rollout, verdict) to findings.

`code` looks at programs (`hardcoded`, `tampering`), `answers` at the form of answers, `degeneration` at text, `jumps`
at a whole run; `kinds` says how grave each finding is, `inspector` what is done about it.
"""

from __future__ import annotations

from surefoot.rewards.integrity.inspector import Inspector, inspect
from surefoot.rewards.integrity.kinds import KINDS

__all__ = ["KINDS", "Inspector", "inspect"]
