"""Logs that inspect_ai reads and its viewer shows (`inspect view --log-dir DIR`): one a domain, as JSON.

The format is inspect_ai's log schema, version 2 (https://inspect.aisi.org.uk/eval-logs.html). Samples of a task are its
epochs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from surefoot.evaluate.files import write_atomically
from surefoot.evaluate.metric import PASS_1, Metric, estimate
from surefoot.evaluate.records import DomainRecord, Evaluation, Sample, TaskRecord

SCORER = "surefoot"
VALUES = {"right": "C", "wrong": "I", "ungradable": "N"}
"""inspect_ai's signs: correct, incorrect, no answer."""


def write_inspect_logs(evaluation: Evaluation, directory: Path, *, now: datetime | None = None) -> list[Path]:
    """Write one log for each domain; gives their paths.

    Args:
        now: Time of the log; the present by default.
    """
    moment = (now or datetime.now(UTC)).replace(microsecond=0)
    paths = []
    for domain in evaluation.domains:
        name = f"{moment.strftime('%Y-%m-%dT%H-%M-%S+00-00')}_{_name(domain)}_{_id(evaluation, domain)}.json"
        write_atomically(directory / name, json.dumps(_log(evaluation, domain, moment), allow_nan=False))
        paths.append(directory / name)
    return paths


def _log(evaluation: Evaluation, domain: DomainRecord, moment: datetime) -> dict[str, Any]:
    created, identity = moment.isoformat(), _id(evaluation, domain)
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": identity,
            "run_id": identity,
            "created": created,
            "task": _name(domain),
            "task_id": identity,
            "task_version": 0,
            "task_attribs": {},
            "task_args": {},
            "dataset": {
                "name": domain.name,
                "samples": len(domain.tasks),
                "sample_ids": [task.id for task in domain.tasks],
                "shuffled": False,
            },
            "model": f"surefoot/{evaluation.model}",
            "model_args": {},
            "config": {"epochs": evaluation.samples},
            "packages": {"surefoot": version("surefoot")},
        },
        "plan": {
            "name": "plan",
            "steps": [{"solver": "generate", "params": {}}],
            "config": _sampling(evaluation, domain),
        },
        "results": {
            "total_samples": domain.drawn,
            "completed_samples": domain.drawn - domain.ungradable,
            "scores": [{"name": SCORER, "scorer": SCORER, "params": {}, "metrics": _metrics(evaluation, domain)}],
        },
        "stats": {"started_at": created, "completed_at": created, "model_usage": {}},
        "samples": [_sample(evaluation, task, sample) for task in domain.tasks for sample in task.samples],
    }


def _metrics(evaluation: Evaluation, domain: DomainRecord) -> dict[str, Any]:
    k = evaluation.samples
    wanted = [PASS_1] + ([Metric("pass@", k), Metric("pass^", k), Metric("flip")] if k > 1 else [])
    found = {str(metric): estimate(metric, domain) for metric in wanted}
    return {
        name: {"name": name, "value": value.value, "params": {}, "metadata": {"low": value.low, "high": value.high}}
        for name, value in found.items()
        if value.known
    }


def _sample(evaluation: Evaluation, task: TaskRecord, sample: Sample) -> dict[str, Any]:
    reply = {"role": "assistant", "content": sample.text, "source": "generate", "model": evaluation.model}
    usage = {
        "input_tokens": sample.context,
        "output_tokens": sample.tokens,
        "total_tokens": sample.context + sample.tokens,
    }
    stop = "max_tokens" if sample.truncated else "stop"
    return {
        "id": task.id,
        "epoch": sample.sample + 1,
        "input": [{"role": m["role"], "content": m["content"]} for m in task.messages],
        "target": task.reference or "",
        "messages": [*({"role": m["role"], "content": m["content"]} for m in task.messages), reply],
        "output": {
            "model": evaluation.model,
            "choices": [{"message": reply, "stop_reason": stop}],
            "usage": usage,
        },
        "scores": {
            SCORER: {
                "value": VALUES[sample.grade],
                "answer": sample.answer,
                "explanation": sample.reason or None,
                "metadata": {"score": sample.score, "mode": sample.mode},
            }
        },
        "metadata": {"seed": sample.seed},
        "store": {},
        "events": [],
        "model_usage": {f"surefoot/{evaluation.model}": usage},
        "attachments": {},
    }


def _sampling(evaluation: Evaluation, domain: DomainRecord) -> dict[str, Any]:
    s = evaluation.sampling
    told: dict[str, Any] = {"max_tokens": domain.max_new_tokens, "temperature": s.temperature, "top_p": s.top_p}
    return told | ({"top_k": s.top_k} if s.top_k else {}) | ({"stop_seqs": list(s.stop)} if s.stop else {})


def _name(domain: DomainRecord) -> str:
    return "".join(c if c.isalnum() else "-" for c in domain.name)


def _id(evaluation: Evaluation, domain: DomainRecord) -> str:
    parts: Sequence[object] = (evaluation.model, evaluation.label, evaluation.seed, evaluation.sampling, domain.name)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:22]
