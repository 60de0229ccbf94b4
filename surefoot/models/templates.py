"""Chat templates by increments: what has to be put behind a turn that was sampled, without rendering that turn again.

A template renders whole conversations. Rendering one that holds a sampled turn and tokenising it may give other tokens
than those that were sampled: text has many tokenisations, templates trim it or drop parts of it. So an increment is
read off a conversation in which a mark stands where the sampled turn would be; what follows the mark is put behind the
sampled tokens as they are.

Templates differ in what they accept. Where one refuses or swallows a message, the nearest form that it takes is used:
roles that it does not know become the user's, and messages in a row of one role become one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from jinja2 import TemplateError

from surefoot.errors import ModelError
from surefoot.types import Message

MARK = "MARK7f3a9cMARK"
"""Stands for a sampled turn; only what is before any message of an environment is searched for it."""
BEFORE: tuple[Message, ...] = ({"role": "user", "content": "hello"}, {"role": "assistant", "content": MARK})
OTHERS_KEPT = 4096
"""Increments that are remembered."""


class ChatTemplate:
    """A tokenizer's chat template, from messages to tokens.

    Args:
        tokenizer: With a chat template.
        ends: Tokens that end the policy's turn.

    Raises ModelError for a template that cannot be read by increments.
    """

    def __init__(self, tokenizer: Any, ends: Sequence[int]) -> None:
        self.tokenizer, self.ends = tokenizer, frozenset(ends)
        self._special = tuple(sorted(_special_strings(tokenizer), key=len, reverse=True))
        self._encoded = lru_cache(OTHERS_KEPT)(self._encode)
        rendered = self._apply([*BEFORE, {"role": "user", "content": "hello"}])
        if rendered is None or rendered.count(MARK) != 1:
            raise ModelError(
                "the chat template does not keep what the assistant said as it is, exactly once",
                where=str(getattr(tokenizer, "name_or_path", "")) or None,
                fix="episodes of many turns need such a template; use the tokenizer's usual chat_template",
            )

    def opening(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Tokens of a conversation up to where the policy's first turn begins. Raises ModelError."""
        return tuple(self.tokenizer.encode(self._render((), messages), add_special_tokens=False))

    def increment(self, messages: Sequence[Message], *, closed: bool) -> tuple[int, ...]:
        """Tokens between a sampled turn and the next one.

        Args:
            messages: What was said in between, at least one message.
            closed: Whether the sampled turn ended with one of `ends`. If not, the template's own end comes first.

        Raises ModelError if the template refuses the messages in every form.
        """
        tokens = self._encoded(tuple((m["role"], m["content"]) for m in messages))
        return tokens[1:] if closed and tokens[0] in self.ends else tokens

    def harmless(self, text: str) -> str:
        """The text with every special token's name broken up, so that no environment can be made to forge a turn."""
        for name in self._special:
            if name in text:
                text = text.replace(name, f"{name[:1]} {name[1:]}")
        return text

    def shortened(self, text: str, most: int) -> str:
        """The text, without its middle if it has more than `most` tokens."""
        if len(text) <= most:  # a token has at least one letter, but for odd vocabularies; then nothing is lost
            return text
        tokens = self.tokenizer.encode(text, add_special_tokens=False)
        if len(tokens) <= most:
            return text
        note = f"\n[... {len(tokens) - most} tokens left out ...]\n"
        head, tail = tokens[: most // 2], tokens[len(tokens) - (most - most // 2) :]
        decode = self.tokenizer.decode
        return f"{decode(head)}{note}{decode(tail)}"

    def _encode(self, said: tuple[tuple[str, str], ...]) -> tuple[int, ...]:
        rendered = self._render(BEFORE, [{"role": role, "content": content} for role, content in said])
        tail = rendered.partition(MARK)[2]
        return tuple(self.tokenizer.encode(tail, add_special_tokens=False))

    def _render(self, before: Sequence[Message], messages: Sequence[Message]) -> str:
        """`before` and `messages` in the first form that the template takes whole."""
        taken = None
        for form in _forms(messages):
            text = self._apply([*before, *form])
            if text is None:
                continue
            if all(m["content"].strip() in text for m in form):
                return text
            taken = taken or text
        if taken is None:
            roles = ", ".join(m["role"] for m in messages)
            raise ModelError(
                f"the chat template refuses messages of these roles in a row: {roles}",
                fix="let the environment answer as the user",
            )
        return taken

    def _apply(self, messages: Sequence[Message]) -> str | None:
        """The rendered text; None if the template refuses."""
        try:
            text: str = self.tokenizer.apply_chat_template(
                list(messages), tokenize=False, add_generation_prompt=messages[-1]["role"] != "assistant"
            )
        except TemplateError:
            return None
        return text


def _forms(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """The messages as they are; without roles other than the user's and the assistant's; without two in a row."""
    yield list(messages)
    known = ("user", "assistant")
    for kept in (("system", *known), known):
        plain = [m if m["role"] in kept else Message(role="user", content=m["content"]) for m in messages]
        yield plain
        yield _merged(plain)


def _merged(messages: Sequence[Message]) -> list[Message]:
    merged: list[Message] = []
    for m in messages:
        if merged and merged[-1]["role"] == m["role"]:
            merged[-1] = Message(role=m["role"], content=f"{merged[-1]['content']}\n\n{m['content']}")
        else:
            merged.append(m)
    return merged


def _special_strings(tokenizer: Any) -> set[str]:
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()
    names = {str(token) for token in added if getattr(token, "special", False)} | set(tokenizer.all_special_tokens)
    return {name for name in names if len(name) > 1}
