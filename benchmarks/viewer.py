"""Query times of `surefoot view` on 1,000,000 synthetic rollouts in the store's own layout (one Parquet file a step).

    python benchmarks/viewer.py [--quick]

Times are those of whole pages, in-process, without a socket or a browser. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from fastapi.testclient import TestClient

from surefoot.config import DomainConfig, Recipe
from surefoot.recipe import to_toml
from surefoot.store.rollouts import SCHEMA, rollout_file
from surefoot.types import Execution, dump
from surefoot.web.viewer import make_app

PER_STEP, SAMPLES, DOMAINS, TOKENS = 2000, 8, 20, 60
QUERIES = {
    "newest": "",
    "one domain": "domain=domain07",
    "wrong with a finding": "grade=wrong&finding=any",
    "timeouts of ten steps": "outcome=timeout&step_from=40&step_to=49",
    "reward, best first": "reward_from=0.5&order=best",
    "frequent word": "text=answer",
    "rare word": "text=needle",
    "word that is nowhere": "text=xylophone",
    "word in one domain, page 20": "text=answer&domain=domain07&page=20",
}


def write(folder: Path, steps: int) -> None:
    """The rollouts of so many steps."""
    rng = random.Random(0)
    words = [f"word{i}" for i in range(2000)] + ["answer", "because", "therefore", "the", "is"]
    texts = [" ".join(rng.choices(words, k=35)) for _ in range(4000)]
    outcomes = json.dumps([dump(Execution("ok"))]), json.dumps([dump(Execution("timeout"))])
    finding = json.dumps([{"kind": "test_literals", "severity": "warning", "evidence": "", "action": "flag"}])
    tokens, mask = list(range(TOKENS)), [False] * 20 + [True] * (TOKENS - 20)
    for step in range(1, steps + 1):
        rows = []
        for group in range(PER_STEP // SAMPLES):
            domain = f"domain{group % DOMAINS:02d}"
            task = f"{domain}/train/{step * 1000 + group}"
            messages = json.dumps([{"role": "user", "content": f"Question {step} {group}: {rng.choice(texts)}"}])
            for sample in range(SAMPLES):
                right = rng.random() < step / steps
                text = f"{rng.choice(texts)} {rng.random()}" + (" needle" if rng.random() < 2e-5 else "")
                rows.append(
                    {
                        "step": step, "domain": domain, "task_id": task, "sample": sample, "messages": messages,
                        "text": text, "grade": "right" if right else "wrong", "score": float(right),
                        "reward": float(right), "valid": True, "reason": "", "stop": "stop", "policy_version": step,
                        "seed": sample, "tokens": tokens, "mask": mask, "logprobs": [-0.5] * TOKENS, "checks": "[]",
                        "findings": finding if rng.random() < 0.01 else "[]",
                        "executions": outcomes[rng.random() < 0.02], "dimensions": "{}",
                    }
                )  # fmt: skip
        table = pa.Table.from_pylist(rows, schema=SCHEMA)
        pq.write_table(table, rollout_file(folder, step), compression="zstd")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="40,000 rollouts")
    quick = parser.parse_args().quick
    steps = 20 if quick else 500
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder)
        (run / "rollouts").mkdir()
        (run / "environment.json").write_text("{}")
        domains = tuple(DomainConfig(name=f"domain{i:02d}", source="code") for i in range(DOMAINS))
        (run / "config.toml").write_text(to_toml(Recipe(model="tiny", steps=steps, domains=domains)))
        write(run / "rollouts", steps)
        rollouts, began = steps * PER_STEP, time.perf_counter()
        with TestClient(make_app([run], run / "cache"), base_url="http://127.0.0.1") as client:
            while f"of {rollouts:,} rollouts" not in client.get("/run/0/rollouts?step_from=999999").text:
                time.sleep(0.2)
            indexed = time.perf_counter() - began
            print(f"{rollouts:,} rollouts in {steps} files, read once in {indexed:.1f} s", flush=True)
            times = {name: _time(client, f"/run/0/rollouts?{query}") for name, query in QUERIES.items()}
            times["a group"] = _time(client, f"/run/0/group/{steps // 2}?task=domain03/train/{steps // 2 * 1000 + 3}")
            times["counts for the charts"] = _time(client, "/run/0/counts")
    for name, taken in times.items():
        print(f"{name:<30} {taken * 1000:7.0f} ms")
    slowest = max(times.values())
    print(json.dumps({"rollouts": rollouts, "index_s": indexed, "slowest_s": slowest, "quick": quick}))


def _time(client: TestClient, address: str, repeats: int = 5) -> float:
    """Median seconds of a page."""
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        answer = client.get(address)
        taken.append(time.perf_counter() - began)
        assert answer.status_code == 200, answer.text
    return statistics.median(taken)


if __name__ == "__main__":
    main()
