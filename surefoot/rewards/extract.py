"""Finds the one answer in what a model wrote. Never raises for any text, and never accepts several answers at once."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Literal, get_args

from surefoot.errors import ConfigError

Extraction = Literal["whole", "first_line", "last_line", "last_number", "tag", "boxed", "code"]
MODES: tuple[str, ...] = get_args(Extraction)

_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)"
_PLAIN = rf"(?:{_DIGITS}(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]{{1,4}}(?!\w))?"
_NUMBER = re.compile(rf"(?<![\w.])(?:(?<![\w)\]])[-+])?{_PLAIN}(?:/{_PLAIN}(?!/))?")
_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE)
_BOX = re.compile(r"\\f?boxed\s*\{")
BOXES_DEEP = 2
"""Boxes inside the outer one that are opened; each costs a pass over the text."""
_FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*[\w+#.-]*\s*")
_MODULE = r"\w[\w.]*(?:\s+as\s+\w+)?"
_START = re.compile(
    rf"\s*(?:(?:async\s+)?def\s+\w+\s*\(|class\s+\w+\s*[:(]|from\s+[\w.]+\s+import\b|import\s+{_MODULE}(?:\s*,\s*{_MODULE})*\s*(?:#.*)?$|@\w[\w.]*)"
)
_DEFINES = re.compile(r"^\s*(?:(?:async\s+)?def|class)\s", re.MULTILINE)
_STATEMENT = re.compile(
    r"(?:(?:async\s+)?def|class|import|from|if|elif|for|while|with|try|else|except|finally|return|assert|print|del)\b"
    r".*[:)\]}\w'\"\\,(]\s*(?:#.*)?$|@\w|#|[)\]}]|[\"']{3}"
    r"|[A-Za-z_][\w.]*(?:\[.*\])?(?:\s*:\s*[\w\[\], |.]+)?\s*[-+*/%|&]?=[^=]"
)
_PROSE = re.compile(r"(?:if|for|while|with|from|import|else|return|print|class|del|try)\s+(?:[a-z]+\s+){3,}")


def extract(text: str, how: str) -> str | None:
    """The answer in `text`, or None if there is none or it is not clear which one is meant.

    Args:
        how: One of `MODES`. `whole`, `first_line`, `last_line` (of those that are not blank), `last_number`; `tag`:
            inside the only `<answer>...</answer>`; `boxed`: what all `\\boxed{...}` agree on; `code`: Python source.

    Raises ConfigError for an unknown mode.
    """
    if how not in _EXTRACTORS:
        raise ConfigError(f"there is no way {how!r} to extract an answer", fix=f"one of: {', '.join(MODES)}")
    answer = _EXTRACTORS[how](text)
    return answer if answer and answer.strip() else None


def code(text: str) -> str | None:
    """The Python source in `text`: a fenced block, or what follows from the first `def`, `class` or `import`.

    Of several blocks it is the first one that defines something: the others are usually examples of its use.
    Without a fence, the source ends where prose begins.
    """
    blocks = _fenced(text)
    if blocks:
        block = next((b for b in blocks if _DEFINES.search(b)), blocks[0])
        return textwrap.dedent(block).strip("\n")
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if _START.match(line)), None)
    if start is None:
        return None
    return _until_prose(textwrap.dedent("\n".join(_shifted(lines[start:]))).splitlines())


def blocks(text: str) -> list[str]:
    """Contents of the fenced blocks in `text`, those that are not blank."""
    return _fenced(text)


def only_block(text: str) -> str:
    """What is inside the one fenced block of `text`, or all of it where there is no single one."""
    found = _fenced(text) if "```" in text or "~~~" in text else []
    return (found[0] if len(found) == 1 else text).strip()


def _whole(text: str) -> str | None:
    return text.strip()


def _first_line(text: str) -> str | None:
    return next((line.strip() for line in text.splitlines() if line.strip()), None)


def _last_line(text: str) -> str | None:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), None)


def _last_number(text: str) -> str | None:
    last = None
    for last in _NUMBER.finditer(text.replace("−", "-")):  # noqa: B007
        pass
    return last.group() if last else None


def _tagged(text: str) -> str | None:
    tags = list(_TAG.finditer(text))
    if [tag.group(1) for tag in tags] != ["", "/"]:
        return None
    return text[tags[0].end() : tags[1].start()].strip()


def _boxed(text: str) -> str | None:
    """What all boxes say. Two that differ are no answer; a box around a box is one."""
    said: str | None = None
    box = _BOX.search(text)
    while box is not None:
        content, end = _braced(text, box.end())
        for _ in range(BOXES_DEEP):
            inner = _BOX.match(content) if content is not None else None
            if content is not None and inner is not None:
                within, stop = _braced(content, inner.end())
                content = within if stop == len(content) else None
        if content is not None and _BOX.search(content):
            return None
        if content is None or (said is not None and content.split() != said.split()):
            return None
        said = content
        box = _BOX.search(text, end)
    return said


def _braced(text: str, start: int) -> tuple[str | None, int]:
    """What stands before the brace that closes the one open at `start`, and the place behind it; None without one."""
    depth, position = 1, start
    while position < len(text):
        character = text[position]
        if character == "\\":
            position += 1
        elif character in "{}":
            depth += 1 if character == "{" else -1
            if depth == 0:
                return text[start:position].strip(), position + 1
        position += 1
    return None, position


def _fenced(text: str) -> list[str]:
    """Contents of the fenced blocks; one that is not closed goes to the end of the text."""
    blocks: list[list[str]] = []
    fence = ""
    for line in text.splitlines():
        opens = _FENCE.fullmatch(line)
        if fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            else:
                blocks[-1].append(line)
        elif opens:
            fence = opens.group(1)
            blocks.append([])
    return ["\n".join(lines) for lines in blocks if any(line.strip() for line in lines)]


def _shifted(lines: list[str]) -> list[str]:
    """`lines` without the indentation of the first; lines indented less are left as they are, at the margin."""
    indent = len(lines[0]) - len(lines[0].lstrip())
    return [line[indent:] if not line[:indent].strip() else line.lstrip() for line in lines]


def _until_prose(lines: list[str]) -> str:
    """The lines up to the first one at the margin that is not a statement, unless inside a long string."""
    kept: list[str] = []
    quote = ""
    for line in lines:
        if not quote and line[:1].strip() and not _is_statement(line):
            break
        kept.append(line)
        quote = _open_quote(line, quote)
    return "\n".join(kept).rstrip()


def _is_statement(line: str) -> bool:
    """Whether a line at the margin is Python rather than a sentence."""
    if _START.match(line):
        return True
    if line.startswith("for ") and " in " not in line:
        return False
    return _STATEMENT.match(line) is not None and (line.rstrip().endswith(":") or not _PROSE.match(line))


def _open_quote(line: str, quote: str) -> str:
    """The kind of triple quote that is still open after `line`."""
    for mark in re.findall(r'"""|\'\'\'', line):
        if not quote:
            quote = mark
        elif quote == mark:
            quote = ""
    return quote


_EXTRACTORS: Mapping[str, Callable[[str], str | None]] = {
    "whole": _whole,
    "first_line": _first_line,
    "last_line": _last_line,
    "last_number": _last_number,
    "tag": _tagged,
    "boxed": _boxed,
    "code": code,
}
