"""From a growing list of tokens to text that can be sent: never half a character, never the start of a stop string."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surefoot.rollout.text import answer_text


class Writing:
    """The text of one sample as it grows."""

    def __init__(self, tokenizer: Any, ends: frozenset[int], stops: Sequence[str]) -> None:
        self.tokenizer, self.ends, self.stops = tokenizer, ends, tuple(stops)
        self._held = max((len(stop) - 1 for stop in self.stops), default=0)
        self._sent = 0

    def whole(self, tokens: Sequence[int]) -> str:
        """The text of all tokens, up to the first stop string."""
        text = answer_text(self.tokenizer, tokens, self.ends)
        places = [place for stop in self.stops if (place := text.find(stop)) >= 0]
        return text[: min(places)] if places else text

    def more(self, tokens: Sequence[int]) -> str:
        """What can be sent now and was not sent before."""
        text = self.whole(tokens)
        safe = text.rstrip("\ufffd")
        return self._new(safe[: max(self._sent, len(safe) - self._held)])

    def rest(self, tokens: Sequence[int]) -> str:
        """What is left to send at the end."""
        return self._new(self.whole(tokens))

    def _new(self, text: str) -> str:
        new = text[self._sent :]
        self._sent = max(self._sent, len(text))
        return new
