from __future__ import annotations

import pytest
import torch
from made_models import FAMILIES, MadeModel, make_model

from surefoot.models import load_model
from surefoot.models.library import LoadedModel


@pytest.fixture(scope="session", params=FAMILIES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MadeModel:
    """A random model of each family, as transformers and as Surefoot load it from the same directory."""
    return make_model(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def tiny() -> LoadedModel:
    """The tiny model with weights large enough that its choices differ clearly."""
    model = load_model("tiny")
    with torch.no_grad():
        for parameter in model.decoder.parameters():
            if parameter.ndim == 2:
                parameter.mul_(4.0)
    model.decoder.requires_grad_(False)
    return model
