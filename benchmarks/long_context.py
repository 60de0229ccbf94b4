"""One training step over one long sequence: how time and memory grow with its length.

Three ways, each step in a process of its own, on the same random tokens (the second half written by the policy) and the
same random weights, in float32:

- `naive`: transformers with SDPA attention, all logits, log_softmax, nothing recomputed;
- `trl`: what TRL's GRPOTrainer (1.x) does, modelled in a few lines rather than run: gradient checkpointing (its
  default), logits of the answer alone, `selective_log_softmax` (gather less logsumexp, row by row) over them;
- `surefoot`: the learner with `checkpoint_activations = "layer"`.

Memory is the peak of the resident set during the step less what was resident before it, after a step over 64 tokens has
made everything that does not depend on the length. Exponents are slopes of a least-squares line through the logarithms.
Then a group of 8 samples with one prompt against the same samples with a prompt each.

The whole form has SmolLM2-135M's shape, `--quick` (under 50 seconds) a small one. Lengths that by the ones before would
exceed `--memory-gb` or `--seconds` are left out, and said to be.

    python benchmarks/long_context.py [--quick] [--lengths 2048,8192,32768,65536] [--layers 30] [--seconds 3600]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # a waiting thread that spins keeps others from working
import torch
from scaling import slope, status
from transformers import AutoModelForCausalLM, LlamaConfig

from surefoot.config import LearnerConfig
from surefoot.learner import PolicyLearner
from surefoot.models.weights import build_decoder, hf_names
from surefoot.types import Group, Reward, Rollout, Task

CONTEXT = multiprocessing.get_context("forkserver")  # imports once; each step's process starts out of it
SAMPLES = 8
WARM_UP = 64


@dataclass(frozen=True)
class Shape:
    """A Llama: SmolLM2-135M's, or a small one."""

    width: int = 576
    mlp: int = 1536
    layers: int = 30
    heads: int = 9
    kv_heads: int = 3
    vocab: int = 49_152

    def config(self) -> LlamaConfig:
        return LlamaConfig(
            vocab_size=self.vocab,
            hidden_size=self.width,
            intermediate_size=self.mlp,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            max_position_embeddings=1 << 17,
            tie_word_embeddings=True,
        )


QUICK = Shape(width=192, mlp=512, layers=3, heads=3, kv_heads=1, vocab=8192)


@dataclass(frozen=True)
class Measured:
    """One step."""

    seconds: float
    peak_mb: float
    """Of the whole process."""
    grown_mb: float
    """What the step added."""


# ----------------------------------------------------------------------------------------------------- the three ways


def transformers_step(shape: Shape, length: int, *, trl: bool) -> Callable[[int], None]:
    """A step over `length` tokens by plain transformers, or as TRL does it."""
    torch.manual_seed(0)
    model: Any = AutoModelForCausalLM.from_config(shape.config(), attn_implementation="sdpa", dtype=torch.float32)
    if trl:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)

    def step(length: int) -> None:
        tokens = torch.tensor([tokens_of(shape, length)])  # [1, T]
        written = length // 2
        if trl:
            logits = model(tokens, logits_to_keep=written + 1, use_cache=False).logits[:, :-1]  # [1, T / 2, vocab]
            picked = logits.gather(2, tokens[:, -written:, None])[..., 0]  # [1, T / 2]
            new = picked - torch.stack([row.logsumexp(-1) for row in logits])
        else:
            logits = model(tokens, use_cache=False).logits[:, :-1]  # [1, T - 1, vocab]
            new = torch.log_softmax(logits, -1).gather(2, tokens[:, 1:, None])[:, -written:, 0]  # [1, T / 2]
        ratio = torch.exp(new - new.detach())
        (-torch.minimum(ratio, ratio.clamp(0.8, 1.2)).mean()).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()

    return step


def surefoot_step(shape: Shape, length: int) -> Callable[[int], None]:
    """A step of the learner over one sequence (a group of two, of which the other is a single token)."""
    learner = make_learner(shape, length + WARM_UP)

    def step(length: int) -> None:
        tokens = tokens_of(shape, length)
        prompt, answer = tokens[: length - length // 2], tokens[length - length // 2 :]
        learn(learner, [rollout(prompt, answer, 0), rollout(prompt, answer[:1], 1)])

    return step


def group_step(shape: Shape, prompt: int, answer: int, *, shared: bool) -> Callable[[int], None]:
    """A step over 8 samples, of one prompt or of 8 different ones (which are computed each by itself)."""
    learner = make_learner(shape, (prompt + answer) * SAMPLES)

    def step(length: int) -> None:
        cut = min(length, prompt)
        prompts = [tokens_of(shape, cut, 0 if shared else s) for s in range(SAMPLES)]
        answers = [tokens_of(shape, answer, 100 + s) for s in range(SAMPLES)]
        learn(learner, [rollout(p, a, s) for s, (p, a) in enumerate(zip(prompts, answers, strict=True))])

    return step


def make_learner(shape: Shape, budget: int) -> PolicyLearner:
    config = shape.config()
    torch.manual_seed(0)
    plain: Any = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    weights, decoder = dict(plain.named_parameters()), build_decoder(config)
    with torch.no_grad():
        for name, parameter in decoder.named_parameters():
            parameter.copy_(torch.cat([weights[part] for part in hf_names(name)]))
    settings = LearnerConfig(
        lr=1e-6, warmup_steps=0, dtype="float32", checkpoint_activations="layer", token_budget=budget
    )
    return PolicyLearner(decoder, settings, total_steps=10)


def tokens_of(shape: Shape, count: int, seed: int = 0) -> tuple[int, ...]:
    return tuple(random.Random(seed).choices(range(shape.vocab), k=count))


def rollout(prompt: Sequence[int], answer: Sequence[int], sample: int) -> Rollout:
    mask = (False,) * len(prompt) + (True,) * len(answer)
    return Rollout("b/0", "b", sample, (*prompt, *answer), mask, (0.0,) * len(mask), "", "stop")


def learn(learner: PolicyLearner, rollouts: Sequence[Rollout]) -> None:
    rewards = tuple(Reward(float(r.sample % 2)) for r in rollouts)
    report = learner.update([Group(Task("b/0", "b", ()), tuple(rollouts), (), rewards)])
    if report.skipped:
        raise SystemExit(f"no update: {report.skipped}")


# ----------------------------------------------------------------------------------------------------------- measuring

Make = Callable[..., Callable[[int], None]]
Case = tuple[Make, tuple[Any, ...], dict[str, Any]]


def measure(case: Case, length: int, threads: int, limit_gb: float) -> Measured | None:
    """One step in a process of its own; None if it ran out of memory."""
    ours, theirs = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_child, args=(theirs, case, length, threads, limit_gb))
    process.start()
    theirs.close()
    try:
        found: Measured | None = ours.recv()
    except EOFError:
        found = None
    process.join()
    return found


def _child(answer: Connection, case: Case, length: int, threads: int, limit_gb: float) -> None:
    torch.set_num_threads(threads)
    limit = int(limit_gb * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    make, args, options = case
    step = make(*args, **options)
    step(WARM_UP)
    before = status("VmRSS") / 1024
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    began = time.perf_counter()
    try:
        step(length)
    except (MemoryError, RuntimeError) as failed:
        if "memory" not in str(failed):
            raise
        answer.send(None)
        return
    seconds, peak = time.perf_counter() - began, status("VmHWM") / 1024
    answer.send(Measured(seconds, peak, peak - before))


def climb(name: str, case: Callable[[int], Case], lengths: Sequence[int], o: argparse.Namespace) -> dict[int, Measured]:
    """One way at rising lengths, as far as memory and time allow."""
    found: dict[int, Measured] = {}
    for length in lengths:
        if found:
            last, ratio = max(found), length / max(found)
            needs = (found[last].peak_mb - found[last].grown_mb + found[last].grown_mb * ratio) / 1024
            takes = found[last].seconds * ratio**1.6
            if needs > o.memory_gb or takes > o.seconds:
                print(f"{name:9} {length:7}  left out: about {needs:.0f} GB and {takes:.0f} s", flush=True)
                continue
        one = measure(case(length), length, o.threads, o.memory_gb)
        if one is None:
            print(f"{name:9} {length:7}  out of memory (limit {o.memory_gb:g} GB)", flush=True)
            break
        found[length] = one
        print(
            f"{name:9} {length:7}  {one.seconds:8.1f} s  {one.grown_mb:7.0f} MB over {one.peak_mb - one.grown_mb:.0f}",
            flush=True,
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small model, under 50 seconds on two cores")
    parser.add_argument("--lengths", help="tokens, separated by commas")
    parser.add_argument("--layers", type=int, help="other than the shape's")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="CPU threads")
    parser.add_argument("--memory-gb", type=float, default=20.0, help="most memory of a process")
    parser.add_argument("--seconds", type=float, default=3600.0, help="longest step")
    parser.add_argument("--ways", default="naive,trl,surefoot", help="which to run")
    parser.add_argument("--prompt", type=int, help="tokens of the shared prompt; 0: leave this part out")
    o = parser.parse_args()
    shape = QUICK if o.quick else Shape()
    shape = replace(shape, layers=o.layers) if o.layers else shape
    lengths = sorted(
        int(n) for n in (o.lengths or ("1024,2048,3072" if o.quick else "2048,8192,32768,65536")).split(",")
    )
    prompt, answer = (1024 if o.quick else 4096) if o.prompt is None else o.prompt, 32 if o.quick else 64
    CONTEXT.set_forkserver_preload(["torch", "transformers.models.llama.modeling_llama", "surefoot.learner"])

    ways: dict[str, Callable[[int], Case]] = {
        "naive": lambda n: (transformers_step, (shape, n), {"trl": False}),
        "trl": lambda n: (transformers_step, (shape, n), {"trl": True}),
        "surefoot": lambda n: (surefoot_step, (shape, n), {}),
    }
    results = {name: climb(name, ways[name], lengths, o) for name in o.ways.split(",")}
    groups: dict[bool, Measured | None] = {}
    for shared in (True, False) if prompt else ():
        case: Case = (group_step, (shape, prompt, answer), {"shared": shared})
        groups[shared] = one = measure(case, prompt, o.threads, o.memory_gb)
        text = "out of memory" if one is None else f"{one.seconds:8.1f} s  {one.grown_mb:7.0f} MB"
        print(f"8 samples of {prompt} + {answer}, {'one prompt' if shared else 'a prompt each'}: {text}", flush=True)

    both = [groups.get(True), groups.get(False)]
    speedup = both[1].seconds / both[0].seconds if both[0] and both[1] else None
    summary: dict[str, Any] = {}
    for name, found in results.items():
        prefix = "" if name == "surefoot" else f"{name}_"
        several = len(found) > 1
        summary[f"{prefix}memory_exponent"] = (
            slope(list(found), [m.grown_mb for m in found.values()]) if several else None
        )
        summary[f"{prefix}time_exponent"] = slope(list(found), [m.seconds for m in found.values()]) if several else None
        summary[f"{prefix}longest_tokens"] = max(found, default=0)
    summary |= {
        "shared_prefix_speedup": None if speedup is None else round(speedup, 2),
        "layers": shape.layers,
        "threads": o.threads,
        "quick": o.quick,
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
