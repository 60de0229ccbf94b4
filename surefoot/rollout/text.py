"""Between sampled tokens and text: decoding an answer, and finding stop strings while it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def answer_text(tokenizer: Any, written: Sequence[int], ends: frozenset[int]) -> str:
    """What the policy wrote, without special tokens and without the token that ended it."""
    kept = written[:-1] if written and written[-1] in ends else written
    text: str = tokenizer.decode(kept, skip_special_tokens=True)
    return text


class StopStrings:
    """Whether an answer has just completed one of the strings that end it."""

    def __init__(self, tokenizer: Any, strings: Sequence[str]) -> None:
        self.tokenizer, self.strings = tokenizer, tuple(s for s in strings if s)
        # Every token stands for a byte at least (special tokens apart, which are decoded as text here).
        self.window = max((len(s.encode()) for s in self.strings), default=0) + 4

    def __bool__(self) -> bool:
        return bool(self.strings)

    def completed(self, written: Sequence[int]) -> bool:
        """Whether the last token of `written` completed a stop string."""
        tail: str = self.tokenizer.decode(written[-self.window :], skip_special_tokens=False)
        return any(s in tail for s in self.strings)
