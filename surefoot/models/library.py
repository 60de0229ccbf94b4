"""Finding a model by name: the embedded one, the tiny one, a local directory, or a hub id."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from surefoot.config import RopeConfig
from surefoot.errors import ModelError
from surefoot.models.decoder import Decoder
from surefoot.models.embedded import EMBEDDED, convert_embedded
from surefoot.models.rope import extend
from surefoot.models.tiny import build_tiny
from surefoot.models.weights import load_decoder


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A decoder (float32), its transformers config, its tokenizer, and where they came from."""

    decoder: Decoder
    hf_config: Any
    tokenizer: Any
    source: str

    @property
    def end_tokens(self) -> tuple[int, ...]:
        """Tokens that end the model's turn."""
        ids = self.hf_config.eos_token_id
        listed = ids if isinstance(ids, list | tuple) else [ids]
        return tuple(sorted({int(i) for i in (*listed, self.tokenizer.eos_token_id) if i is not None}))


def cache_directory() -> Path:
    """Where converted models are kept: $SUREFOOT_CACHE, else $XDG_CACHE_HOME/surefoot, else ~/.cache/surefoot."""
    if own := os.environ.get("SUREFOOT_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "surefoot"


def load_model(name: str, *, seed: int = 0, rope: RopeConfig | None = None) -> LoadedModel:
    """Load a model by what a recipe calls it.

    Args:
        name: `smollm2-135m-instruct`, `tiny`, a Hugging Face directory, or a hub id (needs the hub or its cache).
        seed: Of the random weights of `tiny`.
        rope: Extends the window.

    Raises:
        ModelError: not found, not supported, or without tokenizer or chat template.
    """
    model = _load(name, seed)
    return model if rope is None else replace(model, hf_config=extend(model.decoder, model.hf_config, rope))


def _load(name: str, seed: int) -> LoadedModel:
    if name == "tiny":
        return LoadedModel(*build_tiny(seed), source=name)
    if name == EMBEDDED:
        return _from_directory(convert_embedded(cache_directory() / "models"), name)
    if Path(name).expanduser().is_dir():
        return _from_directory(Path(name).expanduser(), name)
    return _from_directory(_from_hub(name), name)


def _from_directory(directory: Path, source: str) -> LoadedModel:
    decoder, hf_config = load_decoder(directory)
    try:
        tokenizer = AutoTokenizer.from_pretrained(directory)
    except (OSError, ValueError, TypeError, KeyError) as missing:
        raise ModelError(
            "the model has no tokenizer that transformers can load",
            where=str(directory),
            fix="copy tokenizer.json and tokenizer_config.json of the model into the directory",
        ) from missing
    if not getattr(tokenizer, "chat_template", None):
        raise ModelError(
            "the tokenizer has no chat template, so chat messages cannot be turned into tokens",
            where=str(directory),
            fix="add a chat_template.jinja file to the directory",
        )
    return LoadedModel(decoder, hf_config, tokenizer, source)


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    looks_like_path = name.startswith((".", "/", "~")) or name.count("/") > 1
    try:
        if looks_like_path:
            raise FileNotFoundError(name)
        return Path(snapshot_download(name, allow_patterns=["*.json", "*.safetensors", "*.jinja", "*.model", "*.txt"]))
    except (OSError, HfHubHTTPError, HFValidationError, LocalEntryNotFoundError) as failed:
        why = "no such directory" if looks_like_path else "neither a directory here nor to be had from the hub"
        raise ModelError(
            f"model {name!r}: {why}",
            fix=f"use {EMBEDDED!r} (embedded), 'tiny', or the path of a Hugging Face model directory",
        ) from failed
