"""Graders that are a user's own function `(task, rollout) -> Verdict | float | bool`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from surefoot.errors import ConfigError, GraderError
from surefoot.protocols import GraderFunction, Sandbox
from surefoot.rewards.jail import Jail
from surefoot.rewards.staging import readable_in_jail
from surefoot.rewards.verdicts import as_verdict
from surefoot.types import Rollout, Task, Verdict, dump, load


@dataclass(frozen=True)
class FunctionGrader:
    """Calls the function in this process: for code that is installed and trusted with whatever a model writes.

    One that raises, or returns NaN or a number outside [0, 1], makes the rollout ungradable.
    """

    function: GraderFunction

    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict:
        name = getattr(self.function, "__name__", "grader")
        try:
            value = self.function(task, rollout)
        except Exception as error:
            raise GraderError(f"{type(error).__name__}: {error}", where=name) from error
        return as_verdict(value, name)


class JailedFunctionGrader:
    """Calls a function of a Python file inside the jail, in a fork of its own for each rollout, with a deadline.

    Args:
        path: The file. It and its folder can be read in the jail, nothing else of the user's.
        attribute: Name of the function, or of what `@domain` made.
        seconds: CPU time that one rollout may take.
    """

    def __init__(self, path: Path, attribute: str, *, seconds: float = 10.0) -> None:
        self.path, self.attribute = path.resolve(), attribute
        if not self.path.is_file():
            raise ConfigError("there is no such Python file", where=str(path))
        visible = readable_in_jail(self.path)
        env = {"SUREFOOT_GRADER": f"{visible}:{attribute}"}
        self._jail = Jail(
            "surefoot.rewards.function_jail:handle", seconds=seconds, env=env, paths=(str(visible.parent),)
        )

    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict:
        request = {"task": dump(task), "rollout": dump(rollout)}
        try:
            reply = self._jail.ask(request, sandbox)
        except GraderError as error:
            raise GraderError(error.what, where=f"{self.path.name}:{self.attribute}", fix=error.fix) from None
        return as_verdict(load(Verdict, reply["verdict"]), f"{self.path.name}:{self.attribute}")
