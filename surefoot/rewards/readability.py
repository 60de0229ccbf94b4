"""How readable a solution is, in [0, 1]: complexity (radon), faults that a linter sees (pyflakes), length, dead code.

Runs inside the jail, since it parses what a model wrote. Every part can only lose by more code: it looks at the most
complex function and at counts, never at means or densities, which padding would dilute; comments and blank lines count
for nothing; being shorter than the reference earns nothing.
"""

from __future__ import annotations

import ast
import warnings
from typing import Any

from pyflakes.checker import Checker
from radon.complexity import cc_visit_ast

SIMPLE, TANGLED = 6, 26
"""Cyclomatic complexity up to which a function is simple, and from which it earns nothing."""
LENGTH_SLACK = 1.5
"""Up to so many times as many statements as the reference has cost nothing."""
WIDEST = 120
"""Characters of a line."""
_ENDS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def handle(request: dict[str, Any]) -> dict[str, Any]:
    """`{"readability": x}` of `code`, beside `reference` if there is one."""
    return {"readability": readability(request["code"], request.get("reference"))}


def readability(code: str, reference: str | None = None) -> float:
    """The product of three parts, each in [0, 1]; 0 for what is not Python."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(code)
            wanted = statements(ast.parse(reference)) if reference else 0
    except (SyntaxError, ValueError):
        return 0.0
    worst = max((block.complexity for block in cc_visit_ast(tree)), default=1)
    simple = min(1.0, max(0.0, (TANGLED - worst) / (TANGLED - SIMPLE)))
    wide = sum(len(line) > WIDEST for line in code.splitlines())
    clean = 1 / (1 + len(Checker(tree).messages) + unreachable(tree) + wide)
    short = min(1.0, LENGTH_SLACK * wanted / max(1, statements(tree))) if wanted else 1.0
    return simple * clean * short


def statements(tree: ast.AST) -> int:
    """How many statements there are, docstrings aside."""
    texts = sum(isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) for n in ast.walk(tree))
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree)) - texts


def unreachable(tree: ast.AST) -> int:
    """Statements that stand after one that always leaves their block."""
    count = 0
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                end = next((i for i, statement in enumerate(block) if isinstance(statement, _ENDS)), len(block))
                count += max(0, len(block) - end - 1)
    return count
