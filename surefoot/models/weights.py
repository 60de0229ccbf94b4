"""Between Hugging Face checkpoints (q, k, v apart) and the decoder's fused parameters, both ways, without pickles."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from transformers import AutoConfig

from surefoot.errors import ModelError
from surefoot.models.decoder import Decoder, DecoderConfig
from surefoot.models.rope import frequencies

FUSED = {
    "qkv": ("self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"),
    "qkv_bias": ("self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"),
    "gate_up": ("mlp.gate_proj.weight", "mlp.up_proj.weight"),
    "q_norm": ("self_attn.q_norm.weight",),
    "k_norm": ("self_attn.k_norm.weight",),
    "out": ("self_attn.o_proj.weight",),
    "down": ("mlp.down_proj.weight",),
    "attention_norm": ("input_layernorm.weight",),
    "mlp_norm": ("post_attention_layernorm.weight",),
}
"""Our parameter of a layer -> the Hugging Face tensors it is made of, stacked along the first axis."""


def hf_names(name: str) -> tuple[str, ...]:
    """Hugging Face names of the tensors that make up our parameter `name`."""
    if name.startswith("layers."):
        _, index, short = name.split(".")
        return tuple(f"model.layers.{index}.{part}" for part in FUSED[short])
    return {"embedding": ("model.embed_tokens.weight",), "norm": ("model.norm.weight",)}.get(name, ("lm_head.weight",))


def hf_sizes(c: DecoderConfig) -> dict[str, list[int]]:
    """Rows of each Hugging Face tensor in our fused parameters, by the parameter's short name."""
    qkv = [c.heads * c.head_dim, c.kv_heads * c.head_dim, c.kv_heads * c.head_dim]
    return {"qkv": qkv, "qkv_bias": qkv, "gate_up": [c.mlp, c.mlp]}


def build_decoder(hf_config: Any) -> Decoder:
    """An empty float32 decoder of the shape of a transformers config."""
    config = DecoderConfig.from_hf(hf_config)
    return Decoder(config, *frequencies(hf_config, config.head_dim))


def load_decoder(directory: Path) -> tuple[Decoder, Any]:
    """Decoder (float32) and transformers config from a Hugging Face directory.

    Raises:
        ModelError: config or weights missing, a tensor missing or of the wrong shape.
    """
    if not (directory / "config.json").is_file():
        raise ModelError("no config.json", where=str(directory), fix="give a Hugging Face model directory")
    hf_config = AutoConfig.from_pretrained(directory)
    decoder = build_decoder(hf_config)
    tensors = _TensorFiles(directory)
    with torch.no_grad():
        for name, parameter in decoder.named_parameters():
            parts = [tensors.read(part) for part in hf_names(name)]
            whole = torch.cat([p.float() for p in parts]) if len(parts) > 1 else parts[0].float()
            if whole.shape != parameter.shape:
                raise ModelError(
                    f"{hf_names(name)} have shape {tuple(whole.shape)}, the config says {tuple(parameter.shape)}",
                    where=str(directory),
                )
            parameter.copy_(whole)
    return decoder, hf_config


def to_hf(decoder: Decoder) -> Iterator[tuple[str, Tensor]]:
    """The decoder's weights under their Hugging Face names (views, not copies)."""
    sizes = hf_sizes(decoder.config)
    for name, parameter in decoder.named_parameters():
        parts = hf_names(name)
        value = parameter.detach()
        split = torch.split(value, sizes[name.rsplit(".", 1)[-1]]) if len(parts) > 1 else (value,)
        yield from zip(parts, split, strict=True)


def save_model(
    decoder: Decoder, hf_config: Any, tokenizer: Any, directory: Path, dtype: torch.dtype | None = None
) -> None:
    """Write a directory that plain `transformers` loads: weights, config, tokenizer, chat template.

    `dtype` None keeps the decoder's own. Not atomic: callers write into a temporary directory and rename it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    kept = dtype or decoder.embedding.dtype
    tensors = {name: tensor.to("cpu", kept).contiguous() for name, tensor in to_hf(decoder)}
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    hf_config.dtype = kept
    hf_config.architectures = hf_config.architectures or [
        f"{type(hf_config).__name__.removesuffix('Config')}ForCausalLM"
    ]
    hf_config.save_pretrained(directory)
    tokenizer.save_pretrained(directory)


class _TensorFiles:
    """Random access to the tensors of one or several safetensors files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        index = directory / "model.safetensors.index.json"
        single = directory / "model.safetensors"
        if index.is_file():
            self.files: dict[str, str] = json.loads(index.read_text())["weight_map"]
        elif single.is_file():
            with safe_open(single, framework="pt") as file:
                self.files = dict.fromkeys(file.keys(), single.name)
        else:
            raise ModelError(
                "no model.safetensors",
                where=str(directory),
                fix="save the model with save_pretrained(..., safe_serialization=True)",
            )

    def read(self, name: str) -> Tensor:
        if name not in self.files:
            raise ModelError(f"tensor {name!r} is missing", where=str(self.directory))
        with safe_open(self.directory / self.files[name], framework="pt") as file:
            tensor: Tensor = file.get_tensor(name)
        return tensor
