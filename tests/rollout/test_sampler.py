"""The sampler draws from the distribution it says, and its random numbers depend on nothing but seed and index."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, kstest
from torch import Tensor

from surefoot.errors import ModelError
from surefoot.rollout.noise import uniforms
from surefoot.rollout.sampler import sample
from surefoot.types import Sampling, stable_seed

DRAWS = 20_000


def numbers(count: int, salt: str) -> Tensor:
    seeds = np.array([stable_seed(salt, i) for i in range(count)], dtype=np.uint64)
    return torch.from_numpy(uniforms(seeds, np.arange(count) % 7))


def counts(logits: Tensor, sampling: Sampling) -> tuple[np.ndarray, Tensor]:
    tokens, logprobs = sample(logits.expand(DRAWS, -1), numbers(DRAWS, "counts"), sampling)
    return np.bincount(tokens.numpy(), minlength=len(logits)), logprobs


@pytest.mark.parametrize("temperature", [0.7, 1.0, 1.8])
def test_tokens_follow_the_softmax(temperature: float) -> None:
    logits = torch.randn(24, generator=torch.Generator().manual_seed(1))
    seen, _ = counts(logits, Sampling(temperature=temperature))
    expected = (logits.double() / temperature).softmax(-1).numpy() * DRAWS
    assert chisquare(seen, expected).pvalue > 0.01


def test_logprobs_are_those_of_the_sampled_distribution() -> None:
    logits = torch.randn(5, 1000, generator=torch.Generator().manual_seed(2)) * 4
    for sampling in (Sampling(), Sampling(temperature=0.5)):
        tokens, logprobs = sample(logits, numbers(5, "logprobs"), sampling)
        expected = (logits / sampling.temperature).log_softmax(-1).gather(1, tokens[:, None])[:, 0]
        torch.testing.assert_close(logprobs, expected, atol=1e-5, rtol=1e-5)


def test_top_k_keeps_the_k_most_likely_and_renormalises() -> None:
    logits = torch.tensor([0.0, 3.0, 1.0, 2.0, -1.0])
    seen, logprobs = counts(logits, Sampling(top_k=2))
    expected = torch.tensor([3.0, 2.0]).double().softmax(-1).numpy() * DRAWS
    assert seen[[0, 2, 4]].sum() == 0
    assert chisquare(seen[[1, 3]], expected).pvalue > 0.01
    assert set(logprobs.exp().mul(1000).round().int().tolist()) == {731, 269}


def test_top_p_keeps_the_smallest_set_that_reaches_it() -> None:
    logits = torch.tensor([0.1, 0.5, 0.25, 0.15]).log()
    assert counts(logits, Sampling(top_p=0.7))[0].nonzero()[0].tolist() == [1, 2]
    assert counts(logits, Sampling(top_p=0.8))[0].nonzero()[0].tolist() == [1, 2, 3]
    assert counts(logits, Sampling(top_p=0.01))[0].nonzero()[0].tolist() == [1]


def test_the_coldest_temperature_is_greedy() -> None:
    logits = torch.randn(64, 500, generator=torch.Generator().manual_seed(3))
    tokens, logprobs = sample(logits, numbers(64, "cold"), Sampling(temperature=0.0))
    assert tokens.equal(logits.argmax(-1))
    assert float(logprobs.abs().max()) == 0.0


def test_the_search_never_ends_on_an_impossible_token() -> None:
    logits = torch.full((3, 9), -torch.inf)
    logits[:, 4] = 0.0
    edge = torch.tensor([0.0, 0.5, 1 - 2.0**-24])
    assert sample(logits, edge, Sampling())[0].tolist() == [4, 4, 4]


def test_logits_that_are_not_finite_are_reported() -> None:
    with pytest.raises(ModelError, match="not finite"):
        sample(torch.tensor([[0.0, torch.nan]]), torch.tensor([0.5]), Sampling())


def test_numbers_are_uniform_and_unrelated_between_neighbours() -> None:
    index = np.arange(50_000)
    same_seed = uniforms(np.full(50_000, 12345, dtype=np.uint64), index)
    next_seeds = uniforms(np.arange(50_000).astype(np.uint64), np.zeros(50_000, dtype=np.int64))
    for stream in (same_seed, next_seeds):
        assert stream.min() >= 0 and stream.max() < 1
        assert kstest(stream, "uniform").pvalue > 0.01
        assert abs(np.corrcoef(stream[1:], stream[:-1])[0, 1]) < 0.015


def test_numbers_depend_on_seed_and_index_alone() -> None:
    seeds, index = np.array([5, 2**62 + 9, 7], dtype=np.uint64), np.array([0, 3, 1])
    together = uniforms(seeds, index)
    alone = [float(uniforms(seeds[i : i + 1], index[i : i + 1])[0]) for i in range(3)]
    assert together.tolist() == alone
