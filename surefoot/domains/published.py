"""Public data sets as they are published, known by their columns."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.domains.formats import ANSWERS, CODE_REQUEST, PROMPTS, Format, Row
from surefoot.domains.program_tests import ProgramFormat
from surefoot.domains.written import ChatFormat, TaskFormat
from surefoot.errors import DataError
from surefoot.rewards.grid import written
from surefoot.rewards.ifeval import KINDS
from surefoot.rewards.text import chosen
from surefoot.types import Message

CALLS_REQUEST = """Answer with calls of the functions below and nothing else, in this form:
[name(parameter=value, parameter=value), name(parameter=value)]

Functions, as JSON:
"""
_OPTION = re.compile(r"^\(([A-Z])\) (.+)$", re.MULTILINE)
UNLISTED = "*"
"""Letter of a right answer that is none of the options which the question lists."""
GRID_REQUEST = "Each input grid becomes its output grid by one rule. Find the rule in the examples."


@dataclass(frozen=True)
class InstructionFormat(Format):
    """IFEval's rows: a prompt and the instructions in it, which are all that is checked."""

    def checks(self, row: Row, place: str) -> dict[str, Any]:
        names, given = row["instruction_id_list"], row["kwargs"]
        if not isinstance(names, list) or not isinstance(given, list) or not names or len(names) != len(given):
            raise DataError("instruction_id_list and kwargs must be lists of one length", where=place)
        if strange := [name for name in names if name not in KINDS]:
            raise DataError(f"there is no instruction {strange[0]!r}", where=place, fix=f"kinds: {', '.join(KINDS)}")
        return {"instruction_id_list": names, "kwargs": given}

    def reference(self, row: Row, checks: Mapping[str, Any]) -> None:
        return None


@dataclass(frozen=True)
class CallFormat(Format):
    """BFCL's rows: a conversation, the functions that may be called, and (of the file of answers) wanted calls."""

    def messages(self, row: Row, place: str) -> tuple[Message, ...]:
        turns = row["question"]
        if not isinstance(turns, list) or len(turns) != 1 or not isinstance(turns[0], list):
            raise DataError("only conversations of one turn can be graded", where=place, fix='options.missing = "skip"')
        chat = super().messages({**row, "question": turns[0]}, place)
        given = [m["content"] for m in chat if m["role"] == "system"]
        rest = [m for m in chat if m["role"] != "system"]
        text = "\n\n".join([*given, CALLS_REQUEST + "\n".join(json.dumps(f) for f in row["function"])])
        return ({"role": "system", "content": text}, *rest)

    def checks(self, row: Row, place: str) -> dict[str, Any]:
        if not isinstance(row.get("ground_truth"), list):
            raise DataError(
                "the row has no ground_truth",
                where=place,
                fix='BFCL keeps it in a second file: options.answers_file = "PATH"',
            )
        return {"functions": row["function"], "ground_truth": row["ground_truth"]}

    def reference(self, row: Row, checks: Mapping[str, Any]) -> str | None:
        calls = [(name, given) for entry in checks["ground_truth"] for name, given in entry.items()]
        if any(not values for _, given in calls for values in given.values()):
            return None  # nothing is accepted for a parameter, nor its absence: two published rows
        told = [(name, {k: _first(v) for k, v in given.items() if v != [""]}) for name, given in calls]
        if all(key.isidentifier() and not keyword.iskeyword(key) for _, given in told for key in given):
            return "[" + ", ".join(f"{n}({', '.join(f'{k}={v!r}' for k, v in g.items())})" for n, g in told) + "]"
        return json.dumps([{"name": name, "arguments": given} for name, given in told])


@dataclass(frozen=True)
class GridFormat(Format):
    """ARC's rows: pairs of grids as examples, and inputs whose outputs are asked for; all must be right."""

    def messages(self, row: Row, place: str) -> tuple[Message, ...]:
        lines = [GRID_REQUEST]
        for number, pair in enumerate(row["train"], 1):
            lines.append(f"Example {number}\nInput:\n{written(pair['input'])}\nOutput:\n{written(pair['output'])}")
        asked = [pair["input"] for pair in row["test"]]
        lines += [f"Input:\n{written(grid)}" for grid in asked]
        several = "" if len(asked) == 1 else f" There are {len(asked)}: leave a blank line between two outputs."
        lines.append(f"Reply with the output of the last input and nothing else.{several}")
        if len(asked) > 1:
            lines[-1] = f"Reply with the outputs of the last {len(asked)} inputs and nothing else.{several}"
        return ({"role": "user", "content": "\n\n".join(lines)},)

    def checks(self, row: Row, place: str) -> dict[str, Any]:
        try:
            grids = [[[int(cell) for cell in line] for line in pair["output"]] for pair in row["test"]]
            digits = all(0 <= cell <= 9 for grid in grids for line in grid for cell in line)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"a test pair has no output grid: {error}", where=place) from None
        if not digits or not grids:
            raise DataError("a grid must have digits only", where=place)
        return {"grids": grids}

    def reference(self, row: Row, checks: Mapping[str, Any]) -> str:
        return "\n\n".join(written(grid) for grid in checks["grids"])


@dataclass(frozen=True)
class BenchFormat(Format):
    """BIG-Bench Hard's rows (Suzgun et al., arXiv 2210.09261): options, where there are any, stand in the question."""

    def checks(self, row: Row, place: str) -> dict[str, Any]:
        checks = super().checks(row, place)
        if self.grader != "choice":
            return checks
        options = dict(_OPTION.findall(row[self.prompt]))
        if chosen(checks["answer"], options) is None:
            options[UNLISTED] = checks["answer"]  # three published rows have options split at a comma
        return checks | {"choices": options}


def recognise(row: Row) -> Format | None:
    """The format of a public data set, by its columns, or of a file with the usual names; None for neither."""
    keys = row.keys()
    if {"messages", "checks", "grader"} <= keys:
        return TaskFormat(
            "surefoot", "messages", id="id", grader=str(row["grader"]), extract=row.get("extract"),
            max_new_tokens=row.get("max_new_tokens"),
        )  # fmt: skip
    if {"prompt", "instruction_id_list", "kwargs"} <= keys:
        return InstructionFormat("IFEval", "prompt", id="key", grader="ifeval", max_new_tokens=512)
    if {"question", "function"} <= keys and isinstance(row["function"], list):
        return CallFormat("BFCL", id="id", grader="function_calls", max_new_tokens=192)
    if {"train", "test"} <= keys and isinstance(row["train"], list):
        return GridFormat("ARC", "test", id="id", grader="grid", max_new_tokens=1024)
    if {"question", "input_output"} <= keys:
        return ProgramFormat("APPS", id="problem_id", solution="solutions", grader="code", max_new_tokens=1024)
    if {"question_content", "public_test_cases"} <= keys:
        return ProgramFormat("LiveCodeBench", "question_content", id="question_id", grader="code", max_new_tokens=1024)
    if {"prompt", "test", "entry_point"} <= keys:
        solution = "canonical_solution" if "canonical_solution" in keys else None
        name = next((k for k in ("task_id", "name") if k in keys), None)
        return Format(
            "HumanEval", "prompt", None, id=name, tests="test", entry_point="entry_point", solution=solution,
            request=CODE_REQUEST, grader="code", max_new_tokens=384,
        )  # fmt: skip
    if {"text", "code", "test_list"} <= keys:
        return Format(
            "MBPP", "text", None, id="task_id", tests="test_list", setup="test_setup_code", solution="code",
            grader="code", max_new_tokens=256,
        )  # fmt: skip
    if {"question", "answer"} <= keys and isinstance(row["answer"], str) and re.search(r"#### ", row["answer"]):
        return Format("GSM8K", answer_regex=r"####\s*(.+)", grader="number", max_new_tokens=256)
    if {"problem", "answer"} <= keys:
        return Format(
            "MATH", "problem", id="unique_id" if "unique_id" in keys else None, grader="math", max_new_tokens=512
        )
    if keys == {"input", "target"} and isinstance(row["target"], str):
        return BenchFormat("BBH", "input", "target", grader=_kind(row["target"]), extract="last_line")
    if {"prompt", "answer"} <= keys and {"info", "task"} & keys:
        return Format("verifiers", "prompt", keep=("info", "task"))
    if "answer" not in keys and ("messages" in keys or "conversations" in keys):
        return ChatFormat("chat", "messages" if "messages" in keys else "conversations", max_new_tokens=256)
    prompt = next((k for k in (*PROMPTS, "messages") if k in keys), None)
    answer = next((k for k in ANSWERS if k in keys), None)
    if prompt is None or answer is None:
        return None
    return Format("question and answer", prompt, answer, id="id" if "id" in keys else None)


def _kind(target: str) -> str:
    """The grader for answers such as this one."""
    if re.fullmatch(r"\([A-Z]\)", target.strip()):
        return "choice"
    return "number" if re.fullmatch(r"-?\d+", target.strip()) else "exact"


def _first(values: Any) -> Any:
    """The first accepted value of a parameter; of nested objects, that of each key."""
    return _plain(next((value for value in values if value != ""), ""))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _first(v) if isinstance(v, list) else v for k, v in value.items() if v not in ("", [""])}
    return [_plain(item) for item in value] if isinstance(value, list) else value
