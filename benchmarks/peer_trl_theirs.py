"""TRL's side of `peer_trl.py`: GRPOTrainer with its defaults, same batch, same type; run by TRL's own Python."""

from __future__ import annotations

import sys
import tempfile
import time

import torch
from datasets import Dataset
from peer_trl_common import peak_mb, prompts, reward, say, wait
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer


class Turns(TrainerCallback):
    """Holds the trainer before each step until it is its turn, and reports the step when it ends."""

    def __init__(self) -> None:
        self.generating = 0.0

    def on_train_begin(self, args, state, control, **kwargs):
        say(what=f"GRPOTrainer, {torch.get_num_threads()} threads")

    def on_step_begin(self, args, state, control, **kwargs):
        wait()
        self.began, self.generating = time.perf_counter(), 0.0

    def on_step_end(self, args, state, control, **kwargs):
        seconds = time.perf_counter() - self.began
        say(
            seconds=seconds, generate=self.generating, learn=seconds - self.generating, tokens=TOKENS, peak_mb=peak_mb()
        )


directory, dtype = sys.argv[1:3]
n_prompts, n_samples, n_tokens, steps = map(int, sys.argv[3:])
TOKENS = n_prompts * n_samples * n_tokens
rows = [{"prompt": [{"role": "user", "content": p}]} for step in range(steps) for p in prompts(n_prompts, step)]
batch = min(16, n_prompts * n_samples)
config = GRPOConfig(
    output_dir=tempfile.mkdtemp(),
    use_cpu=True,
    bf16=dtype == "bfloat16",
    per_device_train_batch_size=batch,
    gradient_accumulation_steps=n_prompts * n_samples // batch,
    num_generations=n_samples,
    max_completion_length=n_tokens,
    generation_kwargs={"min_new_tokens": n_tokens},
    learning_rate=1e-6,
    max_steps=steps,
    save_strategy="no",
    report_to="none",
    logging_steps=1000,
    disable_tqdm=True,
    shuffle_dataset=False,
    model_init_kwargs={"dtype": dtype},
)
turns = Turns()
trainer = GRPOTrainer(
    model=directory,
    reward_funcs=lambda completions, **kwargs: [reward(c[0]["content"]) for c in completions],
    args=config,
    train_dataset=Dataset.from_list(rows),
    callbacks=[turns],
)
generate = trainer._generate_and_score_completions


def timed(*args, **kwargs):
    began = time.perf_counter()
    result = generate(*args, **kwargs)
    turns.generating += time.perf_counter() - began
    return result


trainer._generate_and_score_completions = timed
trainer.train()
