"""Surefoot's side of `peer_trl.py`: engine and learner as a run uses them, at the recipe's defaults."""

from __future__ import annotations

import os
import sys
import time

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command line sets it; read when torch is imported

import torch
from peer_trl_common import peak_mb, prompts, reward, say, wait

from surefoot.build import set_threads
from surefoot.config import LearnerConfig
from surefoot.learner import PolicyLearner
from surefoot.models import load_model
from surefoot.rollout import LocalEngine
from surefoot.types import Draw, Group, Message, Reward, Rollout, Sampling, Task, Verdict

directory, dtype = sys.argv[1:3]
n_prompts, n_samples, n_tokens, steps = map(int, sys.argv[3:])
set_threads(0)
model = load_model(directory)
learner = PolicyLearner(model.decoder, LearnerConfig(lr=1e-6, dtype=dtype), total_steps=steps, temperature=1.0)
# No token ends a sample here: both sides sample exactly n_tokens, so that a step is the same work.
engine = LocalEngine(learner.compute, model.tokenizer, (), batch=128, max_prompt_tokens=2048)
say(what=f"PolicyLearner and LocalEngine, {torch.get_num_threads()} threads")


def group(task: Task, rollouts: list[Rollout]) -> Group:
    ordered = sorted(rollouts, key=lambda rollout: rollout.sample)
    rewards = tuple(Reward(reward(rollout.text)) for rollout in ordered)
    return Group(task, tuple(ordered), tuple(Verdict("right", 1.0) for _ in ordered), rewards)


for step in range(steps):
    wait()
    began = time.perf_counter()
    tasks = [
        Task(f"{step}/{i}", "words", (Message(role="user", content=p),)) for i, p in enumerate(prompts(n_prompts, step))
    ]
    rollouts = list(engine.rollout([Draw(task, n_samples, n_tokens) for task in tasks], Sampling()))
    generated = time.perf_counter()
    groups = [group(task, [r for r in rollouts if r.task_id == task.id]) for task in tasks]
    engine.rest()
    engine.refresh(learner.update(groups).version)
    ended = time.perf_counter()
    tokens = sum(rollout.sampled for rollout in rollouts)
    say(
        seconds=ended - began,
        generate=generated - began,
        learn=ended - generated,
        tokens=tokens,
        peak_mb=peak_mb(),
    )
