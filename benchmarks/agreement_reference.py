"""lm_eval's side of `agreement.py`: reads cases as JSON from stdin, judges each with lm_eval's own code.

Needs `pip install 'lm_eval[ifeval]'` and nothing of Surefoot.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from lm_eval.api.metrics import exact_match_hf_evaluate
from lm_eval.filters.extraction import RegexFilter
from lm_eval.tasks.ifeval import instructions_registry

# As in lm_eval/tasks/gsm8k/gsm8k.yaml.
STRICT = RegexFilter(r"#### (\-?[0-9\.\,]+)")
FLEXIBLE = RegexFilter(r"(-?[$0-9.,]{2,})|(-?[0-9]+)", group_select=-1)
IGNORED = [",", "\\$", "(?s).*#### ", "\\.$"]


def gsm8k(case: dict[str, Any]) -> dict[str, bool]:
    """Strict and flexible match of a reply."""

    def matches(rule: RegexFilter) -> bool:
        taken = next(iter(rule.apply([[case["text"]]], [{}])))[0]
        found = exact_match_hf_evaluate([taken], [case["answer"]], regexes_to_ignore=IGNORED, ignore_case=True)
        return bool(found["exact_match"])

    return {"strict": matches(STRICT), "flexible": matches(FLEXIBLE)}


def ifeval(case: dict[str, Any]) -> dict[str, bool | None]:
    """Whether one instruction is followed, strictly; None where its checker needs data that is not installed."""
    instruction = instructions_registry.INSTRUCTION_DICT[case["id"]](case["id"])
    instruction.build_description(**{key: value for key, value in case["kwargs"].items() if value})
    arguments = instruction.get_instruction_args()
    if arguments and "prompt" in arguments:
        instruction.build_description(prompt=case["prompt"])
    try:
        return {"followed": bool(case["text"].strip() and instruction.check_following(case["text"]))}
    except LookupError:  # nltk's sentence model
        return {"followed": None}


if __name__ == "__main__":
    print(json.dumps([{"gsm8k": gsm8k, "ifeval": ifeval}[case["kind"]](case) for case in json.load(sys.stdin)]))
