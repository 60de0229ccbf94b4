"""The rules: what each finds, how bad that is, an example, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Rule:
    severity: Severity
    finds: str
    example: str
    remedy: str
    fixed: str = ""
    """What `--fix` does; empty if it does nothing."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding."""

    rule: str
    line: int
    """Of the file; 0 for the file as a whole."""
    id: str
    message: str
    evidence: str = ""


DROPS = "the row is left out"
RULES: Mapping[str, Rule] = {
    "malformed-row": Rule(
        "error",
        "a row that is no task: not JSON, or without messages, checks or grader",
        '{"messages": [], "grader": "number", "checks": {}}',
        "correct the row, or ingest the source again",
        DROPS,
    ),
    "missing-field": Rule(
        "error",
        "a task without a prompt, or without anything to check an answer by",
        '{"role": "user", "content": "  "}, or checks without an answer',
        "fill the field in the source",
        DROPS,
    ),
    "duplicate-id": Rule(
        "info",
        "an id that an earlier row has",
        'two rows with "id": "q17"',
        "name another column as id in the mapping, or none: then file and line are taken",
    ),
    "unreadable-answer": Rule(
        "error",
        "an answer that its own grader cannot read, so that no reply is ever graded",
        'grader "number" and the answer "about 12"; grader "choice" and an answer that is none of the options',
        "choose the right grader or answer_regex in the mapping, or correct the answer",
        DROPS,
    ),
    "reference-fails": Rule(
        "error",
        "the row's own reference answer or solution is graded wrong",
        "a solution whose tests expect 3 where it gives 4",
        "correct the solution or the tests",
        DROPS,
    ),
    "flaky-reference": Rule(
        "error",
        "the reference solution passes its tests in some runs and fails in others",
        "tests that depend on time, on the order of a set, or on random numbers without a seed",
        "make the tests independent of chance",
        DROPS,
    ),
    "trivial-passes": Rule(
        "error",
        "a solution that ignores the task passes all tests",
        "def f(*args): return True, where all tests expect True",
        "add tests with other answers (surefoot domains strengthen makes some)",
    ),
    "weak-tests": Rule(
        "warning",
        "half or more of the faulty versions of the reference solution (one operator, constant or condition changed) "
        "pass all tests; some of them may be equivalent",
        "`<` becomes `<=` and no test has equal values",
        "add tests (surefoot domains strengthen makes some)",
    ),
    "answer-leaked": Rule(
        "error",
        "the prompt states the answer as such, or shows the reference solution",
        '"... How many are left? Answer: 12", answer "12"',
        "cut the answer out of the prompt",
    ),
    "answer-in-prompt": Rule(
        "info",
        "a long answer stands in the prompt word for word; right where text is to be found, wrong elsewhere",
        "a reading task whose answer is a sentence of the text",
        "check that the task is meant so",
    ),
    "bad-choices": Rule(
        "warning",
        "two options read the same, or the answer names none of the options that the prompt lists",
        "(A) red (B) blue (C) red",
        "correct the options",
    ),
    "prompt-too-long": Rule(
        "warning",
        "the prompt has more tokens than the budget",
        "1,300 tokens where rollout.max_prompt_tokens is 1,024",
        "raise the budget in the recipe, or leave the row out (options.longest)",
    ),
    "encoding": Rule(
        "warning",
        "text that was decoded wrongly or holds what nobody can see: mojibake, U+FFFD, control characters, zero-width "
        "spaces, escaped HTML",
        'the dash in "donâ€™t"; "\\u0000"; "&lt;b&gt;"',
        "decode the source with its real encoding",
        "mojibake is decoded (ftfy); control and zero-width characters are removed; U+FFFD and HTML stay",
    ),
    "duplicate": Rule(
        "warning",
        "the text and the answer of an earlier row",
        "the same question twice",
        "surefoot data dedup",
        DROPS,
    ),
    "near-duplicate": Rule(
        "info",
        "nearly the text of an earlier row, with the same numerals and answer",
        '"his office" and "their office"',
        "surefoot data dedup",
    ),
    "contradiction": Rule(
        "error",
        "the text of an earlier row with another answer; at least one of them is wrong, or the text is ambiguous",
        '"Is 1 prime?" with "yes" and with "no"',
        "decide by hand which is right",
    ),
    "lopsided-answers": Rule(
        "warning",
        "one answer is right for most rows, or the right option stands in one place more often than chance allows "
        "(chi-square, p < 1e-6): a policy is paid for always giving it",
        'the answer is "A" in 80% of the rows',
        "shuffle the options, balance the rows, or set `chance` of the domain",
    ),
}  # fmt: skip
