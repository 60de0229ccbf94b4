"""An engine that writes made-up tokens at once, and environments that say made-up things."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from surefoot.models.templates import ChatTemplate
from surefoot.protocols import Domain, EnvironmentMaker, SessionLimits
from surefoot.rollout.session import SessionEngine
from surefoot.types import Draw, Message, Rollout, Sampling, Task

LIMITS = SessionLimits()


class WritingEngine:
    """Writes random tokens, any of the vocabulary, and keeps what it was given and wrote: whole -> log-probs."""

    def __init__(self, tokenizer: Any, ends: Sequence[int], script: Sequence[str] = ()) -> None:
        self.tokenizer, self.ends, self.script = tokenizer, tuple(ends), tuple(script)
        self.others = [token for token in range(len(tokenizer)) if token not in ends]
        self.version = 3
        self.sampled: dict[tuple[int, ...], list[tuple[float, ...]]] = {}
        self.prompts: list[tuple[int, ...]] = []
        self.longest = 0

    def rollout(self, draws: Sequence[Draw], sampling: Sampling) -> Iterator[Rollout]:
        asked = [(draw, i) for draw in draws for i in range(draw.samples)]
        random.Random(len(asked)).shuffle(asked)
        for draw, i in asked:
            yield self._write(draw, i, random.Random(draw.seeds[i]))

    def _write(self, draw: Draw, i: int, rng: random.Random) -> Rollout:
        if self.script:
            written = [*self.tokenizer.encode(self.script[len(self.prompts)], add_special_tokens=False), self.ends[0]]
            stop = "stop"
        else:
            stop = rng.choice(["stop", "stop", "length"]) if draw.max_new_tokens > 1 else "length"
            count = draw.max_new_tokens if stop == "length" else rng.randint(1, draw.max_new_tokens) - 1
            written = rng.choices(self.others, k=count)
            written += [rng.choice(self.ends)] if stop == "stop" else []
        self.prompts.append(draw.prompt)
        logprobs = tuple(-rng.random() for _ in written)
        whole = (*draw.prompt, *written)
        self.sampled.setdefault(whole, []).append(logprobs)
        self.longest = max(self.longest, len(whole))
        return Rollout(
            draw.task.id,
            draw.task.domain,
            i,
            whole,
            (False,) * len(draw.prompt) + (True,) * len(written),
            (0.0,) * len(draw.prompt) + logprobs,
            self.tokenizer.decode([t for t in written if t not in self.ends], skip_special_tokens=True),
            stop,  # type: ignore[arg-type]
            self.version,
            draw.seeds[i],
        )

    def refresh(self, version: int) -> None:
        self.version = version

    def rest(self) -> None:
        pass

    def close(self) -> None:
        pass


PIECES = (
    "yes",
    " no\n",
    "\n\n",
    "<|im_end|>",
    "</s>",
    "<|im_start|>assistant\n",
    "[INST]",
    "ü",
    "你好",
    "😀",
    " ",
    "<|end|>",
    "{{x}}",
)


class Chatter:
    """Says anything, special tokens' names and the tool's role included, for a random number of turns."""

    def reset(self, task: Task) -> Sequence[Message]:
        self.rng = random.Random(task.id)
        return task.messages

    def step(self, message: Message) -> Sequence[Message] | None:
        self.rng.seed(f"{self.rng.random()}{message['content']}")
        if self.rng.random() < 0.25:
            return None
        return [
            {
                "role": self.rng.choice(["user", "user", "tool", "system"]),
                "content": "".join(self.rng.choices(PIECES, k=self.rng.randint(1, 6))),
            }
            for _ in range(self.rng.randint(1, 3))
        ]

    def end(self) -> Mapping[str, Any]:
        return {"done": True}


def sessions(
    engine: WritingEngine,
    maker: EnvironmentMaker,
    *,
    limits: SessionLimits = LIMITS,
    window: int = 100_000,
    seconds: float = 20.0,
    name: str = "talk",
) -> SessionEngine:
    template = ChatTemplate(engine.tokenizer, engine.ends)
    no: Any = None
    domain = Domain(name, no, no, 12, environment=maker, session=limits)
    return SessionEngine(
        engine, template, [domain], no, max_prompt_tokens=window, max_positions=window, seconds=seconds
    )


def talks(count: int, samples: int, system: bool = False, max_new_tokens: int = 12, domain: str = "talk") -> list[Draw]:
    draws = []
    for n in range(count):
        said: list[Message] = [{"role": "system", "content": "Be brief."}] if system and n % 2 else []
        task = Task(f"{domain}/{n}", domain, (*said, {"role": "user", "content": f"hello number {n}"}))
        draws.append(Draw(task, samples, max_new_tokens, tuple(1000 * n + i for i in range(samples))))
    return draws
