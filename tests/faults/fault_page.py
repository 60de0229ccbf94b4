"""The table of faults: each test says what it injects, and `docs/faults.md` shows just that.

python tests/faults/fault_page.py     writes the page's table anew
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

PAGE = Path(__file__).resolve().parents[2] / "docs" / "faults.md"
BEGIN, END = "<!-- table: tests/faults/fault_page.py -->", "<!-- end of table -->"
MODULES = (
    "test_grader_faults",
    "test_data_faults",
    "test_part_faults",
    "test_update_faults",
    "test_storage_faults",
    "test_sudden_ends",
)

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True)
class Fault:
    """One row of the table."""

    group: str
    what: str
    run: str
    lost: str
    seen: str
    test: str


FAULTS: list[Fault] = []


def fault(what: str, *, run: str, lost: str = "nothing", seen: str) -> Callable[[F], F]:
    """Says of a test what it breaks, what the run does, what is lost, and what the user sees."""

    def note(test: F) -> F:
        row = Fault(test.__module__.removeprefix("test_").replace("_", " "), what, run, lost, seen, test.__name__)
        if row not in FAULTS:
            FAULTS.append(row)
        return test

    return note


def table() -> str:
    """All rows as Markdown, grouped by what breaks."""
    for name in MODULES:
        importlib.import_module(name)
    lines: list[str] = []
    group = ""
    for row in sorted(FAULTS, key=lambda row: MODULES.index("test_" + row.group.replace(" ", "_"))):
        if row.group != group:
            group = row.group
            lines += [
                "",
                f"### {group.capitalize()}",
                "",
                "| fault | the run | lost | the user sees |",
                "|---|---|---|---|",
            ]
        lines.append(f"| {row.what} | {row.run} | {row.lost} | {row.seen} |")
    return "\n".join(lines) + "\n"


def page_with(text: str) -> str:
    """The page with its table replaced."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.modules["fault_page"] = sys.modules["__main__"]
    PAGE.write_text(page_with(PAGE.read_text()))
