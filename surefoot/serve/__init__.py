"""An OpenAI-compatible endpoint over the local engine: chat, completions with log-probs and echo, streaming, models."""

from surefoot.serve.app import make_app

__all__ = ["make_app"]
