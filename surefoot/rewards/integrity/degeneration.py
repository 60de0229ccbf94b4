"""Findings in text that has degenerated: repetition, the prompt said again, another script, words without content."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence

from surefoot.rewards.integrity.code import is_code
from surefoot.rewards.integrity.kinds import finding
from surefoot.rewards.integrity.scripts import script
from surefoot.types import Finding, Rollout, Task, Verdict

PERIOD, REPEATS, REPEATED = 25, 3, 12
"""Longest phrase in words, times that it comes again, and words that come again in all."""
RUN = 40
"""The same letter so many times in a row."""
GRAM, COPIED, LEAST = 5, 0.5, 12
"""Words in a row that count as taken from the prompt, share of them, and words of a text that is looked at."""
FOREIGN, LETTERS = 0.3, 15
"""Share of letters in a script that the prompt has not, and how many there must be."""
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_ABOUT_ITSELF = re.compile(
    r"\b(?:this|my) (?:\w+ )?(?:response|text|answer|sentence|reply|is one sentence)\b[^.!?]*"
    r"\b(?:words?|sentences?|commas?|letters?|lowercase|instructions?|constraints?|requirements?)\b"
    r"|\bas an? (?:\w+ )?(?:language )?model\b",
    re.I,
)
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an the and or but if of to in on at by for with from into over under is are was were be been it its this "
        "that these those you your i me my we our us he she they them their his her as not no so do does did have has "
        "had will would can could when while until before after then than there here what which who how all any some "
        "more most each every out up down off again always never please dear",
    )
)
"""Words without which hardly any English sentence is made."""


def in_text(task: Task, rollout: Rollout, verdict: Verdict) -> Iterator[Finding]:
    """Findings in what a rollout says; programs are left to `code`."""
    if is_code(task):
        return
    text = rollout.text
    prompt = "\n".join(message["content"] for message in task.messages if message["role"] == "user")
    words = list(_WORD.finditer(text))
    spoken = [word.group().casefold() for word in words]
    yield from _repeated(text, words, spoken)
    yield from _copied(text, spoken, [word.casefold() for word in _WORD.findall(prompt)])
    yield from _foreign(text, prompt)
    if task.constraints and verdict.grade == "right":
        yield from _empty(text, spoken, prompt)


def _repeated(text: str, words: Sequence[re.Match[str]], spoken: Sequence[str]) -> Iterator[Finding]:
    run = re.search(rf"([^\W\d_])\1{{{RUN - 1},}}", text)
    if run:
        yield finding("repetition", f"{run.group(1)!r} {len(run.group())} times", run.span())
        return
    for period in range(1, PERIOD + 1):
        start = 0
        for place in range(period, len(spoken) + 1):
            if place < len(spoken) and spoken[place] == spoken[place - period]:
                continue
            again = place - period - start
            if again >= REPEATED and again >= REPEATS * period:
                phrase = " ".join(spoken[start : start + period])
                span = (words[start].start(), words[place - 1].end())
                yield finding("repetition", f"{again // period + 1} times: {phrase}", span)
                return
            start = place - period + 1
    doubled = sum(a == b for a, b in itertools.pairwise(spoken))
    if doubled >= 5 and doubled > 0.3 * len(spoken):
        yield finding("repetition", f"{doubled} words said twice in a row", (0, len(text)))


def _copied(text: str, spoken: Sequence[str], prompt: Sequence[str]) -> Iterator[Finding]:
    if len(spoken) < LEAST:
        return
    known = {tuple(prompt[i : i + GRAM]) for i in range(len(prompt) - GRAM + 1)}
    grams = [tuple(spoken[i : i + GRAM]) for i in range(len(spoken) - GRAM + 1)]
    share = sum(gram in known for gram in grams) / len(grams)
    if share > COPIED:
        yield finding("copied_prompt", f"{share:.0%} of it is the prompt", (0, len(text)))


def _foreign(text: str, prompt: str) -> Iterator[Finding]:
    scripts: dict[str, list[int]] = {}
    for place, character in enumerate(text):
        if character.isalpha():
            scripts.setdefault(script(character), []).append(place)
    known = {script(c) for c in prompt if c.isalpha()} | {"LATIN"}
    letters = sum(map(len, scripts.values()))
    strange = {name: places for name, places in scripts.items() if name not in known and name != "GREEK"}
    count = sum(map(len, strange.values()))
    if count >= LETTERS and count > FOREIGN * letters:
        first = min(min(places) for places in strange.values())
        last = max(max(places) for places in strange.values())
        names = ", ".join(sorted(strange)).lower()
        yield finding("language_switch", f"{count / letters:.0%} of the letters are {names}", (first, last + 1))


def _empty(text: str, spoken: Sequence[str], prompt: str) -> Iterator[Finding]:
    """The first sign that text keeps its constraints and says nothing."""
    about = _ABOUT_ITSELF.search(text)
    if about:
        yield finding("filler", f"it talks of its own form: {about.group()}", about.span())
        return
    reason = _no_values(text) or _numbered(text) or _no_words(text, spoken, prompt)
    if reason:
        yield finding("filler", reason, (0, len(text)))


def _no_values(text: str) -> str:
    try:
        value = json.loads(re.sub(r"^```(?:json)?|```$", "", text.strip(), flags=re.I))
    except (ValueError, RecursionError):
        return ""
    if isinstance(value, dict) and value and all(v in (None, "", [], {}) or v == k for k, v in value.items()):
        return "every value of the object is empty or its own key"
    return ""


def _numbered(text: str) -> str:
    entries = [entry for entry in re.split(r"[\n,]", text) if entry.strip()]
    bare = {re.sub(r"[\d\W_]+", " ", entry).strip().casefold() for entry in entries}
    return f"{len(entries)} entries that differ in their number only" if len(entries) >= 3 and len(bare) == 1 else ""


def _no_words(text: str, spoken: Sequence[str], prompt: str) -> str:
    if not spoken:
        return "no words"
    short = [w for w in spoken if (len(w) == 1 and w not in "aio") or w.isdigit()]
    if len(short) > 0.4 * len(spoken) and len(spoken) >= 3:
        return f"{len(short)} of {len(spoken)} words are single letters or numbers"
    odd = [w for w in spoken if _unspeakable(w)]
    if len(odd) >= 3 and len(odd) > 0.25 * len(spoken):
        return f"words that nobody can say: {', '.join(odd[:5])}"
    english = len(set(_WORD.findall(prompt.casefold())) & _COMMON) >= 3
    common = sum(w in _COMMON for w in spoken)
    if english and len(spoken) >= LEAST and common < 0.1 * len(spoken):
        return f"{len(spoken)} words, {common} of them common ones"
    held = re.findall(r"\[[^\[\]\n]*\]", text)
    inside = sum(len(_WORD.findall(part)) for part in held)
    return "hardly anything but placeholders" if held and inside > 0.5 * len(spoken) else ""


def _unspeakable(word: str) -> bool:
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return False
    return (
        not re.search(r"[aeiouy]", word)
        or re.search(r"[bcdfghjklmnpqrstvwxz]{5}|q[^u]|[jvxz][bcdfgjkmpqtvwxz]", word) is not None
    )
