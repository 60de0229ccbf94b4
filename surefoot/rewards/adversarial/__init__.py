"""Stronger tests for code tasks, made from a reference solution and a few inputs.

`strengthen` makes inputs (mutation, boundary values, Hypothesis), lets the reference answer them in the sandbox, and
measures by mutants of the reference what the old and the new tests notice.
"""

from surefoot.rewards.adversarial.strengthen import Settings, Strengthened, strengthen

__all__ = ["Settings", "Strengthened", "strengthen"]
