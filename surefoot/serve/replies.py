"""Answers in the shapes of the OpenAI interface."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.serve.scoring import Scored


@dataclass(frozen=True, slots=True)
class Piece:
    """One finished sample."""

    text: str
    finish: str
    tokens: tuple[int, ...]
    """What was written."""
    scored: Sequence[Scored] = ()
    """Log-probs of the tokens to report, if they were asked for."""


class Replies:
    """Makes the answers to one request."""

    def __init__(self, kind: str, model: str, tokenizer: Any) -> None:
        """`kind` is `chat.completion` or `text_completion`."""
        self.kind, self.model, self.tokenizer = kind, model, tokenizer
        self.id = f"{'chatcmpl' if self.chat else 'cmpl'}-{uuid.uuid4().hex[:24]}"
        self.created = int(time.time())

    @property
    def chat(self) -> bool:
        return self.kind == "chat.completion"

    def whole(self, pieces: Sequence[Piece], prompt_tokens: int) -> dict[str, Any]:
        """The answer to a request that does not stream."""
        written = sum(len(piece.tokens) for piece in pieces)
        return {
            **self._head(self.kind),
            "choices": [self._choice(i, piece) for i, piece in enumerate(pieces)],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": written,
                "total_tokens": prompt_tokens + written,
            },
        }

    def part(self, index: int, text: str | None, finish: str | None = None) -> dict[str, Any]:
        """One event of a stream; `text` None opens the message of a chat."""
        if self.chat:
            delta = {"role": "assistant", "content": ""} if text is None else {"content": text} if text else {}
            choice: dict[str, Any] = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
        else:
            choice = {"index": index, "text": text or "", "logprobs": None, "finish_reason": finish}
        return {**self._head("chat.completion.chunk" if self.chat else self.kind), "choices": [choice]}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def _choice(self, index: int, piece: Piece) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": index, "finish_reason": piece.finish, "logprobs": None}
        if self.chat:
            message = {"role": "assistant", "content": piece.text, "refusal": None}
            logprobs = {"content": [self._entry(s) for s in piece.scored], "refusal": None} if piece.scored else None
            return {**choice, "message": message, "logprobs": logprobs}
        return {**choice, "text": piece.text, "logprobs": self._legacy(piece.scored) if piece.scored else None}

    def _entry(self, scored: Scored) -> dict[str, Any]:
        def entry(token: int, logprob: float) -> dict[str, Any]:
            text = self.name(token)
            return {"token": text, "logprob": logprob, "bytes": list(text.encode())}

        top = [entry(token, logprob) for token, logprob in scored.top]
        return {**entry(scored.token, scored.logprob or 0.0), "top_logprobs": top}

    def _legacy(self, scored: Sequence[Scored]) -> Mapping[str, Any]:
        names = [self.name(s.token) for s in scored]
        offsets, place = [], 0
        for name in names:
            offsets.append(place)
            place += len(name)
        top = [None if s.logprob is None else {self.name(token): value for token, value in s.top} for s in scored]
        return {
            "tokens": names,
            "token_logprobs": [s.logprob for s in scored],
            "top_logprobs": top if any(s.top for s in scored) else None,
            "text_offset": offsets,
        }

    def name(self, token: int) -> str:
        """A token as text; one that is no text by itself (part of a character) by its number."""
        text: str = self.tokenizer.decode([token], skip_special_tokens=False)
        return f"<token {token}>" if "\ufffd" in text or not text else text
