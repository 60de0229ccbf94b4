"""The fused kernels against the plain decoder, in both types, for every family of models."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from made_models import MadeModel, draw, engine, logits_of, run
from scipy.stats import chisquare

from surefoot.models import Decoder, LoadedModel
from surefoot.rollout.cache import Slots
from surefoot.rollout.fused import FusedRunner
from surefoot.rollout.native import Kernels, kernels
from surefoot.rollout.noise import uniforms
from surefoot.rollout.runner import TorchRunner
from surefoot.types import Sampling, stable_seed

pytestmark = pytest.mark.skipif(kernels(torch.float32) is None, reason="no C compiler")


@pytest.fixture(scope="module", params=[torch.bfloat16, torch.float32], ids=str)
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    found: torch.dtype = request.param
    return found


@pytest.fixture(scope="module")
def compiled(dtype: torch.dtype) -> Kernels:
    found = kernels(dtype)
    assert found is not None
    return found


def cast(decoder: Decoder, dtype: torch.dtype) -> Decoder:
    """A copy in a type that this machine can pack, or the test is skipped."""
    copy = deepcopy(decoder).to(dtype)
    if not FusedRunner.fits(copy):
        pytest.skip(f"this CPU has no packed products in {dtype}")
    return copy


def test_hidden_states_are_as_near_to_float64_as_those_of_the_plain_decoder(
    made: MadeModel, compiled: Kernels, dtype: torch.dtype
) -> None:
    exact = deepcopy(made.loaded.decoder).double()
    low = cast(made.loaded.decoder, dtype)
    runners = {
        "exact": TorchRunner(exact),
        "plain": TorchRunner(low),
        "fused": FusedRunner(low, compiled, 4),
    }
    prompts = [tuple(range(5, 26)), tuple(range(40, 43)), tuple(range(60, 92))]  # shorter, longer and whole blocks
    steps = torch.randint(0, 250, (40, 5), generator=torch.Generator().manual_seed(4))
    hidden: dict[str, list[torch.Tensor]] = {}
    for name, runner in runners.items():
        decoder = exact if name == "exact" else low
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
        slack = 0.005 if dtype == torch.bfloat16 else 1e-6
        allowed = 1.5 * float((plain - exactly).norm()) + slack * float(exactly.norm())
        assert float((fused - exactly).norm()) < allowed


def test_sampled_tokens_follow_the_softmax(compiled: Kernels, dtype: torch.dtype) -> None:
    count, vocab = 8000, 1100  # more than one block, and not a multiple of the lanes
    logits = torch.full((vocab,), -20.0)
    logits[torch.tensor([0, 15, 500, 1023, 1024, 1099])] = torch.tensor([1.0, 2.0, 0.0, 1.5, 1.0, 0.5])
    logits = logits.to(dtype)
    seeds = np.array([stable_seed("fused", i) for i in range(count)], dtype=np.uint64)
    uniform = torch.from_numpy(uniforms(seeds, np.zeros(count, dtype=np.int64)))
    tokens, logprobs = compiled.sample(logits.repeat(count, 1), uniform, 1.3)
    chance = (logits.double() / 1.3).softmax(-1)
    likely = (chance * count > 20).nonzero()[:, 0]
    seen = np.bincount(tokens.numpy(), minlength=vocab)[likely.numpy()]
    expected = chance[likely].numpy()
    assert chisquare(seen, expected / expected.sum() * seen.sum()).pvalue > 0.01
    torch.testing.assert_close(logprobs, chance.log()[tokens].float(), atol=1e-4, rtol=1e-4)


def test_sampling_agrees_with_the_plain_sampler(compiled: Kernels, dtype: torch.dtype) -> None:
    from surefoot.rollout.sampler import sample

    logits = (torch.randn(50, 3003, generator=torch.Generator().manual_seed(6)) * 3).to(dtype)
    uniform = torch.rand(50, generator=torch.Generator().manual_seed(7))
    for temperature in (1e-6, 0.8, 1.0):
        tokens, logprobs = compiled.sample(logits, uniform, temperature)
        expected, expected_logprobs = sample(logits, uniform, Sampling(temperature=temperature))
        assert tokens.equal(expected)
        torch.testing.assert_close(logprobs, expected_logprobs, atol=2e-5, rtol=1e-5)


def test_logits_that_are_not_finite_are_reported(compiled: Kernels, dtype: torch.dtype) -> None:
    logits = torch.zeros(3, 40).to(dtype)
    logits[1, 7], logits[2, 9] = float("nan"), float("inf")
    assert (compiled.sample(logits, torch.full((3,), 0.5), 1.0)[0] < 0).tolist() == [False, True, True]


def test_rollouts_repeat_and_their_logprobs_are_the_decoders(tiny: LoadedModel, dtype: torch.dtype) -> None:
    low = cast(tiny.decoder, dtype)
    own = engine(tiny, low, batch=4)
    assert isinstance(own.runner, FusedRunner)
    draws = [draw("a", 5, 9), draw("bb", 3, 14), draw("ccc", 2, 20)]
    rollouts = run(own, draws)
    assert rollouts == run(own, draws)
    gaps = []
    for r in rollouts.values():
        every = logits_of(low, r.tokens).log_softmax(-1)[:-1]  # [T - 1, vocab]
        expected = every.gather(1, torch.tensor(r.tokens[1:])[:, None])[:, 0]  # [T - 1]
        written = torch.tensor(r.mask[1:])
        gaps.append((torch.tensor(r.logprobs[1:]) - expected)[written])
    gap = torch.cat(gaps)
    assert float(gap.abs().mean()) < 0.05 and abs(float(gap.mean())) < 0.02


def test_refresh_packs_the_new_weights(tiny: LoadedModel, dtype: torch.dtype) -> None:
    low = cast(tiny.decoder, dtype)
    own = engine(tiny, low)
    with torch.no_grad():
        for parameter in low.parameters():
            parameter.mul_(1.25)
    own.refresh(2)
    afresh = engine(tiny, low)
    afresh.refresh(2)
    assert run(own, [draw("x", 4, 9)]) == run(afresh, [draw("x", 4, 9)])
