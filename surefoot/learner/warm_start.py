"""Warm start: supervised fine-tuning on demonstrations before reinforcement learning.

A model that never answers in the asked format earns no reward to learn from; a few hundred demonstrations repair that.
What reinforcement learning adds is measured from the end of this stage.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from surefoot.config import WarmStartConfig
from surefoot.learner.backward import backward
from surefoot.learner.learner import PolicyLearner, is_out_of_memory, out_of_memory_error
from surefoot.learner.objective import AnswerObjective, Tally
from surefoot.learner.packing import Tree, branch, pack

Progress = Callable[[int, int, float], None]
"""Called after each optimiser step with steps done, steps in all, and the step's loss."""

WARMUP_SHARE = 0.1
"""Share of the steps over which the learning rate rises; then it falls linearly to a tenth."""


@dataclass(frozen=True, slots=True)
class Example:
    """A demonstration as token ids: the prompt is given, the answer is learnt."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]


def warm_start(
    learner: PolicyLearner,
    examples: Sequence[Example],
    config: WarmStartConfig,
    seed: int,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Fine-tune the learner's weights on `examples`, with an optimiser of its own that is dropped afterwards.

    The loss is the mean negative log-likelihood of the answers' tokens. The order depends on `seed` alone. The result
    becomes the reference of the learner's KL penalty.

    Returns:
        `loss_first`, `loss_last` (of the first and last step), `steps`, `examples`, `tokens` (learnt from), `seconds`.

    Raises:
        ResourceError: out of memory.
    """
    started = time.perf_counter()
    trees = [tree for example in examples if (tree := _tree(example)) is not None]
    steps = [batch for epoch in range(config.epochs) for batch in _batches(trees, config.batch_tokens, seed, epoch)]
    optimiser = learner.weights.optimiser(config.lr, betas=learner.config.betas, weight_decay=0.0)
    losses: list[float] = []
    tokens = 0
    for index, batch in enumerate(steps):
        tally = _accumulate(learner, batch)
        learner.weights.step(optimiser, _rate(config.lr, index, len(steps)), learner.config.max_grad_norm)
        losses.append(tally.mean("loss"))
        tokens += tally.tokens
        if progress is not None:
            progress(index + 1, len(steps), losses[-1])
    learner.reset_reference()
    return {
        "loss_first": losses[0] if losses else math.nan,
        "loss_last": losses[-1] if losses else math.nan,
        "steps": float(len(steps)),
        "examples": float(len(trees)),
        "tokens": float(tokens),
        "seconds": time.perf_counter() - started,
    }


def _tree(example: Example) -> Tree | None:
    whole = example.prompt + example.answer
    cut = max(1, len(example.prompt))  # a first token is predicted by nothing
    answer = whole[cut:]
    if not answer:
        return None
    return Tree(whole[:cut], (branch(answer, [True] * len(answer), [0.0] * len(answer), 0.0),))


def _batches(trees: Sequence[Tree], tokens: int, seed: int, epoch: int) -> Iterator[list[Tree]]:
    """All trees once, shuffled, at most `tokens` a batch (or a single larger one)."""
    order = list(trees)
    random.Random(f"warm start {seed} {epoch}").shuffle(order)
    batch: list[Tree] = []
    size = 0
    for tree in order:
        if batch and size + tree.size > tokens:
            yield batch
            batch, size = [], 0
        batch.append(tree)
        size += tree.size
    if batch:
        yield batch


def _accumulate(learner: PolicyLearner, batch: Sequence[Tree]) -> Tally:
    tally = Tally()
    targets = sum(sum(grown.mask) for tree in batch for grown in tree.branches)
    objective = AnswerObjective(1.0 / targets, tally)
    try:
        for packed in pack(batch, learner.config.token_budget):
            backward(
                learner.weights,
                packed.to(learner.device),
                objective,
                temperature=1.0,
                kept=learner.config.checkpoint_activations,
            )
    except (MemoryError, RuntimeError) as failed:
        learner.weights.discard_gradients()
        if not is_out_of_memory(failed):
            raise
        raise out_of_memory_error(learner.config.token_budget) from failed
    return tally


def _rate(peak: float, step: int, steps: int) -> float:
    rise = max(1, math.ceil(WARMUP_SHARE * steps))
    if step < rise:
        return peak * (step + 1) / rise
    return peak * (1 - 0.9 * (step - rise + 1) / max(1, steps - rise))
