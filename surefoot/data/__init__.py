"""Data before a run: bring it into one form, look for faults, remove duplicates and test questions, measure it.

summary = ingest(["train.csv.zst"], Path("tasks.jsonl"), Mapping(prompt="question", answer="answer"))
"""

from __future__ import annotations

from surefoot.data.ingest import Summary, ingest
from surefoot.data.mapping import Mapping, read_mapping

__all__ = ["Mapping", "Summary", "ingest", "read_mapping"]
