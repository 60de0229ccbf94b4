"""How time and memory grow: learner and engine against batch, group size, prompt, answer and vocabulary.

    python benchmarks/scaling.py [--quick]

A model of random weights is made as large as its axis asks; each point is measured in turns with the others of its
axis, and the least of the rounds is kept, since only disturbance adds to it. For each axis a line is fitted through the
logarithms of size and cost: its slope is the exponent. `excess` is the exponent less that of the arithmetic that the
work needs (products counted in `operations`), fitted over the same sizes: above 0.2 something grows faster than it
must. Memory is the peak above what the process held before, read from VmHWM. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import LlamaConfig

from surefoot.config import LearnerConfig
from surefoot.learner import PolicyLearner
from surefoot.models import Decoder
from surefoot.models.library import load_model
from surefoot.models.weights import build_decoder
from surefoot.rollout import LocalEngine
from surefoot.types import Draw, Group, Reward, Rollout, Sampling, Task

WIDTH, LAYERS, HEADS, MLP = 256, 4, 4, 768


@dataclass(frozen=True)
class Work:
    """Groups of samples, and the vocabulary that they are written in."""

    groups: int = 2
    samples: int = 8
    prompt: int = 64
    answer: int = 32
    vocab: int = 8192

    @property
    def learnt(self) -> int:
        """Tokens that the learner lays down: each prompt once."""
        return self.groups * (self.prompt + self.samples * (self.answer - 1))

    @property
    def attended(self) -> float:
        """Pairs of query and key."""
        own = self.answer * (self.prompt + self.answer / 2)
        return self.groups * (self.prompt**2 / 2 + self.samples * own)

    @property
    def targets(self) -> int:
        return self.groups * self.samples * self.answer

    def operations(self) -> float:
        """Multiplications of a forward pass; a backward pass is proportional to it."""
        layers = LAYERS * (4 * WIDTH**2 + 3 * WIDTH * MLP)
        return self.learnt * layers + self.targets * self.vocab * WIDTH + 2 * LAYERS * WIDTH * self.attended


AXES: dict[str, tuple[int, ...]] = {
    "groups": (2, 4, 8, 16),
    "samples": (4, 8, 16, 32),
    "prompt": (256, 512, 1024, 2048),
    "answer": (32, 64, 128, 256),
    "vocab": (8192, 16384, 32768, 65536),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three points an axis and one round, under 50 seconds")
    chosen = parser.parse_args()
    rounds = 1 if chosen.quick else 3
    base, result = Work(groups=1 if chosen.quick else 2), dict[str, Any]()
    for part, prepare in (("learner", learner), ("engine", engine)):
        for axis, sizes in AXES.items():
            works = [replace(base, **{axis: n}) for n in (sizes[:3] if chosen.quick else sizes)]
            result |= report(part, axis, works, *measure(prepare, works, rounds))
    excesses = [value for name, value in result.items() if name.endswith("/excess")]
    summary = {"worst_excess": max(excesses), **result, "threads": torch.get_num_threads(), "quick": chosen.quick}
    print(json.dumps(summary))


def measure(
    prepare: Callable[[Work], Callable[[], object]], works: Sequence[Work], rounds: int
) -> tuple[list[float], list[float]]:
    """Least seconds and largest peak of each piece of work, MB."""
    seconds, peaks = [float("inf")] * len(works), [0.0] * len(works)
    for _ in range(rounds):
        for index, work in enumerate(works):
            run = prepare(work)
            run()  # warm-up
            held = _settle()
            began = time.perf_counter()
            run()
            seconds[index] = min(seconds[index], time.perf_counter() - began)
            peaks[index] = max(peaks[index], (status("VmHWM") - held) / 1024)
    return seconds, peaks


def report(part: str, axis: str, works: Sequence[Work], seconds: list[float], peaks: list[float]) -> dict[str, float]:
    """Print an axis; its exponents for the JSON line."""
    sizes = [getattr(work, axis) for work in works]
    time_slope, memory_slope = slope(sizes, seconds), slope(sizes, peaks)
    needed = slope(sizes, [work.operations() for work in works])
    points = ", ".join(f"{n}: {1000 * s:.0f} ms {p:.0f} MB" for n, s, p in zip(sizes, seconds, peaks, strict=True))
    print(f"{part:8}{axis:8} time ^{time_slope:.2f} (arithmetic ^{needed:.2f})  memory ^{memory_slope:.2f}   {points}")
    key = f"{part}/{axis}"
    return {f"{key}/time": time_slope, f"{key}/memory": memory_slope, f"{key}/excess": round(time_slope - needed, 2)}


def slope(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Exponent of cost in size: least squares through the logarithms."""
    return round(float(np.polyfit(np.log(sizes), np.log(np.maximum(costs, 1e-3)), 1)[0]), 2)


# ------------------------------------------------------------------------------------------------------ what is run


def learner(work: Work) -> Callable[[], object]:
    """One update."""
    config = LearnerConfig(dtype="float32", warmup_steps=0, token_budget=4096)
    policy = PolicyLearner(_decoder(work.vocab), config, total_steps=10)
    rng = random.Random(0)
    groups = [_group(work, rng, index) for index in range(work.groups)]
    return lambda: policy.update(groups)


def _group(work: Work, rng: random.Random, index: int) -> Group:
    start = rng.choices(range(work.vocab), k=work.prompt)
    mask, logprobs = (False,) * work.prompt + (True,) * work.answer, (0.0,) * work.prompt + (-9.0,) * work.answer
    rollouts = tuple(
        Rollout("t", "d", i, (*start, *rng.choices(range(work.vocab), k=work.answer)), mask, logprobs, "", "stop")
        for i in range(work.samples)
    )
    return Group(Task(f"d/{index}", "d", ()), rollouts, (), tuple(Reward(float(i % 2)) for i in range(work.samples)))


def engine(work: Work) -> Callable[[], object]:
    """All samples of all groups, none of which ends early."""
    tokenizer = load_model("tiny").tokenizer
    decoder = _decoder(work.vocab).requires_grad_(False)
    sampler = LocalEngine(
        decoder, tokenizer, (), batch=work.groups * work.samples, max_prompt_tokens=4 * max(AXES["prompt"])
    )
    filler = "a" * max(1, work.prompt - 16)  # about a token a letter; the template adds a few
    tasks = [Task(f"d/{i}", "d", ({"role": "user", "content": filler + str(i)},)) for i in range(work.groups)]
    draws = [Draw(task, work.samples, work.answer) for task in tasks]
    return lambda: list(sampler.rollout(draws, Sampling()))


def _decoder(vocab: int) -> Decoder:
    config = LlamaConfig(
        vocab_size=vocab,
        hidden_size=WIDTH,
        intermediate_size=MLP,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=16384,
        tie_word_embeddings=True,
    )
    decoder = build_decoder(config)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in decoder.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.02, generator=generator)
    return decoder


# ----------------------------------------------------------------------------------------------------------- memory


def _settle() -> int:
    """Give free memory back to the system, set the peak to what is held, and return that, kB."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def status(name: str) -> int:
    """A line of /proc/self/status, KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


if __name__ == "__main__":
    main()
