"""The data card: where a file is from, its licences, what was done to it, and its hash. Kept beside the data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from surefoot.data.reading import file_hash
from surefoot.errors import DataError


@dataclass(frozen=True, slots=True)
class Source:
    """One file that went in."""

    file: str
    sha256: str
    name: str
    license: str
    url: str
    format: str


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was done: `rows` in, `kept` out."""

    what: str
    rows: int
    kept: int
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Card:
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    rows: int
    sha256: str

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def markdown(self, name: str) -> str:
        """The card for people."""
        lines = [f"# {name}", "", f"{self.rows:,} rows, SHA-256 `{self.sha256}`", "", "## Sources", ""]
        lines += ["| file | data set | licence | format | SHA-256 |", "|---|---|---|---|---|"]
        for s in self.sources:
            titled = f"[{_cell(s.name)}]({s.url})" if s.url.startswith(("http://", "https://")) else _cell(s.name)
            licence = _cell(s.license) or "**not stated**"
            lines.append(f"| {_cell(s.file)} | {titled} | {licence} | {s.format} | `{s.sha256[:16]}` |")
        lines += ["", "## What was done", "", "| step | rows | kept | detail |", "|---|---|---|---|"]
        for step in self.steps:
            detail = _cell(json.dumps(step.detail, ensure_ascii=False)) if step.detail else ""
            lines.append(f"| {step.what} | {step.rows:,} | {step.kept:,} | {detail} |")
        return "\n".join(lines) + "\n"


def card_path(data: Path) -> Path:
    """Where the card of a data file is."""
    return data.with_name(f"{data.name}.card.json")


def origin_of(file: str, sha256: str, name: str, license: str, url: str, format: str) -> Source:
    """A source; its file without the folders, which mean nothing elsewhere."""
    return Source(file if "://" in file else Path(file).name, sha256, name, license, url, format)


def read_card(data: Path) -> Card | None:
    """The card of a data file; None if it has none. Raises DataError if it is malformed."""
    path = card_path(data)
    if not path.is_file():
        return None
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        sources = tuple(Source(**source) for source in raw["sources"])
        return Card(sources, tuple(Step(**step) for step in raw["steps"]), int(raw["rows"]), str(raw["sha256"]))
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"not a data card: {error}", where=str(path), fix="delete it and make it again") from None


def follow(inputs: list[Path], out: Path, step: Step) -> Card:
    """Write the card of `out`, made from `inputs` by one more step. Inputs without a card are sources themselves."""
    sources: list[Source] = []
    steps: list[Step] = []
    for path in inputs:
        card = read_card(path)
        if card is None:
            sources.append(origin_of(str(path), file_hash(path), "", "", "", ""))
        else:
            sources += card.sources
            steps += card.steps
    made = Card(tuple(dict.fromkeys(sources)), (*steps, step), step.kept, file_hash(out))
    made.save(card_path(out))
    return made


def checked(data: Path) -> Card:
    """The card of a file, made if there is none. Raises DataError if the file is not the one that the card is of."""
    card = read_card(data)
    digest = file_hash(data)
    if card is None:
        from surefoot.data.reading import read

        rows = sum(1 for entry in read(str(data)) if entry.row is not None)
        return Card((origin_of(str(data), digest, "", "", "", ""),), (), rows, digest)
    if card.sha256 != digest:
        raise DataError(
            "the file is not the one that its card describes",
            where=str(data),
            fix=f"it was changed by hand: make it again, or delete {card_path(data).name}",
        )
    return replace(card)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
