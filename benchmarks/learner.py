"""One policy-gradient step: plain transformers with full logits against Surefoot's learner, on the same rollouts.

Each arm is a process of its own (so that its peak memory is its own) that loads the embedded model and steps when
told; the parent interleaves the arms and compares medians. Both arms compute in bfloat16 where the machine has
instructions for it, else in float32. The plain arm keeps its weights and its AdamW state in that type too, and pads
nothing, since all samples have one length: both in its favour.

Two workloads: 2 groups of 8 samples of 96 + 64 tokens, and one group of 8 samples with a prompt of 1,024 + 64 tokens.
`--quick` takes one group in the first, prompts of 384 + 24 tokens in the second, and counts one step an arm.
On a machine that others use, `--threads 1` and the ratio of CPU seconds (`cpu_ratio`, `long_prompt_cpu_ratio`) are the
steadier figures: with more threads each product waits for the slowest.

    python benchmarks/learner.py [--quick] [--threads N]
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch

from surefoot.config import LearnerConfig
from surefoot.learner import PolicyLearner
from surefoot.models import load_model
from surefoot.models.compute import pick_dtype
from surefoot.models.library import cache_directory
from surefoot.types import Group, Reward, Rollout, Task

MODEL = "smollm2-135m-instruct"
VOCAB = 49_152
DTYPE = pick_dtype("auto", torch.device("cpu"))


@dataclass(frozen=True)
class Workload:
    """Groups of samples of one length."""

    groups: int
    samples: int
    prompt: int
    answer: int

    @property
    def tokens(self) -> int:
        """Tokens of all rollouts, prompts counted with every sample."""
        return self.groups * self.samples * (self.prompt + self.answer)

    def rollouts(self) -> list[Group]:
        """Random tokens with random rewards, always the same."""
        rng = random.Random(0)
        return [self._group(rng, index) for index in range(self.groups)]

    def _group(self, rng: random.Random, index: int) -> Group:
        prompt = [rng.randrange(VOCAB) for _ in range(self.prompt)]
        mask = (False,) * self.prompt + (True,) * self.answer
        logprobs = (0.0,) * self.prompt + (-10.8,) * self.answer
        rollouts = tuple(
            Rollout("b/0", "b", s, (*prompt, *rng.choices(range(VOCAB), k=self.answer)), mask, logprobs, "", "stop")
            for s in range(self.samples)
        )
        rewards = tuple(Reward(float(s % 2)) for s in range(self.samples))
        return Group(Task(f"b/{index}", "b", ()), rollouts, (), rewards)


WORKLOADS = {
    "short": Workload(2, 8, 96, 64),
    "long": Workload(1, 8, 1024, 64),
    "short-quick": Workload(1, 8, 96, 64),
    "long-quick": Workload(1, 8, 384, 24),
}


# ----------------------------------------------------------------------------------------------------------- the arms


def plain_arm(workload: Workload) -> Callable[[], float]:
    """What a straightforward trainer does: all logits, log_softmax in float32, GRPO, AdamW."""
    from transformers import AutoModelForCausalLM

    load_model(MODEL)  # converts it on first use
    model: Any = AutoModelForCausalLM.from_pretrained(cache_directory() / "models" / MODEL, dtype=DTYPE)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    rollouts = [(r, w.value - 0.5) for g in workload.rollouts() for r, w in zip(g.rollouts, g.rewards, strict=True)]
    tokens = torch.tensor([r.tokens for r, _ in rollouts])  # [B, T]
    old = torch.tensor([r.logprobs[1:] for r, _ in rollouts])  # [B, T - 1]
    mask = torch.tensor([r.mask[1:] for r, _ in rollouts])  # [B, T - 1]
    advantages = torch.tensor([a for _, a in rollouts])[:, None]  # [B, 1]

    def step() -> float:
        logits = model(tokens).logits[:, :-1]  # [B, T - 1, vocab]
        new = torch.log_softmax(logits.float(), -1).gather(2, tokens[:, 1:, None])[..., 0]  # [B, T - 1]
        ratio = torch.exp(new - old)
        each = -torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        loss = (each * mask).sum() / mask.sum()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        return float(loss.detach())

    return step


def surefoot_arm(workload: Workload) -> Callable[[], float]:
    """The learner as a run uses it."""
    config = LearnerConfig(lr=1e-6, warmup_steps=0)
    learner = PolicyLearner(load_model(MODEL).decoder, config, total_steps=100, temperature=1.0)
    groups = workload.rollouts()
    return lambda: learner.update(groups).metrics["loss"]


ARMS = {"plain": plain_arm, "surefoot": surefoot_arm}


def serve(arm: str, workload: Workload) -> None:
    """Step once for every line on stdin; answer each with the seconds and the peak memory so far."""
    step = ARMS[arm](workload)
    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        started, cpu = time.perf_counter(), time.process_time()
        step()
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"seconds": seconds, "cpu": cpu, "peak_mb": peak}), flush=True)


# ---------------------------------------------------------------------------------------------------------- the parent


class Arm:
    """A process that steps on demand."""

    def __init__(self, name: str, workload: str, threads: int) -> None:
        command = [sys.executable, __file__, "--arm", name, "--workload", workload, "--threads", str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.seconds: list[float] = []
        self.cpu: list[float] = []
        self.peak_mb = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def read(self) -> dict[str, float]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("an arm died; its error is above")
        found: dict[str, float] = json.loads(line)
        return found

    def step(self, *, counted: bool) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        answer = self.read()
        self.peak_mb = answer["peak_mb"]
        if counted:
            self.seconds.append(answer["seconds"])
            self.cpu.append(answer["cpu"])

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def compare(name: str, repeats: int, warm_ups: int, threads: int) -> tuple[Arm, Arm]:
    """Both arms on one workload, in turns."""
    workload = WORKLOADS[name]
    with Arm("plain", name, threads) as plain, Arm("surefoot", name, threads) as ours:
        for arm in (plain, ours):
            arm.read()
        for turn in range(warm_ups + repeats):
            for arm in (plain, ours):
                arm.step(counted=turn >= warm_ups)
    print(f"{name}: {workload.groups} x {workload.samples} samples of {workload.prompt} + {workload.answer} tokens")
    for label, arm in (("transformers, full logits", plain), ("surefoot", ours)):
        speed = workload.tokens / arm.median
        print(f"  {label:26} {arm.median:7.2f} s  {speed:7.0f} tokens/s  {arm.peak_mb:7.0f} MB")
    return plain, ours


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="under 50 seconds on two cores")
    parser.add_argument("--repeats", type=int, default=None, help="steps an arm (default 5, quick 1)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="CPU threads of each arm")
    parser.add_argument("--arm", choices=sorted(ARMS), help=argparse.SUPPRESS)
    parser.add_argument("--workload", choices=sorted(WORKLOADS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.arm:
        serve(options.arm, WORKLOADS[options.workload])
        return
    repeats = options.repeats or (1 if options.quick else 5)
    suffix, threads = "-quick" if options.quick else "", options.threads
    plain, ours = compare(f"short{suffix}", repeats, 1, threads)
    long_plain, long_ours = compare(f"long{suffix}", repeats, 0 if options.quick else 1, threads)
    summary = {
        "vs_full_logits": round(plain.median / ours.median, 2),
        "memory_ratio": round(ours.peak_mb / plain.peak_mb, 2),
        "long_prompt_speedup": round(long_plain.median / long_ours.median, 2),
        "long_prompt_memory_ratio": round(long_ours.peak_mb / long_plain.peak_mb, 2),
        "cpu_ratio": round(statistics.median(plain.cpu) / statistics.median(ours.cpu), 2),
        "long_prompt_cpu_ratio": round(statistics.median(long_plain.cpu) / statistics.median(long_ours.cpu), 2),
        "tokens_per_second": round(WORKLOADS[f"short{suffix}"].tokens / ours.median),
        "peak_mb": round(ours.peak_mb),
        "dtype": str(DTYPE).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "quick": options.quick,
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
