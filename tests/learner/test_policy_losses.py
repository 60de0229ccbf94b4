"""Every loss against a plain float64 loop, and its gradient against finite differences."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from surefoot.errors import ConfigError
from surefoot.learner import losses
from surefoot.learner.losses import KL_ESTIMATORS, LOSSES, TRAITS, Clip, TokenArrays, find_loss

CLIP = Clip(0.2, 0.25)


def arrays(seed: int, *, masked: bool = True) -> TokenArrays:
    generator = torch.Generator().manual_seed(seed)
    lengths = [1, 4, 7, 3]
    sequence = torch.repeat_interleave(torch.arange(4), torch.tensor(lengths))
    count = len(sequence)
    old = -torch.rand(count, generator=generator, dtype=torch.float64) * 3
    new = old + torch.randn(count, generator=generator, dtype=torch.float64) * 0.3
    advantages = torch.randn(4, generator=generator, dtype=torch.float64)[sequence]
    mask = torch.rand(count, generator=generator) > 0.25 if masked else torch.ones(count, dtype=torch.bool)
    teacher = new + torch.randn(count, generator=generator, dtype=torch.float64)
    return TokenArrays(new, old, advantages, mask, sequence, teacher)


def expected(name: str, t: TokenArrays, clip: Clip) -> np.ndarray:
    """The formulas, token by token."""
    new, old, adv, mask, seq = (x.numpy() for x in (t.logprobs, t.old_logprobs, t.advantages, t.mask, t.sequence))
    if name == "distill" and t.teacher is not None:
        adv = t.teacher.numpy() - old
    high = {"dapo": clip.high if clip.high != clip.low else 0.28}.get(name, clip.high)
    out = np.zeros(len(new))
    for i in range(len(new)):
        if not mask[i]:
            continue
        ratio = math.exp(new[i] - old[i])
        if name == "gspo":
            own = [j for j in range(len(new)) if seq[j] == seq[i] and mask[j]]
            ratio = math.exp(sum(new[j] - old[j] for j in own) / len(own))
        if name in {"grpo", "dr_grpo", "dapo", "gspo", "distill"}:
            limited = min(max(ratio, 1 - clip.low), 1 + high)
            out[i] = -min(ratio * adv[i], limited * adv[i])
        elif name == "cispo":
            out[i] = -min(ratio, 1 + high) * adv[i] * new[i]
        else:
            out[i] = -adv[i] * new[i]
    return out


@pytest.mark.parametrize("name", sorted(LOSSES))
@pytest.mark.parametrize("clip", [CLIP, Clip(0.2, 0.2)])
def test_value_equals_the_formula(name: str, clip: Clip) -> None:
    for seed in range(5):
        t = arrays(seed)
        np.testing.assert_allclose(LOSSES[name](t, clip).loss.numpy(), expected(name, t, clip), rtol=1e-12)


@pytest.mark.parametrize("name", ["grpo", "dr_grpo", "dapo", "reinforce", "rloo"])
def test_gradient_equals_finite_differences(name: str) -> None:
    t = arrays(3)
    leaf = t.logprobs.clone().requires_grad_()

    def value(logprobs: torch.Tensor) -> torch.Tensor:
        return LOSSES[name](TokenArrays(logprobs, t.old_logprobs, t.advantages, t.mask, t.sequence), CLIP).loss

    assert torch.autograd.gradcheck(value, (leaf,))


@pytest.mark.parametrize("name", ["gspo", "cispo"])
def test_gradient_of_losses_that_stop_gradients(name: str) -> None:
    """Where the formula has sg(), finite differences do not apply: compare with the gradient worked out by hand."""
    t = arrays(4)
    leaf = t.logprobs.clone().requires_grad_()
    result = LOSSES[name](TokenArrays(leaf, t.old_logprobs, t.advantages, t.mask, t.sequence), CLIP)
    result.loss.sum().backward()
    ratio = result.ratio
    by_hand = -ratio * t.advantages * ~result.clipped
    if name == "cispo":
        by_hand = -ratio.clamp(max=1 + CLIP.high) * t.advantages
    torch.testing.assert_close(leaf.grad, torch.where(t.mask, by_hand, 0.0), rtol=1e-12, atol=0)


def test_gspo_gradient_is_that_of_the_sequence_objective() -> None:
    """The token form's gradient, averaged over a sample, is that of min(s A, clip(s) A) with s differentiable."""
    t = arrays(5, masked=False)
    leaf = t.logprobs.clone().requires_grad_()
    loss = LOSSES["gspo"](TokenArrays(leaf, t.old_logprobs, t.advantages, t.mask, t.sequence), CLIP).loss
    losses.sequence_mean(loss, t).sum().backward()
    direct = t.logprobs.clone().requires_grad_()
    s = torch.exp(losses.sequence_mean(direct - t.old_logprobs, t))
    first = [int((t.sequence == i).nonzero()[0]) for i in range(4)]
    a = t.advantages[first]
    (-torch.minimum(s * a, s.clamp(1 - CLIP.low, 1 + CLIP.high) * a)).sum().backward()
    torch.testing.assert_close(leaf.grad, direct.grad)


def test_clipped_tokens_have_no_gradient() -> None:
    t = arrays(6, masked=False)
    leaf = t.logprobs.clone().requires_grad_()
    result = LOSSES["grpo"](TokenArrays(leaf, t.old_logprobs, t.advantages, t.mask, t.sequence), Clip(0.05, 0.05))
    result.loss.sum().backward()
    assert leaf.grad is not None
    assert result.clipped.any()
    assert (leaf.grad[result.clipped] == 0).all()
    assert (leaf.grad[~result.clipped] != 0).all()


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_masked_tokens_count_for_nothing_even_if_infinite(name: str) -> None:
    t = arrays(7)
    wild = torch.where(t.mask, t.logprobs, float("-inf")).requires_grad_()
    result = LOSSES[name](replace(t, logprobs=wild), CLIP)
    assert torch.isfinite(result.loss).all()
    assert (result.loss[~t.mask] == 0).all()


def test_kl_estimators() -> None:
    new, ref = torch.tensor([-1.0, -2.0], dtype=torch.float64), torch.tensor([-1.5, -1.0], dtype=torch.float64)
    torch.testing.assert_close(KL_ESTIMATORS["k1"](new, ref), torch.tensor([0.5, -1.0], dtype=torch.float64))
    torch.testing.assert_close(KL_ESTIMATORS["k2"](new, ref), torch.tensor([0.125, 0.5], dtype=torch.float64))
    by_hand = [math.exp(-0.5) - 1 + 0.5, math.exp(1.0) - 1 - 1.0]
    torch.testing.assert_close(KL_ESTIMATORS["k3"](new, ref), torch.tensor(by_hand, dtype=torch.float64))


def test_k1_and_k3_are_unbiased() -> None:
    p, q = torch.softmax(torch.randn(2, 50, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), -1)
    exact = (p * (p / q).log()).sum()
    for name in ("k1", "k3"):
        torch.testing.assert_close((p * KL_ESTIMATORS[name](p.log(), q.log())).sum(), exact)


def test_unknown_loss_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'grpo'"):
        find_loss("gprp")


def test_installed_loss_is_loaded_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name, value = "mine", "package:mine"

        def load(self) -> object:
            return losses.reinforce

    monkeypatch.setattr(losses, "entry_points", lambda group: [Point()] if group == "surefoot.losses" else [])
    assert find_loss("mine").function is losses.reinforce


def test_installed_loss_that_cannot_be_imported_is_a_config_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name, value = "mine", "package:mine"

        def load(self) -> object:
            raise ImportError("no module named package")

    monkeypatch.setattr(losses, "entry_points", lambda group: [Point()])
    with pytest.raises(ConfigError, match="package:mine"):
        find_loss("mine")


def test_every_built_in_loss_says_how_it_is_averaged() -> None:
    assert {TRAITS[function].average for function in LOSSES.values()} == {"tokens", "sequences", "constant"}
