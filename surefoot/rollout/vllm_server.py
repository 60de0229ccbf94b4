"""vLLM in a process of its own: JSON lines in, JSON lines out. Run by path under an interpreter that has vllm.

Nothing of Surefoot is imported here, so that interpreter needs vllm alone and may have any version of torch. A request
is `{"call": n, "do": ..., ...}`; every answer carries its number. A request ends with `{"call": n, "end": {...}}` or
`{"call": n, "error": "..."}`; before that a sample request gives one line for each finished sample, and a sign of life
every few seconds while the engine steps.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TextIO

TRANSPORT = "surefoot_safetensors"
"""Name under which the file transport is known to vLLM's weight-transfer interface."""
BEAT = 5.0
"""Seconds between signs of life."""
PARENT_DIED = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


def main() -> None:
    """Answer requests until stdin ends."""
    answers = _private_stdout()
    _die_with_parent()
    server = Server(answers)
    for line in sys.stdin:
        request = json.loads(line)
        call = request.pop("call")
        try:
            answers.write(json.dumps({"call": call, "end": server.answer(call, **request)}) + "\n")
        except BrokenPipeError:
            return
        except Exception as failed:
            answers.write(json.dumps({"call": call, "error": f"{type(failed).__name__}: {failed}"}) + "\n")
            _print_trace()


class Server:
    """One `vllm.LLM` with the version of its weights."""

    def __init__(self, answers: TextIO) -> None:
        self.answers = answers
        self.llm: Any = None
        self.version = -1

    def answer(self, call: int, *, do: str, **said: Any) -> dict[str, Any]:
        """Do one request and return what stands in its last line."""
        if do == "start":
            return self.start(**said)
        if do == "sample":
            return self.sample(call, **said)
        if do == "weights":
            return self.weights(**said)
        if do == "score":
            return {"logprobs": self.score(**said), "version": self.version}
        raise ValueError(f"unknown request {do!r}")

    def start(
        self, *, model: str, version: int, dtype: str, seqs: int, length: int, gpu_share: float, eager: bool
    ) -> dict[str, Any]:
        """Load a Hugging Face directory."""
        import vllm
        from vllm.config import WeightTransferConfig
        from vllm.platforms import current_platform

        register_transport()
        settings: dict[str, Any] = {} if current_platform.is_cpu() else {"gpu_memory_utilization": gpu_share}
        self.llm = vllm.LLM(
            model,
            dtype=dtype,
            max_num_seqs=seqs,
            max_model_len=length,
            enforce_eager=eager or current_platform.is_cpu(),
            enable_prefix_caching=True,
            logprobs_mode="processed_logprobs",  # of the distribution that is sampled from
            weight_transfer_config=WeightTransferConfig(backend=TRANSPORT),
            **settings,
        )
        self.llm.init_weight_transfer_engine({"init_info": {}})
        self.version = version
        return {"vllm": vllm.__version__, "device": str(current_platform.device_type)}

    def weights(self, *, path: str, version: int) -> dict[str, Any]:
        """Load new weights from a safetensors file whose metadata names the version; then forget what came of the old.

        Should loading fail half-way, the process is of no more use: nothing is sampled until the next load succeeds.
        """
        before, self.version = self.version, -1
        try:
            checked_version(path, version)
        except ValueError:
            self.version = before
            raise
        self.llm.start_weight_update()
        self.llm.update_weights({"update_info": {"path": path, "version": version}})
        self.llm.finish_weight_update()
        if not self.llm.reset_prefix_cache():
            raise RuntimeError("the prefix cache of the old weights could not be dropped")
        self.version = version
        return {"version": version}

    def sample(self, call: int, *, requests: list[dict[str, Any]], sampling: dict[str, Any]) -> dict[str, Any]:
        """Sample all requests together; each is given out when it ends."""
        from vllm import SamplingParams

        self._ready()
        engine = self.llm.llm_engine
        for request in requests:
            params = SamplingParams(
                **sampling,
                seed=request["seed"],
                max_tokens=request["limit"],
                logprobs=0,
                detokenize=bool(sampling.get("stop")),
            )
            engine.add_request(f"{call}-{request['id']}", {"prompt_token_ids": request["prompt"]}, params)
        spoken = time.monotonic()
        try:
            while engine.has_unfinished_requests():
                for output in engine.step():
                    if output.finished:
                        self._say(call, done=self._finished(output))
                        spoken = time.monotonic()
                if time.monotonic() - spoken > BEAT:
                    self._say(call, alive=True)
                    spoken = time.monotonic()
        except BaseException:
            engine.abort_request([f"{call}-{request['id']}" for request in requests])
            raise
        return {"version": self.version}

    def _finished(self, output: Any) -> dict[str, Any]:
        written = output.outputs[0]
        tokens = list(written.token_ids)
        logprobs = [at[token].logprob for token, at in zip(tokens, written.logprobs, strict=True)]
        return {
            "id": int(output.request_id.split("-")[1]),
            "tokens": tokens,
            "logprobs": logprobs,
            "reason": written.finish_reason,
            "version": self.version,
        }

    def score(self, *, tokens: list[int]) -> list[float]:
        """Log-probs of all tokens but the first, given those before them."""
        from vllm import SamplingParams

        self._ready()
        params = SamplingParams(max_tokens=1, temperature=1.0, prompt_logprobs=0, detokenize=False)
        (output,) = self.llm.generate([{"prompt_token_ids": tokens}], params, use_tqdm=False)
        return [at[token].logprob for token, at in zip(tokens[1:], output.prompt_logprobs[1:], strict=True)]

    def _ready(self) -> None:
        if self.version < 0:
            raise RuntimeError("the weights are half loaded: nothing can be sampled from them")

    def _say(self, call: int, **said: Any) -> None:
        self.answers.write(json.dumps({"call": call, **said}) + "\n")


def checked_version(path: str, version: int) -> None:
    """Raises ValueError where a weight file's metadata does not name `version`."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        found = (file.metadata() or {}).get("version")
    if found != str(version):
        raise ValueError(f"the weights at {path} are of version {found}, not {version}")


def register_transport() -> None:
    """Teach vLLM's weight-transfer interface to read safetensors files."""
    from safetensors import safe_open
    from vllm.distributed.weight_transfer import base
    from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory

    @dataclass
    class Nothing(base.WeightTransferInitInfo):  # type: ignore[misc, unused-ignore]
        """A file needs no rendezvous."""

    @dataclass
    class Update(base.WeightTransferUpdateInfo):  # type: ignore[misc, unused-ignore]
        """Where the tensors lie, and which version they are."""

        path: str
        version: int

    class FileTransport(base.WeightTransferEngine):  # type: ignore[misc, unused-ignore]
        """Loads tensors under their Hugging Face names through the model's own loader, layer by layer."""

        init_info_cls, update_info_cls = Nothing, Update

        def init_transfer_engine(self, init_info: Any) -> None:
            """Nothing to prepare."""

        def start_weight_update(self) -> None:
            from vllm.model_executor.model_loader.reload import initialize_layerwise_reload

            initialize_layerwise_reload(self.model)

        def update_weights(self, update_info: dict[str, Any]) -> None:
            """The base class's, without waiting for an accelerator that a CPU build has not."""
            self.receive_weights(self.parse_update_info(update_info))

        def receive_weights(self, update_info: Any) -> None:
            checked_version(update_info.path, update_info.version)
            self.model.load_weights(_tensors(update_info.path))

        def finish_weight_update(self) -> None:
            import torch
            from vllm.model_executor.model_loader.reload import finalize_layerwise_reload

            finalize_layerwise_reload(self.model, self.model_config)
            if torch.cuda.is_available():
                torch.cuda.synchronize()

        def shutdown(self) -> None:
            """Nothing is held."""

    def _tensors(path: str) -> Iterator[tuple[str, Any]]:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - not a dict
                yield name, file.get_tensor(name)

    WeightTransferEngineFactory.register_engine(TRANSPORT, FileTransport)


def _private_stdout() -> TextIO:
    """The real stdout for answers alone; whatever libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


def _die_with_parent() -> None:
    """Where the kernel can (Linux), be killed when the driver ends, however it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PARENT_DIED, signal.SIGKILL, 0, 0, 0)


def _print_trace() -> None:
    import traceback

    traceback.print_exc(file=sys.stderr)


if __name__ == "__main__":
    main()
