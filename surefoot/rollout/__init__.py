"""Engines that sample from the policy."""

from surefoot.rollout.local import LocalEngine

__all__ = ["LocalEngine"]
