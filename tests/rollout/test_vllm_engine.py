"""vLLM as an engine, for real: needs .venv-vllm (`make vllm`) or SUREFOOT_VLLM_PYTHON, an interpreter with vllm."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from made_models import by_sample

from surefoot.config import RolloutConfig
from surefoot.errors import ConfigError, ResourceError
from surefoot.models import load_model
from surefoot.models.embedded import EMBEDDED, convert_embedded
from surefoot.models.library import cache_directory
from surefoot.rollout.child import ChildFailed, ChildRefused
from surefoot.rollout.vllm import VllmEngine
from surefoot.types import Draw, Rollout, Sampling, Task

MADE = Path(__file__).parents[2] / ".venv-vllm" / "bin" / "python"
PYTHON = os.environ.get("SUREFOOT_VLLM_PYTHON") or (str(MADE) if MADE.exists() else "")
needs_vllm = pytest.mark.skipif(not PYTHON, reason="no vLLM: `make vllm`, or set SUREFOOT_VLLM_PYTHON")
# Starting vLLM takes one minute, on a busy machine several; it is started three times here.
pytestmark = [pytest.mark.timeout(1800)]
DRAWS = [
    Draw(Task(f"t{i}", "d", ({"role": "user", "content": f"Say a word that begins with {c}."},)), 3, 12, (1, 2, 3))
    for i, c in enumerate("abc")
]
TOLERANCE = 5e-3
"""Nats; both sides compute in float32."""


@pytest.mark.parametrize("python", ["/nowhere/python", sys.executable])
def test_an_interpreter_without_vllm_is_refused_before_anything_is_loaded(python: str) -> None:
    model = load_model("tiny")
    with pytest.raises(ConfigError, match="no vLLM"):
        VllmEngine(model, model.decoder, RolloutConfig(engine="vllm", vllm_python=python), longest_answer=8)


@pytest.fixture(scope="module")
def engine() -> Iterator[VllmEngine]:
    model = load_model(EMBEDDED)
    model.decoder.float().requires_grad_(False)
    config = RolloutConfig(engine="vllm", vllm_python=PYTHON, vllm_memory=1, vllm_seconds=1500)
    made = VllmEngine(model, model.decoder, config, longest_answer=16)
    yield made
    made.close()


@pytest.fixture(scope="module")
def reference() -> Any:
    from transformers import AutoModelForCausalLM

    directory = convert_embedded(cache_directory() / "models")
    return AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()


@needs_vllm
@pytest.mark.slow
def test_samples_carry_the_logprobs_of_transformers_and_follow_new_weights(engine: VllmEngine, reference: Any) -> None:
    sampling = Sampling(temperature=0.7)
    first = _check(engine, reference, 0, sampling)
    process = engine.child
    assert {k: r.tokens for k, r in _check(engine, reference, 0, sampling).items()} == {
        k: r.tokens for k, r in first.items()
    }, "seeds decide"

    _scale(engine, reference, 1.01)
    engine.refresh(1)  # proves by itself that they arrived
    assert engine.child is process, "without a restart"
    # The prompts are those of before: keys and values of the old weights, were they kept, would show here.
    after = _check(engine, reference, 1, sampling)
    assert any(after[key].logprobs != first[key].logprobs for key in first)


@needs_vllm
@pytest.mark.slow
def test_a_stop_string_ends_a_sample(engine: VllmEngine) -> None:
    texts = [rollout.text for rollout in engine.rollout(DRAWS, Sampling(stop=("e",)))]
    assert all(text.count("e") <= 1 for text in texts) and any(text.endswith("e") for text in texts)


@needs_vllm
@pytest.mark.slow
def test_a_refused_update_leaves_the_old_weights_in_use(engine: VllmEngine, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    before = by_sample(list(engine.rollout(DRAWS[:1], Sampling())))
    child = engine.child
    assert child
    save_file({"model.norm.weight": torch.zeros(576)}, tmp_path / "w.safetensors", metadata={"version": "6"})
    with pytest.raises(ChildRefused, match="of version 6, not 7"):
        list(child.ask("weights", seconds=600, path=str(tmp_path / "w.safetensors"), version=7))
    after = by_sample(list(engine.rollout(DRAWS[:1], Sampling())))
    assert {k: r.tokens for k, r in before.items()} == {k: r.tokens for k, r in after.items()}


@needs_vllm
@pytest.mark.slow
def test_a_killed_child_is_told_and_started_anew_with_the_present_weights(engine: VllmEngine, reference: Any) -> None:
    list(engine.rollout(DRAWS[:1], Sampling()))
    child = engine.child
    assert child
    owed = engine.rollout([Draw(DRAWS[0].task, 8, 16)], Sampling())
    child.process.kill()
    with pytest.raises(ChildFailed, match="sample"):
        list(owed)
    assert engine.child is None or not engine.child.alive
    _scale(engine, reference, 1.01)
    engine.refresh(engine.version + 1)
    _check(engine, reference, engine.version, Sampling())
    assert engine.child is not child and engine.proof.gap < 1e-3


@needs_vllm
@pytest.mark.slow
def test_an_update_that_did_not_arrive_is_found_out(engine: VllmEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    list(engine.rollout(DRAWS[:1], Sampling()))
    child = engine.child
    assert child
    monkeypatch.setattr(engine, "_send", lambda child: None)
    with torch.no_grad():
        engine.decoder.norm.mul_(1.02)
    with pytest.raises(ResourceError, match="learner's weights of version"):
        engine.refresh(engine.version + 1)
    assert not child.alive


def _scale(engine: VllmEngine, reference: Any, factor: float) -> None:
    """The same change of the weights on both sides."""
    with torch.no_grad():
        for layer in reference.model.layers:
            layer.mlp.down_proj.weight.mul_(factor)
        for name, parameter in engine.decoder.named_parameters():
            if name.endswith("down"):
                parameter.mul_(factor)


def _check(engine: VllmEngine, reference: Any, version: int, sampling: Sampling) -> dict[tuple[str, int], Rollout]:
    """Sample, and hold every log-prob against transformers."""
    found = by_sample(list(engine.rollout(DRAWS, sampling)))
    assert len(found) == 9 and {r.policy_version for r in found.values()} == {version}
    for rollout in found.values():
        at = rollout.mask.index(True)
        assert rollout.stop == "length" or rollout.tokens[-1] in engine.ends
        assert not set(rollout.tokens[at:-1]) & engine.ends
        ids = torch.tensor([rollout.tokens])
        with torch.inference_mode():
            logits = reference(ids).logits[0, :-1].float() / sampling.temperature  # [T - 1, vocab]
        plain = logits.log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        assert rollout.logprobs[at:] == pytest.approx(plain[at - 1 :].tolist(), abs=TOLERANCE)
    return found
