"""What clients may send. Fields that an answer would depend on and that are not supported are refused, not ignored."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from surefoot.types import Message, Sampling


class Request(BaseModel):
    """What chat and plain completions share. Unknown fields are let pass, as clients send many that change nothing."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    model: str = ""
    n: int = Field(default=1, ge=1, le=128)
    temperature: float = Field(default=1.0, ge=0, le=10)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int = Field(default=0, ge=-1)
    stop: str | list[str] | None = None
    seed: int | None = None
    stream: bool = False
    frequency_penalty: Literal[0] | None = None
    presence_penalty: Literal[0] | None = None
    logit_bias: dict[str, float] | None = Field(default=None, max_length=0)

    @property
    def sampling(self) -> Sampling:
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return Sampling(self.temperature, self.top_p, max(0, self.top_k), tuple(s for s in stops if s))


class ChatRequest(Request):
    """`POST /v1/chat/completions`."""

    messages: list[dict[str, Any]] = Field(min_length=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    logprobs: bool = False
    top_logprobs: int | None = Field(default=None, ge=0, le=20)
    tools: list[Any] | None = Field(default=None, max_length=0)

    @property
    def limit(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    def chat(self) -> tuple[Message, ...]:
        """The messages, with content in parts joined. Raises ValueError for what is no text."""
        return tuple(Message(role=str(m.get("role", "user")), content=_text(m.get("content"))) for m in self.messages)


class CompletionRequest(Request):
    """`POST /v1/completions`. A prompt is a text or token ids, or a list of either."""

    prompt: str | list[int] | list[str] | list[list[int]]
    max_tokens: int = Field(default=16, ge=0)
    logprobs: int | None = Field(default=None, ge=0, le=20)
    echo: bool = False
    suffix: None = None

    def prompts(self) -> list[str | list[int]]:
        """Each prompt by itself."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        if self.prompt and isinstance(self.prompt[0], int):
            return [[int(t) for t in self.prompt]]
        return [p if isinstance(p, str) else list(p) for p in self.prompt]  # type: ignore[arg-type]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    if not all(isinstance(part, dict) and part.get("type") == "text" for part in parts):
        raise ValueError("only messages of text can be answered")
    return "".join(str(part["text"]) for part in parts)
