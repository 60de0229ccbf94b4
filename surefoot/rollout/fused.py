"""The decoder on the CPU: packed matrix products with one fused C kernel between each two.

The same network as `surefoot.models.decoder`, and tested equal to it, but no tensor is read or written more often than
it must be: residual sum and norm in one pass; rotary embedding, cache append and attention in one; sampling in one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from surefoot.models import Decoder
from surefoot.models.decoder import CausalAttention, Layer, rms_norm, rotate
from surefoot.rollout.cache import BLOCK, Prefix, Slots
from surefoot.rollout.native import Kernels, Shape
from surefoot.rollout.runner import flat_prompts
from surefoot.rollout.sampler import COLDEST, not_finite, sample
from surefoot.types import Sampling

Mix = Callable[[int, Tensor], Tensor]
"""Attention of a layer, from the fused qkv product [n, (heads + 2 kv_heads) D] to [n, heads D]."""


class FusedRunner:
    """A `Runner` of fused kernels. Packs a copy of the weights when it is first asked for something after `refresh`."""

    def __init__(self, decoder: Decoder, kernels: Kernels, rows: int) -> None:
        """`rows`: how many the products are packed for; any other number works too."""
        self.decoder, self.kernels, self.rows = decoder, kernels, rows
        self._packed: _Packed | None = None

    @staticmethod
    def fits(decoder: Decoder) -> bool:
        """Whether packed products and kernels can run this decoder: on the CPU, of even enough widths."""
        c, weights = decoder.config, decoder.embedding
        even = not any(width % 16 for width in (c.width, c.mlp, c.head_dim))
        return even and weights.device.type == "cpu" and _can_pack(weights.dtype)

    def refresh(self) -> None:
        """Give the packed copy up: it takes no memory while the weights change."""
        self._packed = None

    @property
    def packed(self) -> _Packed:
        """The weights as they were when they were first asked for."""
        if self._packed is None:
            self._packed = _Packed(self.decoder, self.rows)
        return self._packed

    def encode(self, prompts: Sequence[Sequence[int]]) -> list[Prefix]:
        """See Runner. Prefixes are laid out as `kernels.c` reads them."""
        c, like = self.decoder.config, self.decoder.embedding
        lengths = [len(prompt) for prompt in prompts]
        tokens, positions, ends = flat_prompts(prompts)
        kept = [like.new_zeros(c.layers, 2, c.kv_heads, -(-n // BLOCK) * BLOCK, c.head_dim) for n in lengths]
        hidden = self._hidden(tokens, _Encoding(self.decoder, lengths, positions, kept))  # [N, width]
        return [Prefix(kv, n, row) for kv, n, row in zip(kept, lengths, hidden[ends], strict=True)]

    def decode(self, tokens: Tensor, written: Tensor, prefixes: Sequence[Prefix], slots: Slots) -> Tensor:
        """See Runner."""
        return self._hidden(tokens, _Decoding(self.decoder, self.kernels, written, prefixes, slots))

    def draw(self, hidden: Tensor, uniform: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor]:
        """See Runner."""
        logits = self.packed.head(hidden)  # [n, vocab]
        if sampling.top_p < 1 or sampling.top_k:
            return sample(logits, uniform, sampling)
        tokens, logprobs = self.kernels.sample(logits, uniform, max(sampling.temperature, COLDEST))  # [n] each
        if bool((tokens < 0).any()):
            raise not_finite()
        return tokens, logprobs

    def _hidden(self, tokens: Tensor, mix: Mix) -> Tensor:
        eps, kernels = self.decoder.config.eps, self.kernels
        x = F.embedding(tokens, self.decoder.embedding)  # [n, width]
        delta: Tensor | None = None  # what the previous product adds to x; each norm adds it on its way
        for i, layer in enumerate(self.packed.layers):
            mixed = mix(i, layer.qkv(kernels.add_norm(x, delta, layer.attention_norm, eps)))  # [n, heads * D]
            normed = kernels.add_norm(x, layer.out(mixed), layer.mlp_norm, eps)  # [n, width]
            delta = layer.down(kernels.swiglu(layer.gate_up(normed)))  # [n, width]
        return kernels.add_norm(x, delta, self.decoder.norm, eps)


class _Product:
    """x @ weight.T + bias, the weight laid out in blocks once instead of anew for each product."""

    def __init__(self, weight: Tensor, bias: Tensor | None, rows: int) -> None:
        self.bias = bias
        self.packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), rows)

    def __call__(self, x: Tensor) -> Tensor:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")
        return product


class _PackedLayer:
    """The products of a layer, packed, and its norms."""

    def __init__(self, layer: Layer, rows: int) -> None:
        self.attention_norm, self.mlp_norm = layer.attention_norm, layer.mlp_norm
        self.qkv, self.out = _Product(layer.qkv, layer.qkv_bias, rows), _Product(layer.out, None, rows)
        self.gate_up, self.down = _Product(layer.gate_up, None, rows), _Product(layer.down, None, rows)


class _Packed:
    """All products of a decoder, packed."""

    def __init__(self, decoder: Decoder, rows: int) -> None:
        self.layers = [_PackedLayer(layer, rows) for layer in _layers(decoder)]
        self.head = _Product(decoder.head, None, rows)


def _can_pack(dtype: torch.dtype) -> bool:
    if dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return dtype == torch.float32 and bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]


def _layers(decoder: Decoder) -> list[Layer]:
    return [layer for layer in decoder.layers if isinstance(layer, Layer)]


class _Encoding:
    """Causal attention over flat prompts that keeps every layer's keys and values, packed."""

    def __init__(self, decoder: Decoder, lengths: list[int], positions: Tensor, kept: Sequence[Tensor]) -> None:
        self.config, self.layers, self.lengths, self.kept = decoder.config, _layers(decoder), lengths, kept
        self.attend = CausalAttention(lengths)
        self.cos, self.sin = decoder.angles(positions, decoder.embedding.dtype)

    def __call__(self, layer: int, qkv: Tensor) -> Tensor:
        c, norms = self.config, self.layers[layer]
        by_head = qkv.view(-1, c.heads + 2 * c.kv_heads, c.head_dim)  # [N, heads + 2 kv_heads, D]
        q, k, v = torch.split(by_head, [c.heads, c.kv_heads, c.kv_heads], dim=1)
        if norms.q_norm is not None and norms.k_norm is not None:
            q, k = rms_norm(q, norms.q_norm, c.eps), rms_norm(k, norms.k_norm, c.eps)
        q, k = rotate(q, self.cos, self.sin), rotate(k, self.cos, self.sin)
        by_prompt = (torch.split(flat.transpose(0, 1), self.lengths, dim=1) for flat in (k, v))
        for kv, keys, values in zip(self.kept, *by_prompt, strict=True):
            pack(kv[layer], keys, values)
        return self.attend(layer, q, k, v).reshape(len(qkv), -1)


def pack(kv: Tensor, keys: Tensor, values: Tensor) -> None:
    """Write keys and values [kv_heads, P, D] into kv [2, kv_heads, P rounded up, D] in the order of `kernels.c`."""
    _, heads, room, width = kv.shape
    count, pair = keys.shape[1], 4 // kv.element_size()
    padded = F.pad(keys, (0, 0, 0, room - count)).view(heads, room // BLOCK, BLOCK, width // pair, pair)
    kv[0].view(heads, room // BLOCK, width // pair, BLOCK, pair).copy_(padded.transpose(2, 3))
    padded = F.pad(values, (0, 0, 0, room - count)).view(heads, room // pair, pair, width)
    kv[1].view(heads, room // pair, width, pair).copy_(padded.transpose(2, 3))


class _Decoding:
    """One new token a row: the addresses that the attention kernel reads in every layer, gathered once a step."""

    def __init__(
        self, decoder: Decoder, kernels: Kernels, written: Tensor, prefixes: Sequence[Prefix], slots: Slots
    ) -> None:
        c = decoder.config
        self.kernels, self.written, self.slots = kernels, written, slots
        self.norms = [tuple(map(_address, (layer.q_norm, layer.k_norm))) for layer in _layers(decoder)]
        self.lengths = torch.tensor([prefix.length for prefix in prefixes])  # [n]
        self.addresses = torch.tensor([prefix.kv.data_ptr() for prefix in prefixes])  # [n]
        # Rounded as in the decoder, so that engine and learner turn by the very same angles.
        angles = decoder.angles(written + self.lengths, decoder.embedding.dtype)  # [n, 1, D] each
        self.cos, self.sin = (angle.float().contiguous() for angle in angles)
        strides = slots.kv.stride()
        self.shape = Shape(len(prefixes), c.heads, c.kv_heads, c.head_dim, 0, strides[2], strides[3], c.eps)

    def __call__(self, layer: int, qkv: Tensor) -> Tensor:
        own, shape = self.slots.kv[layer], self.shape  # [2, slots, kv_heads, room, D]
        mixed = qkv.new_empty(shape.n, shape.heads * shape.D)  # [n, heads * D]
        shape.layer = layer
        tensors = (self.cos, self.sin, own[0], own[1], self.written, self.addresses, self.lengths, mixed)
        self.kernels.attend(qkv.data_ptr(), *self.norms[layer], *map(_address, tensors), shape=shape)
        return mixed


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
