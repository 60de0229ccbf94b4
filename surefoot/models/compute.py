"""Where a model computes and in which type."""

from __future__ import annotations

import torch

DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}


def pick_device(wanted: str) -> torch.device:
    """The torch device for a recipe's `device`."""
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(wanted)


def pick_dtype(wanted: str, device: torch.device) -> torch.dtype:
    """The compute type for `learner.dtype`; `auto` is bfloat16 where the device multiplies it faster than float32."""
    if wanted == "auto":
        return torch.bfloat16 if _multiplies_bfloat16(device) else torch.float32
    return DTYPES[wanted]


def _multiplies_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and (torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported())
