"""Mutants of a Python solution: the same program with one small fault each, the kind of fault that people make.

The operators are the usual ones of mutation testing (DeMillo, Lipton & Sayward, 1978; Offutt's sufficient set, 1996):
comparisons, arithmetic, logic, constants, conditions, deleted statements, loop ends. How many of them a test set
notices is its mutation score.
"""

from __future__ import annotations

import ast
import copy
import warnings
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

COMPARISONS: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
ARITHMETIC: Mapping[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add, ast.FloorDiv),
    ast.Div: (ast.FloorDiv, ast.Mult),
    ast.FloorDiv: (ast.Div, ast.Mult),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
CALLS: Mapping[str, str] = {
    "min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list", "set": "list", "abs": "int",
    "sum": "len", "upper": "lower", "lower": "upper", "startswith": "endswith", "endswith": "startswith",
    "isupper": "islower", "islower": "isupper", "lstrip": "strip", "rstrip": "strip", "find": "rfind",
}  # fmt: skip
Edit = Callable[[Any], None]


def mutants(code: str, most: int, random: Random) -> list[str]:
    """At most `most` different programs, each with one fault, in random order; none if `code` is not Python."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return []
    original = ast.unparse(tree)
    places = [(number, turn) for number, node in enumerate(_body(tree)) for turn in range(len(_edits(node)))]
    random.shuffle(places)
    found: dict[str, None] = {}
    for number, turn in places:
        if len(found) == most:
            break
        changed = copy.deepcopy(tree)
        node = next(node for at, node in enumerate(_body(changed)) if at == number)
        _edits(node)[turn](node)
        source = ast.unparse(ast.fix_missing_locations(changed))
        if source != original:
            found[source] = None
    return list(found)


def _body(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes inside function bodies, without docstrings; decorators, defaults and annotations are left alone."""
    for function in tree.body:
        if isinstance(function, ast.ClassDef):
            yield from _body(ast.Module(function.body, []))
        elif isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            start = 1 if ast.get_docstring(function, clean=False) is not None else 0
            for statement in function.body[start:]:
                yield from ast.walk(statement)


def _edits(node: ast.AST) -> list[Edit]:
    """The ways to put one fault into a node."""
    if isinstance(node, ast.Compare):
        return [_comparison(i, new) for i, op in enumerate(node.ops) for new in COMPARISONS.get(type(op), ())]
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        return [_set("op", new()) for new in ARITHMETIC.get(type(node.op), ())]
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return [_set("op", other), *(_drop("values", i) for i in range(len(node.values)) if len(node.values) > 1)]
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        constant = [] if isinstance(node, ast.While) else [_set("test", ast.Constant(True))]
        return [_negate, *constant, _set("test", ast.Constant(False))]
    if isinstance(node, ast.Constant):
        return [_set("value", value) for value in _constants(node.value)]
    if isinstance(node, ast.UnaryOp):
        return [_set("op", ast.UAdd())] if isinstance(node.op, ast.USub) else [_not] * isinstance(node.op, ast.Not)
    return _other_edits(node)


def _other_edits(node: ast.AST) -> list[Edit]:
    if isinstance(node, ast.Call):
        return _call_edits(node)
    if isinstance(node, ast.comprehension):
        return [_drop("ifs", i) for i in range(len(node.ifs))]
    if isinstance(node, (ast.Assign, ast.Expr)):
        return [_set("value", ast.Constant(None))]
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        return [_set("value", ast.Constant(None))]
    if isinstance(node, ast.Slice):
        ends = [name for name in ("lower", "upper", "step") if getattr(node, name) is not None]
        return [_set(name, None) for name in ends]
    return []


def _call_edits(node: ast.Call) -> list[Edit]:
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    edits: list[Edit] = []
    if name in CALLS:
        edits.append(_rename(CALLS[name]))
    if name == "range" and node.args:
        edits += [_shift_argument(-1, 1), _shift_argument(-1, -1)]
        edits += [_shift_argument(0, 1)] if len(node.args) > 1 else []
    if node.keywords:
        edits += [_drop("keywords", i) for i in range(len(node.keywords))]
    return edits


def _constants(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        return [value + 1, value - 1]
    if isinstance(value, str):
        return [value + "x"] if value else ["x"]
    return []


def _set(field: str, value: Any) -> Edit:
    return lambda node: setattr(node, field, copy.deepcopy(value))


def _drop(field: str, index: int) -> Edit:
    def edit(node: Any) -> None:
        getattr(node, field).pop(index)

    return edit


def _comparison(index: int, new: type[ast.cmpop]) -> Edit:
    def edit(node: Any) -> None:
        node.ops[index] = new()

    return edit


def _rename(name: str) -> Edit:
    def edit(node: Any) -> None:
        setattr(node.func, "id" if isinstance(node.func, ast.Name) else "attr", name)

    return edit


def _shift_argument(index: int, by: int) -> Edit:
    def edit(node: Any) -> None:
        node.args[index] = ast.BinOp(node.args[index], ast.Add(), ast.Constant(by))

    return edit


def _negate(node: Any) -> None:
    node.test = ast.UnaryOp(ast.Not(), node.test)


def _not(node: Any) -> None:
    node.operand = ast.UnaryOp(ast.Not(), node.operand)
