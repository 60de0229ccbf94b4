"""The fused kernels against the plain decoder, both in bfloat16, for every family of models."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from made_models import MadeModel, draw, engine, logits_of, run
from scipy.stats import chisquare

from surefoot.models.library import LoadedModel
from surefoot.rollout.cache import Slots
from surefoot.rollout.fused import FusedRunner
from surefoot.rollout.native import Kernels, kernels
from surefoot.rollout.noise import uniforms
from surefoot.rollout.runner import TorchRunner
from surefoot.types import Sampling, stable_seed

pytestmark = pytest.mark.skipif(kernels() is None, reason="no C compiler")


@pytest.fixture(scope="module")
def compiled() -> Kernels:
    found = kernels()
    assert found is not None
    return found


def test_hidden_states_are_as_near_to_float32_as_those_of_the_plain_decoder(made: MadeModel, compiled: Kernels) -> None:
    exact = made.loaded.decoder
    half = deepcopy(exact).to(torch.bfloat16)
    runners = {
        "exact": TorchRunner(exact),
        "plain": TorchRunner(half),
        "fused": FusedRunner(half, compiled, 4),
    }
    prompts = [tuple(range(5, 26)), tuple(range(40, 43)), tuple(range(60, 92))]  # shorter, longer and whole blocks
    steps = torch.randint(0, 250, (40, 5), generator=torch.Generator().manual_seed(4))
    hidden: dict[str, list[torch.Tensor]] = {}
    for name, runner in runners.items():
        decoder = exact if name == "exact" else half
        with torch.inference_mode():
            a, b, c = runner.encode(prompts)
            slots = Slots(decoder.config, 5, decoder.embedding)
            slots.kv.fill_(float("nan"))  # what was never written must never be read
            written = torch.tensor([0, 0, 0, 0, 0])
            hidden[name] = [a.hidden, b.hidden, c.hidden]
            for tokens in steps:
                hidden[name].append(runner.decode(tokens, written, [a, a, b, c, c], slots).clone())
                written = written + 1
    for exactly, plain, fused in zip(hidden["exact"], hidden["plain"], hidden["fused"], strict=True):
        allowed = 1.5 * float((plain - exactly).norm()) + 0.005 * float(exactly.norm())
        assert float((fused - exactly).norm()) < allowed


def test_sampled_tokens_follow_the_softmax(compiled: Kernels) -> None:
    count, vocab = 8000, 1100  # more than one block, and not a multiple of the lanes
    logits = torch.full((vocab,), -20.0)
    logits[torch.tensor([0, 15, 500, 1023, 1024, 1099])] = torch.tensor([1.0, 2.0, 0.0, 1.5, 1.0, 0.5])
    logits = logits.bfloat16()
    seeds = np.array([stable_seed("fused", i) for i in range(count)], dtype=np.uint64)
    uniform = torch.from_numpy(uniforms(seeds, np.zeros(count, dtype=np.int64)))
    tokens, logprobs = compiled.sample(logits.repeat(count, 1), uniform, 1.3)
    chance = (logits.double() / 1.3).softmax(-1)
    likely = (chance * count > 20).nonzero()[:, 0]
    seen = np.bincount(tokens.numpy(), minlength=vocab)[likely.numpy()]
    expected = chance[likely].numpy()
    assert chisquare(seen, expected / expected.sum() * seen.sum()).pvalue > 0.01
    torch.testing.assert_close(logprobs, chance.log()[tokens].float(), atol=1e-4, rtol=1e-4)


def test_sampling_agrees_with_the_plain_sampler(compiled: Kernels) -> None:
    from surefoot.rollout.sampler import sample

    logits = (torch.randn(50, 3003, generator=torch.Generator().manual_seed(6)) * 3).bfloat16()
    uniform = torch.rand(50, generator=torch.Generator().manual_seed(7))
    for temperature in (1e-6, 0.8, 1.0):
        tokens, logprobs = compiled.sample(logits, uniform, temperature)
        expected, expected_logprobs = sample(logits, uniform, Sampling(temperature=temperature))
        assert tokens.equal(expected)
        torch.testing.assert_close(logprobs, expected_logprobs, atol=2e-5, rtol=1e-5)


def test_logits_that_are_not_finite_are_reported(compiled: Kernels) -> None:
    logits = torch.zeros(3, 40).bfloat16()
    logits[1, 7], logits[2, 9] = float("nan"), float("inf")
    assert (compiled.sample(logits, torch.full((3,), 0.5), 1.0)[0] < 0).tolist() == [False, True, True]


def test_bfloat16_rollouts_repeat_and_their_logprobs_are_the_decoders(tiny: LoadedModel) -> None:
    half = deepcopy(tiny.decoder).to(torch.bfloat16)
    own = engine(tiny, half, batch=4)
    assert isinstance(own.runner, FusedRunner)
    draws = [draw("a", 5, 9), draw("bb", 3, 14), draw("ccc", 2, 20)]
    rollouts = run(own, draws)
    assert rollouts == run(own, draws)
    gaps = []
    for r in rollouts.values():
        every = logits_of(half, r.tokens).log_softmax(-1)[:-1]  # [T - 1, vocab]
        expected = every.gather(1, torch.tensor(r.tokens[1:])[:, None])[:, 0]  # [T - 1]
        written = torch.tensor(r.mask[1:])
        gaps.append((torch.tensor(r.logprobs[1:]) - expected)[written])
    gap = torch.cat(gaps)
    assert float(gap.abs().mean()) < 0.05 and abs(float(gap.mean())) < 0.02


def test_refresh_packs_the_new_weights(tiny: LoadedModel) -> None:
    half = deepcopy(tiny.decoder).to(torch.bfloat16)
    own = engine(tiny, half)
    with torch.no_grad():
        for parameter in half.parameters():
            parameter.mul_(1.25)
    own.refresh(2)
    afresh = engine(tiny, half)
    afresh.refresh(2)
    assert run(own, [draw("x", 4, 9)]) == run(afresh, [draw("x", 4, 9)])
