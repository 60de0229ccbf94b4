"""Small Python functions to write: families of problems by topic, and the inputs that test them."""

from surefoot.domains.code_tasks.topics import FAMILIES

__all__ = ["FAMILIES"]
