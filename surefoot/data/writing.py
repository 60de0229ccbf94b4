"""Writes canonical rows, which `source = "file:..."` reads as they are: JSON lines (also .gz) or Parquet.

A row: `id`, `messages`, `grader`, `checks`, and where there are any `reference`, `extract`,
`max_new_tokens`, `metadata`, `origin` (`file:line`). In Parquet, nested values are JSON text.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any, Self

from surefoot.domains.formats import GENERATED, Format
from surefoot.errors import DataError
from surefoot.sandbox.inside import codec
from surefoot.types import Task

NESTED = ("checks", "metadata")
BATCH = 2000


def canonical(task: Task, layout: Format, origin: str) -> dict[str, Any]:
    """The row of a task."""
    checks, metadata = dict(task.checks), dict(task.metadata)
    row: dict[str, Any] = {"id": metadata.pop("id", origin), "messages": list(task.messages), "grader": layout.grader}
    reference, generated = metadata.pop("answer", None), checks.pop("generated", None)
    row["checks"] = checks
    further = {
        "reference": reference, "extract": layout.extract,
        "max_new_tokens": layout.max_new_tokens, "metadata": metadata, "origin": origin,
        GENERATED: json.dumps(codec.encode(generated)) if generated else None,
    }  # fmt: skip
    return row | {name: value for name, value in further.items() if value not in (None, {}, [])}


class Writer:
    """Writes rows to a file that appears whole when the block ends well."""

    def __init__(self, path: Path) -> None:
        kinds = (".jsonl", ".gz", ".parquet")
        if path.suffix not in kinds or (path.suffix == ".gz" and Path(path.stem).suffix != ".jsonl"):
            raise DataError("the output must be .jsonl, .jsonl.gz or .parquet", where=str(path))
        self.path, self.rows = path, 0
        self._scratch = path.with_name(f".{path.name}-{os.getpid()}")
        self._batch: list[str] | list[dict[str, Any]] = []
        self._parquet: Any = None
        self._text: Any = None

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.suffix == ".parquet":
            import pyarrow.parquet as parquet

            self._parquet = parquet.ParquetWriter(self._scratch, _schema(), compression="zstd")
        elif self.path.suffix == ".gz":
            self._text = gzip.open(self._scratch, "wt", encoding="utf-8", compresslevel=5)
        else:
            self._text = self._scratch.open("w", encoding="utf-8")
        return self

    def write(self, row: dict[str, Any]) -> None:
        """Add a canonical row. Raises ValueError or TypeError if it holds what JSON has no place for."""
        self.write_text(json.dumps(row, ensure_ascii=False, allow_nan=False), row)

    def write_text(self, line: str, row: dict[str, Any]) -> None:
        """Add a row whose JSON is known."""
        if self._text is not None:
            line.encode()  # a lone surrogate is the row's fault: say so before anything is written
            self._text.write(line + "\n")
        else:
            self._batch.append({k: _packed(k, v) for k, v in row.items()})  # type: ignore[arg-type]
            if len(self._batch) >= BATCH:
                self._flush()
        self.rows += 1

    def _flush(self) -> None:
        import pyarrow as arrow

        if self._batch:
            self._parquet.write_table(arrow.Table.from_pylist(self._batch, schema=_schema()))
        self._batch = []

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if self._parquet is not None:
                if kind is None:
                    self._flush()
                self._parquet.close()
            else:
                self._text.close()
            if kind is None:
                self._scratch.replace(self.path)
        finally:
            self._scratch.unlink(missing_ok=True)


def _packed(name: str, value: Any) -> Any:
    if name in NESTED:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    return str(value) if name == "id" else value


def _schema() -> Any:
    import pyarrow as arrow

    message = arrow.struct([("role", arrow.string()), ("content", arrow.string())])
    texts = ("id", "grader", "checks", "reference", "extract", "metadata", "origin", GENERATED)
    kinds = {**dict.fromkeys(texts, arrow.string()), "messages": arrow.list_(message), "max_new_tokens": arrow.int64()}
    return arrow.schema(list(kinds.items()))
