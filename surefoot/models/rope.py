"""Longer windows by other rotary frequencies: transformers' rope settings, chosen by a recipe's `[rope]`.

The frequencies are the decoder's, and the decoder is what engine and learner share, so neither can turn by other angles
than the other. The settings go into the model's configuration: a saved checkpoint has the longer window by itself.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from surefoot.config import RopeConfig
from surefoot.errors import ModelError

LLAMA31 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
"""Which wavelengths `llama3` scales, in windows, as Llama 3.1 was published."""


def frequencies(hf_config: Any, head_dim: int) -> tuple[Tensor, float]:
    """Inverse frequencies [D/2] and the scale of cos and sin that a transformers configuration asks for.

    `dynamic` frequencies depend on the length; here they are those of the whole window, for a key turned by one set of
    angles cannot be held against a query turned by another, neither in a cache nor in a shared prompt.
    """
    settings = hf_config.rope_parameters
    kind = settings.get("rope_type", "default")
    if kind == "default":
        steps = torch.arange(0, head_dim, 2, dtype=torch.int64).float()
        return 1.0 / float(settings["rope_theta"]) ** (steps / head_dim), 1.0
    if kind not in ROPE_INIT_FUNCTIONS:
        raise ModelError(f"rotary embeddings of type {kind!r} are not supported", fix="linear, dynamic, yarn, llama3")
    length = {"seq_len": window(hf_config)} if kind == "dynamic" else {}
    found, scale = ROPE_INIT_FUNCTIONS[kind](hf_config, torch.device("cpu"), **length)
    return found, float(scale)


def window(hf_config: Any) -> int:
    """Positions that the model is meant for, tokens."""
    settings, most = hf_config.rope_parameters or {}, int(hf_config.max_position_embeddings)
    if settings.get("rope_type") == "dynamic":  # transformers keeps the original window in the configuration
        return round(most * float(settings["factor"]))
    return most


def extended(hf_config: Any, rope: RopeConfig) -> Any:
    """A copy of a transformers configuration whose window is `rope.factor` times as long.

    A configuration that already has these settings (a checkpoint's) is given back as it is.

    Raises:
        ModelError: the model's frequencies are scaled in another way already.
    """
    if rope.type == "none":
        return hf_config
    old = dict(hf_config.rope_parameters)
    kind = old.get("rope_type", "default")
    if kind == rope.type and float(old.get("factor", 1.0)) == rope.factor:
        return hf_config
    if kind != "default":
        raise ModelError(
            f"the model's rotary embedding is scaled already ({kind}, factor {old.get('factor')})",
            where="rope",
            fix='leave [rope] out: the window of the model itself is used (type = "none")',
        )
    original = int(hf_config.max_position_embeddings)
    settings = old | {"rope_type": rope.type, "factor": rope.factor}
    if rope.type in ("yarn", "llama3"):
        settings["original_max_position_embeddings"] = original
    if rope.type == "llama3":
        settings |= LLAMA31
    changed = copy.deepcopy(hf_config)
    changed.rope_parameters = settings
    if rope.type != "dynamic":
        changed.max_position_embeddings = round(original * rope.factor)
    return changed


def extend(decoder: Any, hf_config: Any, rope: RopeConfig) -> Any:
    """Give a decoder, in place, the window that `rope` asks for; returns the configuration that says so."""
    changed = extended(hf_config, rope)
    if changed is not hf_config:
        found, decoder.rope_scale = frequencies(changed, decoder.config.head_dim)
        decoder.inverse_frequencies = found.float().to(decoder.inverse_frequencies.device)
        decoder.config = replace(decoder.config, max_positions=window(changed))
    return changed
