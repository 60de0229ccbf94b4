"""Where tasks come from and how their answers are graded.

domain = build_domain(DomainConfig(name="gcd", source="reasoning_gym:gcd", shots=4))
pool = TaskPool(domain, heldout=24)
task, cursor = pool.train(0)
"""

from __future__ import annotations

from surefoot.domains.catalogue import available, build_domain
from surefoot.domains.pool import TaskPool
from surefoot.domains.shots import demonstration

__all__ = ["TaskPool", "available", "build_domain", "demonstration"]
