"""`surefoot export`: plain transformers loads the result, adapters are merged, the card says what was done."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from surefoot import api
from surefoot.cli import app
from surefoot.config import Recipe
from surefoot.errors import RunError

RECIPE = {
    "model": "tiny",
    "steps": 2,
    "domains": [{"name": "code", "source": "instructions"}],
    "rollout": {"prompts": 2, "samples": 2, "max_new_tokens": 8},
    "learner": {"lora": {"rank": 2}, "lr": 0.01},
    "evaluate": {"tasks": 2, "samples": 2},
    "sandbox": {"level": "landlock"},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("exported") / "run"
    api.train(Recipe.model_validate(RECIPE), directory)
    return directory


def test_transformers_loads_it_and_it_says_what_the_checkpoint_says(run, tmp_path):
    said = CliRunner().invoke(app, ["export", str(run), "--to", str(tmp_path / "model")])
    assert said.exit_code == 0, said.output
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert {"model.safetensors", "config.json", "README.md"} <= names
    assert not {"optimizer.safetensors", "state.json", "adapter"} & names
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    assert tokenizer.chat_template
    saved = load_file(run / "checkpoints" / "step-000002" / "model.safetensors")
    for name, tensor in model.state_dict().items():
        if name in saved:
            assert torch.equal(tensor, saved[name])
    card = (tmp_path / "model" / "README.md").read_text()
    assert "| code | instructions |" in card and "## Held-out tasks" in card and "pass@1" in card


def test_the_best_needs_scores(run, tmp_path):
    said = CliRunner().invoke(app, ["export", str(run), "--to", str(tmp_path / "model"), "--best"])
    assert isinstance(said.exception, RunError) and "keep_best" in said.exception.fix
    assert not (tmp_path / "model").exists()


def test_what_is_there_is_not_overwritten(run, tmp_path):
    assert isinstance(CliRunner().invoke(app, ["export", str(run), "--to", str(tmp_path)]).exception, Exception)
    assert list(tmp_path.iterdir()) == []
