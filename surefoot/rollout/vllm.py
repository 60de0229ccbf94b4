"""vLLM as the engine of a run: a child process with its own interpreter, given new weights without a restart.

Token ids go in and come out. Weights go through a file in shared memory, are loaded by vLLM's own weight-transfer
interface, and after every update both sides score one fixed text: an update that did not arrive stops the run.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from surefoot.config import RolloutConfig
from surefoot.errors import ConfigError, ResourceError
from surefoot.models import Decoder, LoadedModel
from surefoot.models.chat import prompt_tokens
from surefoot.models.decoder import CausalAttention
from surefoot.models.weights import save_model, to_hf
from surefoot.rollout.child import Child, ChildFailed, ChildRefused
from surefoot.rollout.proof import Proof
from surefoot.rollout.requests import Request, requests, too_long
from surefoot.rollout.text import answer_text
from surefoot.types import Draw, Rollout, Sampling, Task, Turn

SERVER = Path(__file__).with_name("vllm_server.py")
PROBE = "Surefoot asks: what are 17 and 25 together, and is the answer odd or even? Say it in one short sentence."


class VllmEngine:
    """Samples in a child process from a copy of the learner's weights.

    The child is started by the first `rollout`, with the weights of that moment. If it dies or falls silent, `rollout`
    raises ChildFailed, and `refresh` or the next `rollout` starts it anew.
    """

    def __init__(
        self, model: LoadedModel, decoder: Decoder, config: RolloutConfig, *, longest_answer: int, version: int = 0
    ) -> None:
        """Look for vLLM, without starting it.

        Args:
            model: For its tokenizer and configuration.
            decoder: The learner's, in its compute type; read at every update.
            config: Of the recipe.
            longest_answer: Most tokens that a sample may write.
            version: Of the decoder's weights.

        Raises ConfigError where the interpreter is missing or has no vLLM.
        """
        self.model, self.decoder, self.config, self._version = model, decoder, config, version
        self.tokenizer, self.ends = model.tokenizer, frozenset(model.end_tokens)
        self.length = min(decoder.config.max_positions, config.max_prompt_tokens + longest_answer)
        self.python = config.vllm_python or sys.executable
        self.proof = Proof(tuple(self.tokenizer.encode(PROBE)), decoder.embedding.dtype)
        self.about: dict[str, Any] = {}
        """What the child said of itself: `vllm` (version) and `device`."""
        self._child: Child | None = None
        self._stack = ExitStack()
        _look_for_vllm(self.python)
        shared = Path("/dev/shm")
        base = shared if os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > 2 * _bytes(decoder) else None
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="surefoot-vllm-", dir=base)))

    @property
    def version(self) -> int:
        """Version of the weights that it samples from."""
        return self._version

    @property
    def child(self) -> Child | None:
        """The process with vLLM in it; None before the first `rollout`, and after it had to be ended."""
        return self._child

    def refresh(self, version: int) -> None:
        """Give vLLM the decoder's present weights, if they are of another version than its own, and prove it.

        Raises ResourceError where they did not arrive.
        """
        changed, self._version = version != self._version, version
        if self._child is None or not self._child.alive:
            return  # it will start with them
        if changed:
            self._send(self._child)
            self._prove(self._child)

    def refusal(self, task: Task) -> str:
        """Why nothing can be sampled for this task; empty if it can."""
        return too_long(len(prompt_tokens(self.tokenizer, task.messages)), self.config.max_prompt_tokens, self.length)

    def rest(self) -> None:
        """Nothing: vLLM keeps its memory between rollouts."""

    def rollout(self, draws: Sequence[Draw], sampling: Sampling) -> Iterator[Rollout]:
        """All samples of all draws, each given back as soon as it is finished.

        Raises:
            DataError: a prompt is too long; names the task.
            ResourceError: vLLM could not be started, or its weights are not the learner's.
            ChildFailed: it died or fell silent while sampling.
        """
        asked = requests(
            draws, self.tokenizer, max_prompt_tokens=self.config.max_prompt_tokens, max_positions=self.length
        )
        return self._run(asked, sampling)

    def close(self) -> None:
        """End the child and take its files away."""
        self._kill()
        self._stack.close()

    def _run(self, asked: Sequence[Request], sampling: Sampling) -> Iterator[Rollout]:
        if not asked:
            return
        child = self._started()
        wanted = [
            {"id": i, "prompt": list(request.group.prompt), "seed": request.seed, "limit": request.group.limit}
            for i, request in enumerate(asked)
        ]
        how = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "stop": list(sampling.stop),
            "stop_token_ids": sorted(self.ends),
        }
        try:
            for line in child.ask("sample", seconds=self.config.vllm_seconds, requests=wanted, sampling=how):
                if "done" in line:
                    yield self._rollout(asked[line["done"]["id"]], line["done"])
        except ChildRefused as refused:
            self._kill()
            raise ChildFailed(f"vLLM failed: {refused}") from refused

    def _rollout(self, request: Request, done: dict[str, Any]) -> Rollout:
        group, written, before = request.group, tuple(done["tokens"]), len(request.group.prompt)
        if done["version"] != self._version or done["reason"] not in ("stop", "length"):
            self._kill()
            raise ChildFailed(f"vLLM ended a sample by {done['reason']!r} with weights of version {done['version']}")
        return Rollout(
            task_id=group.task.id,
            domain=group.task.domain,
            sample=request.index,
            tokens=(*group.prompt, *written),
            mask=(False,) * before + (True,) * len(written),
            logprobs=(0.0,) * before + tuple(done["logprobs"]),
            text=answer_text(self.tokenizer, written, self.ends),
            stop="stop" if done["reason"] == "stop" else "length",
            policy_version=self._version,
            seed=request.seed,
            turns=(Turn("prompt", 0, before), Turn("assistant", before, before + len(written))),
        )

    # --------------------------------------------------------------------------------------------------- the child

    def _started(self) -> Child:
        if self._child is not None and self._child.alive:
            return self._child
        self._kill()
        folder = self._folder / "model"
        save_model(self.decoder, self.model.hf_config, self.tokenizer, folder)
        child = self._child = Child([self.python, "-P", str(SERVER)], self._environment())
        start = {
            "model": str(folder),
            "version": self._version,
            "dtype": str(self.decoder.embedding.dtype).removeprefix("torch."),
            "seqs": self.config.batch,
            "length": self.length,
            "gpu_share": self.config.vllm_gpu_share,
            "eager": False,
        }
        try:
            self.about = _end(child, "start", self.config.vllm_seconds, start)
        except (ChildFailed, ChildRefused) as failed:
            printed = "" if isinstance(failed, ChildFailed) else f"\n{child.said()}"
            self._kill()
            raise ResourceError(
                f"vLLM could not be started: {failed}{printed}",
                where="rollout.engine",
                fix="look at what it printed; a smaller rollout.batch, rollout.vllm_memory or rollout.vllm_gpu_share "
                "needs less memory",
            ) from failed
        shutil.rmtree(folder)
        self._prove(child)
        return child

    def _environment(self) -> dict[str, str]:
        threads = str(torch.get_num_threads())
        own = {
            "VLLM_CPU_KVCACHE_SPACE": str(self.config.vllm_memory),
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": threads,
        }
        return {**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **own}

    def _send(self, child: Child) -> None:
        """Weights to a file, the file to vLLM."""
        path = self._folder / f"version-{self._version}.safetensors"
        tensors = {name: tensor.to("cpu").contiguous() for name, tensor in to_hf(self.decoder)}
        save_file(tensors, path, metadata={"format": "pt", "version": str(self._version)})
        try:
            _end(child, "weights", self.config.vllm_seconds, {"path": str(path), "version": self._version})
        except (ChildFailed, ChildRefused) as failed:
            self._kill()
            raise ResourceError(
                f"the weights of version {self._version} did not reach vLLM: {failed}",
                where="rollout.engine",
                fix="what was checkpointed is safe: continue with --resume",
            ) from failed
        finally:
            path.unlink(missing_ok=True)

    def _prove(self, child: Child) -> None:
        """Hold vLLM's log-probs of a fixed text against the decoder's."""
        try:
            found = _end(child, "score", self.config.vllm_seconds, {"tokens": list(self.proof.tokens)})
        except (ChildFailed, ChildRefused) as failed:
            self._kill()
            raise ResourceError(
                f"vLLM could not score a text: {failed}",
                where="rollout.engine",
                fix="this vLLM cannot run this model here (on a CPU it knows few sizes of attention heads: 32, 64, 96, "
                '128, ...): take another model, or rollout.engine = "local"',
            ) from failed
        try:
            self.proof.check(found["logprobs"], learner_logprobs(self.decoder, self.proof.tokens), self._version)
        except ResourceError:
            self._kill()
            raise

    def _kill(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None


@torch.inference_mode()
def learner_logprobs(decoder: Decoder, tokens: Sequence[int]) -> list[float]:
    """Log-probs of all tokens but the first, given those before them."""
    ids = torch.tensor(list(tokens), device=decoder.embedding.device)  # [N]
    hidden = decoder(ids, torch.arange(len(ids), device=ids.device), CausalAttention([len(ids)]))  # [N, width]
    logits = (hidden[:-1] @ decoder.head.T).float()  # [N - 1, vocab]
    return [float(x) for x in logits.log_softmax(-1).gather(1, ids[1:, None])[:, 0]]


def _end(child: Child, do: str, seconds: float, said: dict[str, Any]) -> dict[str, Any]:
    *_, last = itertools.chain(child.ask(do, seconds=seconds, **said))
    end: dict[str, Any] = last["end"]
    return end


def _bytes(decoder: Decoder) -> int:
    return sum(p.numel() * p.element_size() for p in decoder.parameters())


def _look_for_vllm(python: str) -> None:
    look = "import importlib.util as u, sys; sys.exit(u.find_spec('vllm') is None)"
    try:
        found = subprocess.run([python, "-P", "-c", look], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        found = False
    if not found:
        raise ConfigError(
            f"there is no vLLM in {python}",
            where="rollout.vllm_python",
            fix="name the python of an environment with vllm (or vllm-cpu); see docs/vllm.md",
        )
