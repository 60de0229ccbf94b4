"""LoRA and DoRA: train a small product beside each frozen matrix, sample from the two merged.

    W' = W + s B A                          LoRA (arXiv 2106.09685), s = alpha / rank
    W' = m (W + s B A) / |W + s B A|        DoRA (arXiv 2402.09353), m one number a row, the norm taken as constant

Decoder and engine see only the merged W', so they run at full speed and know nothing of adapters. A backward pass gives
the gradient of W'; the chain rule takes it to A, B and m at once, and the large gradient is dropped. What is saved is
what `peft` reads.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from surefoot.config import LoraConfig
from surefoot.learner.weights import MixedWeights, fitting
from surefoot.models import Decoder
from surefoot.models.weights import hf_names, hf_sizes


class Adapter(nn.Module):
    """What is trained beside one Hugging Face matrix W [out, in], a part of the rows of one of the decoder's."""

    def __init__(self, base: Tensor, rows: slice, rank: int, alpha: float, dora: bool, generator: torch.Generator):
        super().__init__()
        self.base, self.rows, self.scale = base, rows, alpha / rank
        out, width = base.shape
        bound = 1 / math.sqrt(width)  # as peft starts A: Kaiming's uniform with a = sqrt(5)
        a = (torch.rand(rank, width, generator=generator) * 2 - 1) * bound
        self.a = nn.Parameter(a.to(base.device))  # [rank, in]
        self.b = nn.Parameter(base.new_zeros(out, rank))  # [out, rank]
        self.magnitude = nn.Parameter(base.norm(dim=1)) if dora else None  # [out]

    @torch.no_grad()
    def merged(self) -> Tensor:
        """W' [out, in]."""
        whole = torch.addmm(self.base, self.b, self.a, alpha=self.scale)
        return whole if self.magnitude is None else whole.mul_((self.magnitude / whole.norm(dim=1))[:, None])

    @torch.no_grad()
    def gradients(self, slope: Tensor) -> dict[str, Tensor]:
        """Those of `a`, `b` and `magnitude`, from that of W' [out, in]."""
        found = {}
        if self.magnitude is not None:
            whole = torch.addmm(self.base, self.b, self.a, alpha=self.scale)
            norm = whole.norm(dim=1)  # [out]
            found["magnitude"] = (slope * whole).sum(1) / norm
            slope = slope * (self.magnitude / norm)[:, None]
        return found | {"a": self.scale * (self.b.T @ slope), "b": self.scale * (slope @ self.a.T)}


class AdapterWeights(MixedWeights):
    """Masters are the adapters; the decoder's matrices are what results from them."""

    def __init__(
        self, decoder: Decoder, config: LoraConfig, dtype: torch.dtype, device: torch.device, seed: int
    ) -> None:
        super().__init__(decoder, dtype, device)
        self.config = config
        self.whole = dict(self.master.named_parameters())
        self.adapters: dict[str, dict[str, Adapter]] = {}
        """By the decoder's parameter, then by the Hugging Face module."""
        generator = torch.Generator().manual_seed(seed)
        sizes = hf_sizes(decoder.config)
        for name, parameter in self.whole.items():
            start, inside = 0, {}
            for module, size in zip(hf_names(name), sizes.get(name.rsplit(".", 1)[-1], [len(parameter)]), strict=True):
                rows, start = slice(start, start + size), start + size
                if parameter.ndim == 2 and module.split(".")[-2] in config.targets:
                    base = parameter.detach()[rows].clone()
                    made = Adapter(base, rows, config.rank, config.alpha, config.dora, generator)
                    inside[module.removesuffix(".weight")] = made
            if inside:
                self.adapters[name] = inside
        self.masters = {
            f"{module}.{part}": value for module, a in self._modules() for part, value in a.named_parameters()
        }
        self.head = None
        for name, parameter in self.compute.named_parameters():
            parameter.requires_grad_(name in self.adapters)

    def _modules(self) -> Iterator[tuple[str, Adapter]]:
        for inside in self.adapters.values():
            yield from inside.items()

    def add_gradient(self, name: str, part: Tensor) -> None:
        """Take the gradient of a whole matrix to its adapters'."""
        for module, adapter in self.adapters.get(name, {}).items():
            for leaf, slope in adapter.gradients(part[adapter.rows].float()).items():
                super().add_gradient(f"{module}.{leaf}", slope)

    @torch.no_grad()
    def publish(self) -> None:
        """Merge into the float32 weights, and round those into the compute copy."""
        for name, inside in self.adapters.items():
            for adapter in inside.values():
                self.whole[name][adapter.rows] = adapter.merged()
        super().publish()

    def tensors(self) -> dict[str, Tensor]:
        """The adapters and the matrices that they stand beside: W' alone would not tell one from the other."""
        base = {f"base.{module}": adapter.base for module, adapter in self._modules()}
        return base | {f"adapter.{name}": value.detach() for name, value in self.masters.items()}

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what `tensors` gave and merge."""
        for name, value in self.tensors().items():
            value.copy_(fitting(tensors, name, value))
        self.publish()

    def save_adapter(self, directory: Path, base_model: str) -> None:
        """Write `adapter_config.json` and `adapter_model.safetensors`, as `peft` reads them."""
        directory.mkdir(parents=True, exist_ok=True)
        names = {"a": "lora_A.weight", "b": "lora_B.weight", "magnitude": "lora_magnitude_vector"}
        tensors = {
            f"base_model.model.{module}.{names[part]}": value.detach().cpu().contiguous()
            for module, adapter in self._modules()
            for part, value in adapter.named_parameters()
        }
        save_file(tensors, directory / "adapter_model.safetensors", metadata={"format": "pt"})
        c = self.config
        settings = {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": base_model,
            "r": c.rank,
            "lora_alpha": c.alpha,
            "lora_dropout": 0.0,
            "use_dora": c.dora,
            "target_modules": list(c.targets),
            "bias": "none",
            "inference_mode": True,
        }
        (directory / "adapter_config.json").write_text(json.dumps(settings, indent=2) + "\n")
