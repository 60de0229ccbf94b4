"""The C kernels of `kernels.c`: compiled once for this machine with its own C compiler, then loaded from the cache.

Without a compiler (or with SUREFOOT_NATIVE=0) the engine runs on plain torch operations: same results up to rounding,
but slower.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from surefoot.models.library import cache_directory

SOURCE = Path(__file__).with_name("kernels.c")
FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-w")
VARIANTS: dict[torch.dtype, tuple[str, ...]] = {torch.bfloat16: (), torch.float32: ("-DSINGLE",)}


class Shape(ctypes.Structure):
    """The struct of the same name in `kernels.c`."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("n", "heads", "kv_heads", "D", "layer", "slot_stride", "head_stride")),
        ("eps", ctypes.c_float),
    )


@cache
def kernels(dtype: torch.dtype) -> Kernels | None:
    """The kernels of this machine for bfloat16 or float32; None where switched off or impossible to compile."""
    if os.environ.get("SUREFOOT_NATIVE", "1") == "0" or dtype not in VARIANTS:
        return None
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    try:
        return Kernels(ctypes.CDLL(str(_library(compiler, VARIANTS[dtype]))))
    except (OSError, subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None


def _library(compiler: str, variant: tuple[str, ...]) -> Path:
    """Path of the compiled kernels; the name says for which source, which type and which CPU."""
    about = SOURCE.read_bytes() + " ".join((*FLAGS, *variant, compiler, platform.machine(), _cpu_features())).encode()
    directory = cache_directory() / "kernels"
    target = directory / f"rollout-{hashlib.sha256(about).hexdigest()[:16]}.so"
    if not target.is_file():
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            made = Path(scratch) / "kernels.so"
            command = [compiler, *FLAGS, *variant, str(SOURCE), "-o", str(made), "-lm"]
            subprocess.run(command, check=True, capture_output=True, timeout=120)
            made.replace(target)  # in one step, so that no other process loads half a file
    return target


def _cpu_features() -> str:
    """What `-march=native` depends on: a cache directory may be shared by unlike machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


class Kernels:
    """Typed calls into the compiled library, on contiguous CPU tensors of the type they were compiled for."""

    def __init__(self, library: ctypes.CDLL) -> None:
        pointer, count, real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
        self._add_norm, self._swiglu = library.add_norm, library.swiglu
        self._attend, self._sample = library.attend, library.sample
        self._add_norm.argtypes = [pointer] * 4 + [count, count, real]
        self._swiglu.argtypes = [pointer, pointer, count, count]
        self._attend.argtypes = [pointer] * 11 + [ctypes.POINTER(Shape)]
        self._attend.restype = ctypes.c_int
        self._sample.argtypes = [pointer] * 4 + [count, count, real]
        for function in (self._add_norm, self._swiglu, self._sample):
            function.restype = None

    def add_norm(self, x: Tensor, delta: Tensor | None, weight: Tensor, eps: float) -> Tensor:
        """x [n, width] += delta, in place; returns the RMS norm of the sum."""
        out = torch.empty_like(x)  # [n, width]
        more = None if delta is None else delta.data_ptr()
        self._add_norm(x.data_ptr(), more, weight.data_ptr(), out.data_ptr(), *x.shape, eps)
        return out

    def swiglu(self, gate_up: Tensor) -> Tensor:
        """[n, 2 * width] -> silu(gate) * up [n, width]."""
        n, double = gate_up.shape
        out = gate_up.new_empty(n, double // 2)  # [n, width]
        self._swiglu(gate_up.data_ptr(), out.data_ptr(), n, double // 2)
        return out

    def attend(self, *arguments: int | None, shape: Shape) -> None:
        """See `kernels.c`; eleven addresses. Raises MemoryError if there is none left for scratch."""
        if self._attend(*arguments, ctypes.byref(shape)):
            raise MemoryError("no memory for attention scores")

    def sample(self, logits: Tensor, uniform: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        """Token ids [n] int64 (-1 where the logits are not finite) and log-probabilities [n], as sampler.sample."""
        n, vocab = logits.shape
        tokens = torch.empty(n, dtype=torch.int64)
        logprobs = torch.zeros(n)
        pointers = (t.data_ptr() for t in (logits, uniform, tokens, logprobs))
        self._sample(*pointers, n, vocab, temperature)
        return tokens, logprobs
