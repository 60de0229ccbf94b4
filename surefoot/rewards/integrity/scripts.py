"""Writing systems of letters."""

from __future__ import annotations

import unicodedata


def script(character: str) -> str:
    """`LATIN`, `CYRILLIC`, `CJK`, ...: the first word of the letter's Unicode name; empty for what is no letter."""
    return unicodedata.name(character, "").partition(" ")[0] if character.isalpha() else ""
