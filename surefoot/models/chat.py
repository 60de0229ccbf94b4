"""Chat messages to token ids. Done once, when a prompt is built; sampled text is never re-tokenised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surefoot.types import Message


def prompt_tokens(tokenizer: Any, messages: Sequence[Message]) -> tuple[int, ...]:
    """Token ids of a conversation up to the point where the assistant's next turn begins."""
    text = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
    return tuple(tokenizer.encode(text, add_special_tokens=False))


def answer_tokens(tokenizer: Any, answer: str) -> tuple[int, ...]:
    """Token ids of an assistant turn as the model should write it: the text and the end-of-turn token."""
    return (*tokenizer.encode(answer, add_special_tokens=False), int(tokenizer.eos_token_id))
