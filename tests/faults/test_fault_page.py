"""The page of faults shows what the tests inject, no more and no less."""

from __future__ import annotations

from fault_page import FAULTS, PAGE, page_with


def test_the_page_is_the_table_of_the_tests() -> None:
    text = PAGE.read_text()
    assert page_with(text) == text, "python tests/faults/fault_page.py writes it anew"
    assert len(FAULTS) >= 30
