"""A Llama-type decoder over flat tokens, whose attention is a parameter.

The engine and the learner run the very same layers; they differ only in the `Attention` they pass in (a KV cache while
sampling, packed sequences with shared prompts while learning). Tokens are always flat, `[N]`: there is no batch axis
and hence no padding. Covers the Llama, SmolLM, Mistral, Qwen2 and Qwen3 families.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from surefoot.errors import ModelError
from surefoot.models.rope import window

FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "smollm3")


class Attention(Protocol):
    """Causal attention over whatever the caller keeps: the only part of the decoder that knows about sequences."""

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """q [N, heads, D], k and v [N, kv_heads, D], positions already rotated in -> [N, heads, D]."""
        ...


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """Shape of a decoder, taken from a transformers configuration."""

    family: str
    vocab: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp: int
    eps: float
    tied: bool
    qkv_bias: bool
    qk_norm: bool
    max_positions: int

    @classmethod
    def from_hf(cls, config: Any) -> DecoderConfig:
        """Read a transformers config. Raises ModelError for a family or feature that is not supported."""
        family = str(config.model_type)
        if family not in FAMILIES or getattr(config, "no_rope_layers", None):
            raise ModelError(
                f"models of type {family!r} are not supported", fix=f"supported types: {', '.join(FAMILIES)}"
            )
        windowed = getattr(config, "sliding_window", None) and getattr(
            config, "use_sliding_window", family == "mistral"
        )
        if windowed:
            raise ModelError("sliding-window attention is not supported", where=family)
        heads = int(config.num_attention_heads)
        return cls(
            family=family,
            vocab=int(config.vocab_size),
            width=int(config.hidden_size),
            layers=int(config.num_hidden_layers),
            heads=heads,
            kv_heads=int(getattr(config, "num_key_value_heads", None) or heads),
            head_dim=int(getattr(config, "head_dim", None) or config.hidden_size // heads),
            mlp=int(config.intermediate_size),
            eps=float(config.rms_norm_eps),
            tied=bool(config.tie_word_embeddings),
            qkv_bias=family == "qwen2" or bool(getattr(config, "attention_bias", False)),
            qk_norm=family == "qwen3",
            max_positions=window(config),
        )


class Layer(nn.Module):
    """Pre-norm attention and SwiGLU, with the q, k, v and the gate, up products fused into one matrix each."""

    def __init__(self, c: DecoderConfig, index: int) -> None:
        super().__init__()
        self.index, self.c = index, c
        self.attention_norm = nn.Parameter(torch.ones(c.width))
        self.qkv = nn.Parameter(torch.empty((c.heads + 2 * c.kv_heads) * c.head_dim, c.width))
        self.qkv_bias = nn.Parameter(torch.zeros(self.qkv.shape[0])) if c.qkv_bias else None
        self.q_norm = nn.Parameter(torch.ones(c.head_dim)) if c.qk_norm else None
        self.k_norm = nn.Parameter(torch.ones(c.head_dim)) if c.qk_norm else None
        self.out = nn.Parameter(torch.empty(c.width, c.heads * c.head_dim))
        self.mlp_norm = nn.Parameter(torch.ones(c.width))
        self.gate_up = nn.Parameter(torch.empty(2 * c.mlp, c.width))
        self.down = nn.Parameter(torch.empty(c.width, c.mlp))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, attend: Attention) -> Tensor:
        """x [N, width], cos and sin [N, 1, D] -> [N, width]."""
        c = self.c
        qkv = F.linear(rms_norm(x, self.attention_norm, c.eps), self.qkv, self.qkv_bias)
        by_head = qkv.view(-1, c.heads + 2 * c.kv_heads, c.head_dim)
        q, k, v = torch.split(by_head, [c.heads, c.kv_heads, c.kv_heads], dim=1)
        if self.q_norm is not None and self.k_norm is not None:
            q, k = rms_norm(q, self.q_norm, c.eps), rms_norm(k, self.k_norm, c.eps)
        mixed = attend(self.index, rotate(q, cos, sin), rotate(k, cos, sin), v)  # [N, heads, D]
        x = x + F.linear(mixed.reshape(-1, c.heads * c.head_dim), self.out)
        gate, up = F.linear(rms_norm(x, self.mlp_norm, c.eps), self.gate_up).chunk(2, dim=-1)  # [N, mlp] each
        return x + F.linear(F.silu(gate) * up, self.down)


class Decoder(nn.Module):
    """Token ids and positions in, last hidden states out; the output head is left to the caller.

    The head product is the largest of all (vocabulary-wide), and both callers avoid most of it: the engine needs it
    for one position a sequence, the learner only for tokens that the policy wrote.
    """

    inverse_frequencies: Tensor

    def __init__(self, config: DecoderConfig, inverse_frequencies: Tensor, rope_scale: float = 1.0) -> None:
        """`inverse_frequencies` [D/2] and `rope_scale` as transformers' rope settings give them."""
        super().__init__()
        self.config, self.rope_scale = config, rope_scale
        self.embedding = nn.Parameter(torch.empty(config.vocab, config.width))
        self.layers = nn.ModuleList(Layer(config, i) for i in range(config.layers))
        self.norm = nn.Parameter(torch.ones(config.width))
        self.untied_head = None if config.tied else nn.Parameter(torch.empty(config.vocab, config.width))
        self.register_buffer("inverse_frequencies", inverse_frequencies.float(), persistent=False)

    @property
    def head(self) -> Tensor:
        """Output head [vocab, width]: logits are `hidden @ head.T`."""
        return self.embedding if self.untied_head is None else self.untied_head

    def angles(self, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """cos and sin of the rotary embedding for positions [N] -> two [N, 1, D], computed in float32."""
        half = positions.float()[:, None] * self.inverse_frequencies  # [N, D/2]
        full = torch.cat((half, half), dim=-1)[:, None, :]  # [N, 1, D]
        return (full.cos() * self.rope_scale).to(dtype), (full.sin() * self.rope_scale).to(dtype)

    def forward(self, tokens: Tensor, positions: Tensor, attend: Attention, *, recompute: bool = False) -> Tensor:
        """Hidden states after the final norm.

        Args:
            tokens: Token ids [N], int64.
            positions: Position of each token within its own sequence [N], int64.
            attend: Mixes the tokens of each sequence.
            recompute: Keep only each layer's input for the backward pass (activation checkpointing).

        Returns:
            [N, width] in the parameters' dtype.
        """
        x = F.embedding(tokens, self.embedding)  # [N, width]
        cos, sin = self.angles(positions, x.dtype)
        for layer in self.layers:
            inputs = (x, cos, sin, attend)
            x = checkpoint(layer, *inputs, use_reentrant=False) if recompute else layer(*inputs)
        return rms_norm(x, self.norm, self.config.eps)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Root-mean-square norm over the last axis (arXiv 1910.07467), statistics in float32 as transformers does."""
    wide = x.float()
    wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return wide.to(x.dtype) * weight


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding (arXiv 2104.09864), halves layout: x [N, heads, D], cos and sin [N, 1, D]."""
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-right, left), dim=-1) * sin


class CausalAttention:
    """Plain causal attention over independent sequences laid end to end: the reference for every faster one."""

    def __init__(self, lengths: list[int]) -> None:
        self.lengths = lengths

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        parts = zip(*(torch.split(t.transpose(0, 1), self.lengths, dim=1) for t in (q, k, v)), strict=True)
        mixed = [
            F.scaled_dot_product_attention(a[None], b[None], c[None], is_causal=True, enable_gqa=True)[0]
            for a, b, c in parts
        ]  # [heads, T, D] each
        return torch.cat(mixed, dim=1).transpose(0, 1)  # [N, heads, D]
