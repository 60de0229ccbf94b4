"""Attention with shared prompts against the plain unshared computation, forward and gradients."""

from __future__ import annotations

import pytest
import torch
from learner_stand_ins import make_group, make_models
from torch import Tensor

from surefoot.learner import layers, tiles
from surefoot.learner.attention import PrefixAttention
from surefoot.learner.layers import Kept, embed, hidden_states
from surefoot.learner.packing import Pack, group_trees, lay_out
from surefoot.learner.weights import cast_copy
from surefoot.models.decoder import CausalAttention

KEPT: tuple[Kept, ...] = ("none", "layer", "offload")


def make_pack(groups: int = 3, longest: int = 12) -> Pack:
    trees = [
        t
        for i in range(groups)
        for t in group_trees(make_group([0.0] * 4, seed=i, prompt=1 + 20 * i, longest=longest), [0.0] * 4)
    ]
    return lay_out(trees)


def unshared(packed: Pack) -> tuple[Tensor, list[int]]:
    """Rows of the pack for every sample with its own copy of the prompt, and the lengths."""
    rows: list[int] = []
    lengths: list[int] = []
    for span in packed.spans:
        at = span.start + span.prompt
        prompt = list(range(span.start, at))
        for length in span.suffixes:
            rows += prompt + list(range(at, at + length))
            lengths.append(span.prompt + length)
            at += length
    return torch.tensor(rows), lengths


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 2e-5)])
@pytest.mark.parametrize("form", ["flash", "mixed", "plain"])
def test_equals_unshared_attention(
    dtype: torch.dtype, tolerance: float, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if form == "flash":
        monkeypatch.setattr(tiles, "FLASH_BACKWARD_KEYS", 0)
    if form == "plain":  # what other devices than the CPU use, in slices of 16 queries
        monkeypatch.setattr(tiles, "FLASH_DEVICES", ())
        monkeypatch.setattr(tiles, "SCORES_AT_ONCE", 1)
    packed = make_pack()
    generator = torch.Generator().manual_seed(0)
    count = len(packed.tokens)
    q, k, v, grad = (
        torch.randn(count, heads, 16, generator=generator, dtype=torch.float64).to(dtype) for heads in (4, 2, 2, 4)
    )
    shared = [x.clone().requires_grad_() for x in (q, k, v)]
    out = PrefixAttention(packed)(0, *shared)
    out.backward(grad)

    rows, lengths = unshared(packed)
    plain = [x.clone().requires_grad_() for x in (q, k, v)]
    wide = CausalAttention(lengths)(0, *(x[rows] for x in plain))
    # Copies of a prompt's rows are equal: count each once, by dividing its gradient among its copies.
    copies = torch.bincount(rows, minlength=count)[rows]
    wide.backward(grad[rows] / copies[:, None, None])
    torch.testing.assert_close(out[rows], wide, atol=tolerance, rtol=tolerance)
    for ours, theirs in zip(shared, plain, strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, atol=tolerance, rtol=tolerance)


def test_gradients_equal_finite_differences() -> None:
    packed = make_pack(groups=1, longest=4)
    generator = torch.Generator().manual_seed(0)
    inputs = [
        torch.randn(len(packed.tokens), h, 4, generator=generator, dtype=torch.float64, requires_grad=True)
        for h in (2, 1, 1)
    ]
    attend = PrefixAttention(packed)
    assert torch.autograd.gradcheck(lambda q, k, v: attend(0, q, k, v), inputs)


@pytest.mark.parametrize("form", ["plain", "fused"])
def test_decoder_equals_transformers(family: str, form: str) -> None:
    """Hidden states and gradients of a shared pack against transformers on every sample by itself."""
    decoder, plain = make_models(family)
    packed = make_pack()
    attend = PrefixAttention(packed)
    embedded = torch.nn.functional.embedding(packed.tokens, decoder.embedding)
    hidden = hidden_states(decoder, embedded, packed.positions, attend)
    if form == "plain":
        hidden = decoder(packed.tokens, packed.positions, attend)
    logits = hidden[packed.source] @ decoder.head.T
    picked = torch.log_softmax(logits, -1).gather(1, packed.targets[:, None])[:, 0]
    picked.sum().backward()

    total = torch.zeros(())
    target = 0
    for span in packed.spans:
        at = span.start + span.prompt
        for length in span.suffixes:
            tokens = torch.cat((packed.tokens[span.start : span.start + span.prompt], packed.tokens[at : at + length]))
            rows = torch.log_softmax(plain(tokens[None]).logits[0, span.prompt - 1 :], -1)
            own = rows.gather(1, packed.targets[target : target + length + 1, None])[:, 0]
            torch.testing.assert_close(picked[target : target + length + 1], own, atol=2e-5, rtol=2e-5)
            total = total + own.sum()
            target += length + 1
            at += length
    total.backward()
    theirs = {n: p.grad for n, p in plain.named_parameters()}
    torch.testing.assert_close(decoder.embedding.grad, theirs["model.embed_tokens.weight"], atol=1e-4, rtol=1e-3)
    down = decoder.layers[0].down.grad
    torch.testing.assert_close(down, theirs["model.layers.0.mlp.down_proj.weight"], atol=1e-4, rtol=1e-3)


def test_recomputed_activations_give_the_same_gradients() -> None:
    packed = make_pack()
    grads = []
    for kept in KEPT:
        decoder, _ = make_models("llama")
        embedded = embed(decoder, packed.tokens)
        hidden_states(decoder, embedded, packed.positions, PrefixAttention(packed), kept=kept).sum().backward()
        grads.append(decoder.layers[0].qkv.grad)
    for other in grads[1:]:
        torch.testing.assert_close(grads[0], other, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_fused_layers_give_the_very_numbers_of_the_decoder(family: str, dtype: torch.dtype) -> None:
    """Bit for bit in the forward pass: engine and learner must not drift apart."""
    decoder = cast_copy(make_models(family)[0], dtype)
    packed = make_pack()
    attend = PrefixAttention(packed)
    with torch.no_grad():
        ours = hidden_states(decoder, embed(decoder, packed.tokens), packed.positions, attend)
        assert torch.equal(ours, decoder(packed.tokens, packed.positions, attend))


def test_fused_layers_equal_finite_differences() -> None:
    generator = torch.Generator().manual_seed(0)
    x, w, angle = (torch.randn(*s, generator=generator, dtype=torch.float64) for s in ((3, 2, 4), (4,), (3, 1, 2)))
    cos, sin = (torch.cat((f, f), -1) for f in (angle.cos(), angle.sin()))
    leaves = (x.requires_grad_(), w.requires_grad_())
    assert torch.autograd.gradcheck(lambda a, b: layers._norm(a, b, 1e-5), leaves)
    assert torch.autograd.gradcheck(lambda a: layers._rotate(a, cos, sin), leaves[:1])
    assert torch.autograd.gradcheck(lambda a: layers._SwiGlu.apply(a.flatten(1)), leaves[:1])
