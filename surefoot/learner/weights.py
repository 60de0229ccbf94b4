"""Mixed precision: float32 master weights with AdamW, and the copy in the compute type that all products use.

A bfloat16 weight near 1 cannot take an update below 4e-3, and a step of reinforcement learning moves weights by about
1e-6 to 1e-5: applied to bfloat16 weights most updates would vanish. So the masters are float32, gradients of
micro-batches are summed in float32, and after each step the masters are rounded into the compute copy, in place: the
rollout engine reads these very tensors.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from surefoot.errors import RunError
from surefoot.models import Decoder

MOMENTS = ("exp_avg", "exp_avg_sq")


class MixedWeights:
    """Owner of the masters, the compute copy (in float32 the masters themselves), and the gradients between them."""

    def __init__(self, master: Decoder, dtype: torch.dtype, device: torch.device) -> None:
        self.master = master.float().to(device).requires_grad_(True)
        self.compute = self.master if dtype == torch.float32 else cast_copy(self.master, dtype)
        self.whole = dict(self.master.named_parameters())
        self.masters: dict[str, nn.Parameter] = self.whole
        """What the optimiser moves."""
        self.head: str | None = "embedding" if master.config.tied else "untied_head"
        """Name of the output head; None where it is not trained."""
        self._totals: dict[str, Tensor] = {}  # no memory between updates, when the engine needs its own
        for name, parameter in self.compute.named_parameters():
            parameter.register_post_accumulate_grad_hook(_Collector(self, name))  # type: ignore[no-untyped-call]

    def add_gradient(self, name: str, part: Tensor) -> None:
        """Add a gradient in any dtype to the float32 total of parameter `name`; `part` is given away."""
        if name in self._totals:
            self._totals[name] += part
        else:
            self._totals[name] = part.float()

    def add_rows(self, name: str, rows: Tensor, part: Tensor) -> None:
        """Add a gradient of the `rows` [N] (some perhaps several times) of parameter `name` alone."""
        if name not in self._totals:
            self._totals[name] = torch.zeros_like(self.masters[name], requires_grad=False)
        self._totals[name].index_add_(0, rows, part.float())

    def discard_gradients(self) -> None:
        """Forget what was accumulated."""
        self._totals.clear()
        for parameter in (*self.compute.parameters(), *self.masters.values()):
            parameter.grad = None

    def gradients(self) -> dict[str, Tensor]:
        """The accumulated float32 gradients by parameter name (zeros where there was none)."""
        return {
            name: self._totals[name] if name in self._totals else torch.zeros_like(parameter, requires_grad=False)
            for name, parameter in self.masters.items()
        }

    @torch.no_grad()
    def step(self, optimiser: torch.optim.AdamW, lr: float, max_norm: float) -> float:
        """Clip, step, publish, and forget the gradients. Returns their norm; if that is not finite, changes nothing."""
        gradients = self.gradients()
        norms = torch._foreach_norm(list(gradients.values()))
        norm = float(torch.linalg.vector_norm(torch.stack(norms)))
        if torch.isfinite(torch.tensor(norm)):
            if norm > max_norm:
                torch._foreach_mul_(list(gradients.values()), max_norm / norm)
            for name, parameter in self.masters.items():
                parameter.grad = gradients[name]
            for group in optimiser.param_groups:
                group["lr"] = lr
            optimiser.step()
            self.publish()
        self.discard_gradients()
        return norm

    @torch.no_grad()
    def publish(self) -> None:
        """Round the masters into the compute copy, in place; in float32 the two are one."""
        if self.compute is self.master:
            return
        for name, parameter in self.compute.named_parameters():
            parameter.copy_(self.whole[name])

    def tensors(self) -> dict[str, Tensor]:
        """The masters by name, as views."""
        return weight_tensors(self.master, "master")

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what `tensors` gave. Raises RunError where they do not fit."""
        restore_weights(self.master, "master", tensors)
        self.publish()

    def optimiser(self, lr: float, *, betas: tuple[float, float], weight_decay: float) -> torch.optim.AdamW:
        """AdamW over the masters; norms and biases do not decay."""
        matrices = [p for p in self.masters.values() if p.ndim > 1]
        vectors = [p for p in self.masters.values() if p.ndim <= 1]
        groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=lr, betas=betas, eps=1e-8, fused=True)


class _Collector:
    """Moves a parameter's gradient into the float32 totals as soon as a backward pass has made it."""

    def __init__(self, weights: MixedWeights, name: str) -> None:
        self.weights, self.name = weights, name

    def __call__(self, parameter: Tensor) -> None:
        if parameter.grad is not None:
            self.weights.add_gradient(self.name, parameter.grad)
            parameter.grad = None


def cast_copy(source: Decoder, dtype: torch.dtype) -> Decoder:
    """A decoder with its own weights in `dtype`; the rotary frequencies stay float32."""
    with torch.device("meta"):
        copy = Decoder(source.config, torch.empty(source.config.head_dim // 2), source.rope_scale)
    copy.inverse_frequencies = source.inverse_frequencies.clone()
    for name, parameter in source.named_parameters():
        module, _, leaf = name.rpartition(".")
        setattr(copy.get_submodule(module), leaf, nn.Parameter(parameter.detach().to(dtype, copy=True)))
    return copy


def weight_tensors(decoder: Decoder, prefix: str) -> dict[str, Tensor]:
    """A decoder's weights by name, as views."""
    return {f"{prefix}.{name}": parameter.detach() for name, parameter in decoder.named_parameters()}


@torch.no_grad()
def restore_weights(decoder: Decoder, prefix: str, tensors: Mapping[str, Tensor]) -> None:
    """The inverse of `weight_tensors`, in place. Raises RunError where the tensors do not fit."""
    for name, parameter in decoder.named_parameters():
        parameter.copy_(fitting(tensors, f"{prefix}.{name}", parameter))


def moment_tensors(weights: MixedWeights, optimiser: torch.optim.AdamW) -> dict[str, Tensor]:
    """AdamW's moments by name; empty before its first step."""
    return {
        f"{moment}.{name}": optimiser.state[parameter][moment]
        for moment in MOMENTS
        for name, parameter in weights.masters.items()
        if parameter in optimiser.state
    }


def restore_moments(
    weights: MixedWeights, optimiser: torch.optim.AdamW, tensors: Mapping[str, Tensor], steps: int
) -> None:
    """The inverse of `moment_tensors`, after `steps` optimiser steps."""
    optimiser.state.clear()
    if not steps:
        return
    for name, parameter in weights.masters.items():
        moments = {m: fitting(tensors, f"{m}.{name}", parameter).clone().to(parameter) for m in MOMENTS}
        optimiser.state[parameter] = {"step": torch.tensor(float(steps), device=parameter.device), **moments}


def fitting(tensors: Mapping[str, Tensor], name: str, like: Tensor) -> Tensor:
    """The tensor `name`, of the shape of `like`. Raises RunError if there is none."""
    found = tensors.get(name)
    if found is None or found.shape != like.shape:
        what = "missing" if found is None else f"of shape {tuple(found.shape)}, the model needs {tuple(like.shape)}"
        raise RunError(f"the checkpoint's tensor {name!r} is {what}", fix="resume with the recipe of that run")
    return found
