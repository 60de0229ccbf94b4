"""Scores answers with reasoning-gym's own scorers. Runs inside the jail, one fork for each answer.

Several scorers hand the answer to `eval` or to sympy's parser, which evaluates it as Python. A jail contains that but
would let such an answer choose its own score, so both are replaced: `eval` by `ast.literal_eval`, and the parser by one
that first insists on plain arithmetic.
"""

from __future__ import annotations

import ast
import random
import sys
from typing import Any

from surefoot.domains.unplotted import without_plots

without_plots()

import numpy  # noqa: E402
import reasoning_gym  # noqa: E402, F401  (loads every data set before the first fork)
import sympy  # noqa: E402
from reasoning_gym.factory import DATASETS  # noqa: E402
from sympy.parsing import sympy_parser  # noqa: E402

BARE = frozenset({"figlet_font", "group_anagrams", "spell_backward"})
"""Data sets that load large files when they are set up, and whose scorers use nothing of that."""
MOST = 2000
"""Longest expression that the parser is given, in characters."""
FUNCTIONS = {
    *("sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
    *("exp", "log", "ln", "sqrt", "Abs", "abs", "erf", "Rational", "Integer", "Float"),
}
NODES = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Constant, ast.Name, ast.Load, ast.Call, ast.operator, ast.unaryop,
    ast.Tuple, ast.List,
)  # fmt: skip

OWN_TEXT = frozenset({"reasoning_gym.arithmetic.bitwise_arithmetic"})
"""Modules that evaluate the question, never the answer, when they score."""

_real_parse = sympy_parser.parse_expr


def handle(request: dict[str, Any]) -> dict[str, Any]:
    """`{"score": float}`, or `{"raised": what, "oracle": its own score or what it raised}`."""
    name, options, seed = request["dataset"], request["options"], request["seed"]
    dataset = _bare(name, options, seed) if name in BARE else _dataset(name, options, seed)
    entry = ast.literal_eval(request["entry"]) if request.get("entry") else _again(dataset, seed)
    try:
        return {"score": float(dataset.score_answer(request["answer"], entry))}
    except Exception as error:
        return {"raised": f"{type(error).__name__}: {error}"[:200], "oracle": _oracle(dataset, entry)}


def guarded_parse(text: Any, *args: Any, **kwargs: Any) -> Any:
    """sympy's parser for plain arithmetic only. Raises SyntaxError for anything that could run as a program."""
    if not isinstance(text, str) or not plain_arithmetic(text):
        raise SyntaxError("not a plain expression")
    return _real_parse(text, *args, **kwargs)


def plain_arithmetic(text: str) -> bool:
    """Whether `text` holds numbers, names, operators and well-known functions, and nothing else."""
    if len(text) > MOST or "__" in text:
        return False
    try:
        tree = ast.parse(text.strip().replace("^", "**"), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    for node in ast.walk(tree):
        if not isinstance(node, NODES):
            return False
        if isinstance(node, ast.Constant) and not isinstance(node.value, (int, float, complex)):
            return False
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and not _small(node.right):
            return False
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS):
            return False
    return True


def _small(exponent: ast.expr) -> bool:
    """Whether an exponent holds neither powers nor large numbers: such a tower would only burn time."""
    return not any(
        (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow))
        or (isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and abs(node.value) > 1000)
        for node in ast.walk(exponent)
    )


def _dataset(name: str, options: dict[str, Any], seed: int) -> Any:
    dataset_class, config_class = DATASETS[name]
    return dataset_class(_config(config_class, options, seed))


def _bare(name: str, options: dict[str, Any], seed: int) -> Any:
    dataset_class, config_class = DATASETS[name]
    dataset = dataset_class.__new__(dataset_class)
    dataset.config, dataset.seed, dataset.size = _config(config_class, options, seed), seed, 1
    return dataset


def _config(config_class: Any, options: dict[str, Any], seed: int) -> Any:
    settings = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    return config_class(**settings, seed=seed, size=1)


def _again(dataset: Any, seed: int) -> Any:
    """The entry made anew, for the few that cannot be written as a literal."""
    random.seed(seed)
    numpy.random.seed(seed)
    return dataset[0]


def _oracle(dataset: Any, entry: Any) -> float | str:
    try:
        return float(dataset.score_answer(entry["answer"], entry))
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]


def _disarm() -> None:
    sympy.parse_expr = sympy_parser.parse_expr = guarded_parse
    for name, module in list(sys.modules.items()):
        if name.startswith("reasoning_gym.") and name not in OWN_TEXT and module is not None:
            vars(module)["eval"] = ast.literal_eval
            if vars(module).get("parse_expr") is _real_parse:
                vars(module)["parse_expr"] = guarded_parse


def _warm() -> None:
    """Fill sympy's caches before the first fork: the first derivative in a fresh process takes 0.3 s."""
    for name in ("simple_integration", "polynomial_multiplication", "puzzle24", "countdown"):
        dataset = _dataset(name, {}, 1)
        entry = dataset[0]
        for text in (entry["answer"], "1 + 2"):
            dataset.score_answer(text, entry)


_disarm()
_warm()
