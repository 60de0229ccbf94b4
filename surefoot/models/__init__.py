"""The policy network: one decoder for engine and learner, and how models are found, loaded and saved."""

from surefoot.models.decoder import Attention, Decoder, DecoderConfig
from surefoot.models.library import LoadedModel, load_model
from surefoot.models.weights import save_model

__all__ = ["Attention", "Decoder", "DecoderConfig", "LoadedModel", "load_model", "save_model"]
