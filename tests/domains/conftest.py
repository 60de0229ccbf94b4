from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def public_data() -> Path:
    """Public data sets, where there are any: named by SUREFOOT_DATA, or beside the repository."""
    folder = Path(os.environ.get("SUREFOOT_DATA") or Path(__file__).parents[3] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("no public data sets here: set SUREFOOT_DATA to a folder with gsm8k/, math/, humaneval/, mbpp/")
    return folder
