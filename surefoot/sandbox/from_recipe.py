"""From a recipe's `[sandbox]` to an open sandbox; not in `build`, so that processes that only grade need no torch."""

from __future__ import annotations

from surefoot.config import SandboxConfig
from surefoot.protocols import Limits
from surefoot.sandbox import Image, Sandbox, open_sandbox


def sandbox_of(config: SandboxConfig) -> Sandbox:
    """The sandbox that `[sandbox]` describes. Raises SandboxError where its level is not to be had."""
    fields = config.model_dump()
    limits = Limits(**{name: fields[name] for name in Limits.__dataclass_fields__})
    images = {name: Image(**image.model_dump(exclude_none=True)) for name, image in config.images.items()}
    return open_sandbox(config.level, config.workers, images, config.allow_weak, limits)
