"""Packing: the samples of groups as flat tokens, each group's prompt once, no padding.

A `Tree` is a prompt with the branches (samples) that grow from it; a `Pack` is as many trees as fit one
forward-backward pass, laid end to end:

    prompt A | sample A1 | sample A2 | ... | prompt B | sample B1 | ...

Positions go on from the prompt in every sample. A token is predicted by the hidden state before it; the first token of
every sample by the prompt's last one, hence `source`: for each target, the row of the state that predicts it. Tokens
that predict nothing (the last written one and what follows it) are not laid down at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from surefoot.types import Group, Rollout


@dataclass(frozen=True, slots=True)
class Branch:
    """What followed a prompt in one sample, and what it is worth."""

    tokens: tuple[int, ...]
    mask: tuple[bool, ...]
    """True where the token is to be learnt from; gaps are other speakers' turns."""
    logprobs: tuple[float, ...]
    advantage: float
    length: int
    """Tokens that are laid down: all before the last one that is learnt from."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A prompt (at least one token) and its branches (each with at least one token to learn from)."""

    prompt: tuple[int, ...]
    branches: tuple[Branch, ...]
    domain: str = ""

    @property
    def size(self) -> int:
        """Tokens that it takes in a pack."""
        return len(self.prompt) + sum(branch.length for branch in self.branches)


@dataclass(frozen=True, slots=True)
class Span:
    """Where a tree lies in a pack: its prompt at [start, start + prompt), its suffixes right behind."""

    start: int
    prompt: int
    suffixes: tuple[int, ...]

    @property
    def end(self) -> int:
        return self.start + self.prompt + sum(self.suffixes)


@dataclass(frozen=True, slots=True)
class Pack:
    """Flat arrays for one forward-backward pass: N tokens laid down, K targets."""

    spans: tuple[Span, ...]
    tokens: Tensor
    """[N]"""
    positions: Tensor
    """[N]"""
    source: Tensor
    """Row of the hidden state that predicts each target [K]."""
    targets: Tensor
    """Token ids to be predicted [K]."""
    old_logprobs: Tensor
    """[K], float32"""
    advantages: Tensor
    """[K], float32"""
    sequence: Tensor
    """Sample of each target, counted from 0 in this pack [K]; a sample's targets are contiguous."""
    domains: tuple[str, ...] = ()
    """Domain of each sample."""

    @property
    def samples(self) -> int:
        return sum(len(span.suffixes) for span in self.spans)

    def to(self, device: torch.device) -> Pack:
        """The same pack with its arrays on `device`."""
        arrays: dict[str, Any] = {
            f.name: value for f in fields(self) if isinstance(value := getattr(self, f.name), Tensor)
        }
        return replace(self, **{name: array.to(device) for name, array in arrays.items()})


# -------------------------------------------------------------------------------------------------- groups to trees


def branch(tokens: Sequence[int], mask: Sequence[bool], logprobs: Sequence[float], advantage: float) -> Branch:
    """A branch of the tokens after a prompt."""
    last = max((i for i, learnt in enumerate(mask) if learnt), default=0)
    return Branch(tuple(tokens), tuple(mask), tuple(logprobs), advantage, last)


def group_trees(group: Group, advantages: Sequence[float]) -> list[Tree]:
    """The group's samples that teach something, by prompt (one tree, unless rollouts were given different prompts)."""
    prompts: dict[tuple[int, ...], list[Branch]] = {}
    rewards = group.rewards
    for rollout, reward, advantage in zip(group.rollouts, rewards, advantages, strict=True):
        # A first token that the policy wrote itself is predicted by nothing: it can only be a prompt.
        cut = max(1, rollout.prompt_length)
        if reward.valid and any(rollout.mask[cut:]):
            grown = _branch_of(rollout, cut, advantage)
            prompts.setdefault(rollout.tokens[:cut], []).append(grown)
    return [Tree(prompt, tuple(branches), group.task.domain) for prompt, branches in prompts.items()]


def _branch_of(rollout: Rollout, cut: int, advantage: float) -> Branch:
    return branch(rollout.tokens[cut:], rollout.mask[cut:], rollout.logprobs[cut:], advantage)


# --------------------------------------------------------------------------------------------------- trees to packs


def pack(trees: Iterable[Tree], token_budget: int) -> list[Pack]:
    """Lay trees into packs of at most `token_budget` tokens.

    Whole trees where they fit; a tree larger than the budget is split by samples, each part with the prompt again; a
    single sample larger than the budget is a pack of its own. First fit, largest first: as few packs as a simple rule
    gives, and always the same ones.
    """
    parts = [part for tree in trees for part in _split(tree, token_budget)]
    bins: list[list[Tree]] = []
    room: list[int] = []
    for part in sorted(parts, key=lambda tree: -tree.size):  # a stable sort: ties keep their order
        index = next((i for i, free in enumerate(room) if free >= part.size), len(bins))
        if index == len(bins):
            bins.append([])
            room.append(token_budget)
        bins[index].append(part)
        room[index] -= part.size
    return [lay_out(content) for content in bins]


def _split(tree: Tree, budget: int) -> Iterator[Tree]:
    kept: list[Branch] = []
    size = len(tree.prompt)
    for grown in tree.branches:
        if kept and size + grown.length > budget:
            yield Tree(tree.prompt, tuple(kept), tree.domain)
            kept, size = [], len(tree.prompt)
        kept.append(grown)
        size += grown.length
    if kept:
        yield Tree(tree.prompt, tuple(kept), tree.domain)


def lay_out(trees: Sequence[Tree]) -> Pack:
    """One pack of all `trees`, in their order."""
    tokens: list[int] = []
    positions: list[int] = []
    rows: list[tuple[int, int, float, float, int]] = []  # source, target, old log-prob, advantage, sequence
    spans: list[Span] = []
    sequence = 0
    for tree in trees:
        start, cut = len(tokens), len(tree.prompt)
        tokens += tree.prompt
        positions += range(cut)
        for grown in tree.branches:
            base = len(tokens)
            tokens += grown.tokens[: grown.length]
            positions += range(cut, cut + grown.length)
            rows += [
                (start + cut - 1 if i == 0 else base + i - 1, token, logprob, grown.advantage, sequence)
                for i, (token, learnt, logprob) in enumerate(zip(grown.tokens, grown.mask, grown.logprobs, strict=True))
                if learnt
            ]
            sequence += 1
        spans.append(Span(start, cut, tuple(grown.length for grown in tree.branches)))
    source, targets, old, advantages, sequences = zip(*rows, strict=True)
    return Pack(
        spans=tuple(spans),
        tokens=torch.tensor(tokens),
        positions=torch.tensor(positions),
        source=torch.tensor(source),
        targets=torch.tensor(targets),
        old_logprobs=torch.tensor(old, dtype=torch.float32),
        advantages=torch.tensor(advantages, dtype=torch.float32),
        sequence=torch.tensor(sequences),
        domains=tuple(tree.domain for tree in trees for _ in tree.branches),
    )
