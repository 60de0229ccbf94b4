"""Red-teams verifiers before any step is spent on them: `surefoot audit DOMAIN...`.

[twin] = ask_twins([config])
report = audit(build_domain(config), sandbox, twin=twin)
"""

from __future__ import annotations

from surefoot.domains.audit.measure import audit
from surefoot.domains.audit.result import Audit, ProbeResult, Rate

__all__ = ["Audit", "ProbeResult", "Rate", "audit"]
