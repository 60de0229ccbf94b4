"""The reference answer written a little differently: what a grader that is fair to models must still accept."""

from __future__ import annotations

import re
from collections.abc import Iterator

from surefoot.domains.audit.probes import Probe
from surefoot.rewards.extract import extract
from surefoot.types import Task

PLAIN_NUMBER = re.compile(r"-?\d+")


def variants(task: Task, how: str) -> Iterator[Probe]:
    """Variants that change nothing that any domain asks for (`variant`), and such as are a matter of taste (`taste`).

    Args:
        how: How answers are extracted: what may stand around an answer depends on it.
    """
    answer = task.metadata.get("answer")
    if answer is None or not str(answer).strip():
        return
    text = str(answer)
    strict = {"trailing newline": f"{text}\n", "blank line before": f"\n{text}", **_around(text, how)}
    if how != "code":
        strict["trailing spaces"] = f"{text}  "
    yield from (Probe("variant", name, written) for name, written in strict.items())
    if how in ("whole", "first_line", "last_line") and not task.constraints and "\n" not in text:
        yield from (Probe("taste", name, written) for name, written in _dressed(text).items() if written != text)


def _around(text: str, how: str) -> dict[str, str]:
    if how == "first_line" and "\n" not in text:
        return {"an explanation below": f"{text}\n\nThis follows from the question."}
    if how == "last_line" and "\n" not in text:
        return {"an explanation above": f"Let me think step by step.\n\n{text}"}
    if how == "last_number" and PLAIN_NUMBER.fullmatch(text):
        return {"in a sentence": f"The answer is {text}.", "bold": f"**{text}**", "decimal": f"{text}.0"}
    if how == "tag":
        spaced = text.replace("<answer>", "<answer> ").replace("</answer>", " </answer>")
        return {"spaces in the tag": spaced, "prose around": f"Let me think.\n{text}\nThat is all."}
    if how == "boxed":
        return {"prose around": f"Thus the result is ${text}$, as asked."}
    if how == "code":
        return _code(text)
    return {}


def _code(answer: str) -> dict[str, str]:
    text = extract(answer, "code") or answer  # some references are in a fence already
    return {
        "fenced": f"```\n{text}\n```",
        "fenced as python": f"```python\n{text}\n```",
        "prose around the fence": f"Here is the function:\n\n```python\n{text}\n```\n\nIt does what you asked.",
        "a comment": f"{text}\n# done\n",
        "an import that is not needed": f"import math\n\n\n{text}",
        "main guard": f'{text}\n\n\nif __name__ == "__main__":\n    print("ready")\n',
    }


def _dressed(text: str) -> dict[str, str]:
    found = {
        "lower case": text.lower(),
        "upper case": text.upper(),
        "full stop": f"{text}.",
        "bold": f"**{text}**",
        "quoted": f'"{text}"',
        "as mathematics": f"${text}$",
        "announced": f"Answer: {text}",
    }
    if PLAIN_NUMBER.fullmatch(text):
        found |= {"decimal": f"{text}.0", "with a unit": f"{text} units"}
    return found
