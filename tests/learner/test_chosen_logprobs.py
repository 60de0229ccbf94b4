"""Log-probs without logits against log_softmax in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from surefoot.learner.logprobs import chosen_logprobs, score, score_and_backward


def problem(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    hidden, head = (torch.randn(n, 12, generator=generator, dtype=torch.float64) for n in (23, 51))
    return hidden.to(dtype), head.to(dtype), torch.randint(51, (23,), generator=generator)


def plain(hidden: Tensor, head: Tensor, targets: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    everything = torch.log_softmax(hidden.double() @ head.double().T / temperature, -1)
    return everything.gather(1, targets[:, None])[:, 0], -(everything.exp() * everything).sum(-1)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("chunk", [1, 5, 23, 100])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 0.08)]
)
def test_equals_log_softmax(temperature: float, chunk: int, dtype: torch.dtype, tolerance: float) -> None:
    hidden, head, targets = problem(dtype)
    found = score(hidden, head, targets, temperature=temperature, chunk=chunk)
    logprobs, entropy = plain(hidden, head, targets, temperature)
    torch.testing.assert_close(found.logprobs.double(), logprobs, atol=tolerance, rtol=tolerance)
    torch.testing.assert_close(found.entropy.double(), entropy, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("chunk", [4, 100])
def test_gradients_equal_finite_differences(chunk: int) -> None:
    hidden, head, targets = (x[:11] for x in problem())
    targets = targets % len(head)

    def function(h: Tensor, w: Tensor) -> Tensor:
        return chosen_logprobs(h, w, targets, temperature=1.3, chunk=chunk)

    assert torch.autograd.gradcheck(function, (hidden.requires_grad_(), head.requires_grad_()))


def test_one_pass_backward_equals_autograd() -> None:
    hidden, head, targets = problem()
    generator = torch.Generator().manual_seed(1)
    old = -torch.rand(23, generator=generator, dtype=torch.float64)
    h, w = hidden.clone().requires_grad_(), head.clone().requires_grad_()
    torch.exp(plain(h, w, targets, 0.9)[0] - old).sum().backward()
    total = torch.zeros_like(head)
    result = score_and_backward(
        hidden,
        head,
        targets,
        lambda logprobs, rows: torch.exp(logprobs - old[rows]),
        total.add_,
        temperature=0.9,
        chunk=6,
    )
    torch.testing.assert_close(result.hidden, h.grad)
    torch.testing.assert_close(total, w.grad)


def test_certain_tokens_stay_finite() -> None:
    hidden, head, targets = problem(torch.float32)
    found = score(hidden * 1e4, head, targets)
    assert torch.isfinite(found.logprobs).all()
    assert torch.isfinite(found.entropy).all()
    assert (found.entropy >= -1e-5).all()


def test_no_targets() -> None:
    hidden, head, targets = problem()
    assert len(score(hidden[:0], head, targets[:0]).logprobs) == 0
