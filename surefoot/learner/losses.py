"""Policy losses: small pure functions over flat token arrays.

Each takes `TokenArrays` and the clip range and gives a loss per token; the learner multiplies it by a weight per token
and sums, and knows nothing else about the algorithm. In the formulas, for token t of sample i,

    r = exp(log pi(t) - log pi_old(t))      ratio of the policy that is trained to the one that sampled
    A = advantage of the sample             (of the token, if the user gives one per token)
    sg(x) = x without gradient

A loss of your own is a function with the same signature, named in the entry-point group `surefoot.losses`; the
decorator `loss` says how it is averaged (by default over tokens).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from surefoot.errors import ConfigError

Average = Literal["tokens", "sequences", "constant"]
"""`tokens`: sum / number of tokens of the minibatch. `sequences`: mean over the samples of each sample's mean.
`constant`: sum / (number of samples x longest allowed sample), so that length changes no token's weight."""

Estimator = Literal["group_std", "group_mean", "leave_one_out", "domain_std", "batch_std"]
ENTRY_POINTS = "surefoot.losses"
DAPO_CLIP_HIGH = 0.28


class Clip(NamedTuple):
    """The ratio is clipped to [1 - low, 1 + high]."""

    low: float = 0.2
    high: float = 0.2


@dataclass(frozen=True, slots=True)
class TokenArrays:
    """What a loss sees: K tokens that policies wrote, samples laid end to end."""

    logprobs: Tensor
    """Log-probabilities under the policy that is trained [K]; the gradient flows through these alone."""
    old_logprobs: Tensor
    """Log-probabilities when sampled [K]."""
    advantages: Tensor
    """[K]"""
    mask: Tensor
    """False where a token takes no part [K], bool."""
    sequence: Tensor
    """Which sample each token belongs to, counted from 0 [K], int64."""
    teacher: Tensor | None = None
    """Log-probabilities under the teacher [K], for losses that declare that they need one."""


class TokenLoss(NamedTuple):
    """Loss and measures per token, 0 where masked."""

    loss: Tensor
    """[K]"""
    ratio: Tensor
    """[K], without gradient."""
    clipped: Tensor
    """Whether the clip took away the token's gradient [K], bool."""


@runtime_checkable
class Loss(Protocol):
    """A policy loss."""

    def __call__(self, t: TokenArrays, clip: Clip) -> TokenLoss: ...


@dataclass(frozen=True, slots=True)
class LossTraits:
    """What the learner must know of a loss besides its value."""

    average: Average = "tokens"
    coupled: bool = True
    """Whether a token's loss depends on other tokens. If not, loss and gradient are computed in one pass."""
    advantage: Estimator | None = None
    """Advantage estimator that the algorithm prescribes; None for the recipe's."""
    teacher: bool = False
    """Whether it follows a teacher (`learner.teacher`) instead of rewards; it then learns from groups of equal rewards
    too."""


TRAITS: dict[Loss, LossTraits] = {}


def loss(
    *, average: Average = "tokens", coupled: bool = True, advantage: Estimator | None = None, teacher: bool = False
) -> Callable[[Loss], Loss]:
    """Declare how a loss is averaged; a function without this decorator gets the defaults."""

    def declare(function: Loss) -> Loss:
        TRAITS[function] = LossTraits(average, coupled, advantage, teacher)
        return function

    return declare


# ------------------------------------------------------------------------------------------------------ the losses


@loss(coupled=False)
def grpo(t: TokenArrays, clip: Clip) -> TokenLoss:
    """Group Relative Policy Optimization, token-level average (arXiv 2402.03300; PPO's clip, arXiv 1707.06347).

    L = -min(r A, clip(r, 1 - low, 1 + high) A)
    """
    ratio = _ratio(t)
    plain, limited = ratio * t.advantages, ratio.clamp(1 - clip.low, 1 + clip.high) * t.advantages
    return _result(t, -torch.minimum(plain, limited), ratio, limited < plain)


@loss(coupled=False, average="constant", advantage="group_mean")
def dr_grpo(t: TokenArrays, clip: Clip) -> TokenLoss:
    """Dr. GRPO (arXiv 2503.20783): GRPO's L without its two biases.

    Advantages r - mean are not divided by the standard deviation, and the sum over tokens is divided by a constant
    instead of the sample's length.
    """
    return grpo(t, clip)


@loss(coupled=False)
def dapo(t: TokenArrays, clip: Clip) -> TokenLoss:
    """DAPO's clip-higher (arXiv 2503.14476): GRPO's L with high > low, averaged over all tokens of the minibatch.

    A recipe that leaves high = low gets the paper's high of 0.28.
    """
    return grpo(t, clip if clip.high != clip.low else Clip(clip.low, max(clip.low, DAPO_CLIP_HIGH)))


@loss(average="sequences")
def gspo(t: TokenArrays, clip: Clip) -> TokenLoss:
    """Group Sequence Policy Optimization (arXiv 2507.18071): one ratio a sample, the geometric mean of its tokens'.

    s = exp(mean over the sample of (log pi - log pi_old)), per token sg(s) pi / sg(pi), and
    L = -min(s A, clip(s, 1 - low, 1 + high) A)

    The paper clips at 3e-4 and 4e-4: ratios of whole samples move far less than those of tokens.
    """
    difference = _difference(t)  # [K]
    mean = sequence_mean(difference.detach(), t)[t.sequence]  # [K]
    ratio = torch.exp(mean + difference - difference.detach())  # [K], valued s, with each token's own gradient
    plain, limited = ratio * t.advantages, ratio.clamp(1 - clip.low, 1 + clip.high) * t.advantages
    return _result(t, -torch.minimum(plain, limited), ratio, limited < plain)


@loss(coupled=False)
def cispo(t: TokenArrays, clip: Clip) -> TokenLoss:
    """Clipped IS-weight Policy Optimization (MiniMax-M1, arXiv 2506.13585): no token ever loses its gradient.

    L = -sg(min(r, 1 + high)) A log pi
    """
    ratio = _ratio(t).detach()
    weight = ratio.clamp(max=1 + clip.high)
    return _result(t, -weight * t.advantages * t.logprobs, ratio, torch.zeros_like(t.mask))


@loss(coupled=False)
def reinforce(t: TokenArrays, clip: Clip) -> TokenLoss:
    """REINFORCE (Williams 1992) with the group as baseline: L = -A log pi. For rollouts of the current policy."""
    return _result(t, -t.advantages * t.logprobs, _ratio(t).detach(), torch.zeros_like(t.mask))


@loss(coupled=False, average="constant", advantage="leave_one_out")
def rloo(t: TokenArrays, clip: Clip) -> TokenLoss:
    """REINFORCE leave-one-out (arXiv 2402.14740): L = -A log pi, the whole sample as one action.

    A = r_i - mean of the other samples' rewards.
    """
    return reinforce(t, clip)


@loss(coupled=False, teacher=True)
def distill(t: TokenArrays, clip: Clip) -> TokenLoss:
    """On-policy distillation (arXiv 2306.13649; per token, thinkingmachines.ai/blog/on-policy-distillation): GRPO's L
    with A = log teacher - log pi_old, whose expected gradient at pi = pi_old is that of KL(pi, teacher).
    """
    if t.teacher is None:
        raise ValueError("distillation needs the teacher's log-probs")
    return grpo(replace(t, advantages=t.teacher - t.old_logprobs), clip)


LOSSES: dict[str, Loss] = {
    "grpo": grpo,
    "dr_grpo": dr_grpo,
    "dapo": dapo,
    "gspo": gspo,
    "cispo": cispo,
    "reinforce": reinforce,
    "rloo": rloo,
    "distill": distill,
}


# ---------------------------------------------------------------------------------------------------- KL estimators


def kl_k1(logprobs: Tensor, reference: Tensor) -> Tensor:
    """k1 = log pi - log ref: unbiased, can be negative (Schulman 2020, joschu.net/blog/kl-approx.html)."""
    return logprobs - reference


def kl_k2(logprobs: Tensor, reference: Tensor) -> Tensor:
    """k2 = (log pi - log ref)^2 / 2: biased, low variance; its gradient is that of the KL in expectation."""
    return 0.5 * (logprobs - reference).square()


def kl_k3(logprobs: Tensor, reference: Tensor) -> Tensor:
    """k3 = ref / pi - 1 - log(ref / pi): unbiased and never negative; GRPO's choice."""
    difference = reference - logprobs
    return torch.expm1(difference) - difference


KL_ESTIMATORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"k1": kl_k1, "k2": kl_k2, "k3": kl_k3}


# --------------------------------------------------------------------------------------------------------- look-up


@dataclass(frozen=True, slots=True)
class NamedLoss:
    """A loss as a recipe names it."""

    name: str
    function: Loss
    traits: LossTraits = field(default_factory=LossTraits)


def find_loss(name: str) -> NamedLoss:
    """The loss called `name`: a built-in one, or an installed `surefoot.losses` entry point (loaded only now).

    Raises:
        ConfigError: there is none, with the nearest name; or the entry point cannot be loaded.
    """
    if name in LOSSES:
        return NamedLoss(name, LOSSES[name], TRAITS[LOSSES[name]])
    installed = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in installed:
        known = sorted({*LOSSES, *installed})
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ConfigError(
            f"there is no loss {name!r}{hint}", where="learner.loss", fix=f"known losses: {', '.join(known)}"
        )
    try:
        function: Loss = installed[name].load()
    except (ImportError, AttributeError) as broken:
        raise ConfigError(
            f"the loss {name!r} cannot be loaded from {installed[name].value!r}: {broken}", where="learner.loss"
        ) from broken
    return NamedLoss(name, function, TRAITS.get(function, LossTraits()))


# --------------------------------------------------------------------------------------------------------- helpers


def sequence_mean(values: Tensor, t: TokenArrays) -> Tensor:
    """Mean of `values` [K] over the unmasked tokens of each sample -> [samples]."""
    samples = int(t.sequence.max()) + 1 if len(t.sequence) else 0
    total = values.new_zeros(samples).index_add(0, t.sequence, values * t.mask)
    count = values.new_zeros(samples).index_add(0, t.sequence, t.mask.to(values.dtype))
    return total / count.clamp(min=1)


def _difference(t: TokenArrays) -> Tensor:
    return torch.where(t.mask, t.logprobs - t.old_logprobs, 0.0)


def _ratio(t: TokenArrays) -> Tensor:
    return torch.exp(_difference(t))


def _result(t: TokenArrays, value: Tensor, ratio: Tensor, clipped: Tensor) -> TokenLoss:
    # `where` and not a product: a masked token may be infinite, and 0 x infinity is not 0.
    return TokenLoss(torch.where(t.mask, value, 0.0), torch.where(t.mask, ratio.detach(), 0.0), clipped & t.mask)
