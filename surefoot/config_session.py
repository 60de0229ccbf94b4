"""The part of a `[[domains]]` entry on episodes of many turns."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from surefoot.config_section import Section


class SessionConfig(Section):
    """`session = { ... }` of a `[[domains]]` entry: bounds of an episode, for domains with an environment only."""

    turns: int | None = Field(default=None, ge=1)
    """Most turns of the policy in an episode; None for the source's own. `max_new_tokens` is the longest turn."""
    tokens: int | None = Field(default=None, ge=1)
    """Most tokens of an episode, prompt and the environment's messages included; None for the source's own, or else
    for as many as `rollout.max_prompt_tokens` and the model's window allow."""
    observation_tokens: int | None = Field(default=None, ge=16)
    """A longer message of the environment loses its middle, and says so; None for the source's own."""
    on_cut: Literal["go_on", "end"] | None = None
    """What follows a turn that `max_new_tokens` cut off: `go_on` (the turn is closed for the policy and answered), or
    `end` (the episode is over); None for the source's own."""
    on_full: Literal["grade", "wrong", "leave_out"] = "grade"
    """What an episode is worth that ran out of turns or tokens before its environment ended it: `grade` it as it
    stands, count it `wrong`, or `leave_out` (it takes no part in advantages and loss)."""
