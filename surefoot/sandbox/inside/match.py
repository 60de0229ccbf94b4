"""A regular-expression match as plain data: solutions return them, tests ask whether there is one and what it holds."""

from __future__ import annotations

import re
from typing import Any


class Match:
    """What `re.Match` says of its groups, without the pattern. Always true, as the real one is."""

    def __init__(
        self, texts: tuple[str | None, ...], spans: tuple[tuple[int, int], ...], names: dict[str, int]
    ) -> None:
        self._texts, self._spans, self._names = texts, spans, names

    def group(self, *which: int | str) -> Any:
        found = tuple(self._texts[self._index(one)] for one in which or (0,))
        return found[0] if len(found) == 1 else found

    __getitem__ = group

    def groups(self, default: str | None = None) -> tuple[str | None, ...]:
        return tuple(default if text is None else text for text in self._texts[1:])

    def groupdict(self, default: str | None = None) -> dict[str, str | None]:
        return {name: default if self._texts[i] is None else self._texts[i] for name, i in self._names.items()}

    def span(self, which: int | str = 0) -> tuple[int, int]:
        return self._spans[self._index(which)]

    def start(self, which: int | str = 0) -> int:
        return self.span(which)[0]

    def end(self, which: int | str = 0) -> int:
        return self.span(which)[1]

    def _index(self, which: int | str) -> int:
        index = self._names.get(which, -1) if isinstance(which, str) else which
        if not 0 <= index < len(self._texts):
            raise IndexError("no such group")
        return index

    def __repr__(self) -> str:
        return f"<re.Match object; span={self._spans[0]}, match={self._texts[0]!r}>"


def pack(match: re.Match[Any]) -> list[Any]:
    count = match.re.groups + 1
    return [[match.group(i) for i in range(count)], [match.span(i) for i in range(count)], dict(match.re.groupindex)]


def unpack(packed: list[Any]) -> Match:
    texts, spans, names = packed
    return Match(
        tuple(None if text is None else str(text) for text in texts),
        tuple((int(start), int(end)) for start, end in spans),
        {str(name): int(index) for name, index in names.items()},
    )
