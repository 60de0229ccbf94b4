"""Makes reasoning-gym items in a process of its own: run as a script, JSON lines in, JSON lines out.

Several generators depend on the hash seed or draw from global random states, some take long, and the package weighs
over 100 MiB: so the parent starts this with PYTHONHASHSEED=0 and an item is a pure function of (name, options, seed).
Only the package's own code runs here, never text of a model.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import random
import sys
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

REUSED = frozenset(
    {
        *("arc_agi", "base_conversion", "caesar_cipher", "figlet_font", "group_anagrams", "rearc", "rush_hour"),
        *("spell_backward", "word_ladder"),
    }
)
"""Data sets that read large files when they are set up (20 to 800 ms), and whose items depend on the seed alone."""
ATTEMPTS, STRIDE = 8, 2 * 7919
"""Seeds that are tried for one item, and how far they are apart."""


def serve(requests: TextIO, replies: TextIO) -> None:
    """Answer requests until there are no more."""
    for line in requests:
        try:
            reply = answer(json.loads(line))
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}", "kind": "item"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Items for `request["seeds"]`, or what is wrong with its options."""
    from reasoning_gym.dataset import ProceduralDataset
    from reasoning_gym.factory import DATASETS

    name = request["name"]
    if name not in DATASETS:
        return {"error": f"reasoning-gym has no data set {name!r}", "kind": "name", "known": sorted(DATASETS)}
    if "curriculum" in request:
        return {"levels": curriculum(name, request["curriculum"])}
    options = request["options"]
    dataset_class, config_class = DATASETS[name]
    known = [f.name for f in fields(config_class) if f.name not in ("seed", "size")]
    unknown = [key for key in options if key not in known]
    if unknown:
        return {"error": f"{name} has no option {unknown[0]!r}", "kind": "options", "known": known, "key": unknown[0]}
    plain = dataset_class.score_answer is ProceduralDataset.score_answer
    try:
        make(name, options, 0) if name not in REUSED else _large(name, json.dumps(options, sort_keys=True))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}".rstrip(": "), "kind": "options", "known": known}
    return {"plain": plain, "items": [portable(item(name, options, seed)) for seed in request["seeds"]]}


def curriculum(name: str, count: int) -> list[dict[str, Any]]:
    """Options of the first levels that make an item, each different from the one before; none without a curriculum."""
    from reasoning_gym.factory import CURRICULA, create_curriculum

    levels: list[dict[str, Any]] = []
    for level in range(20 if name in CURRICULA else 0):
        steps = create_curriculum(name)
        for attribute, about in steps.attributes.items():
            steps.set_attr_level(attribute, min(level, len(about.levels) - 1))
        try:
            options = _options(steps.generate_configuration())
            make(name, options, 0)[0]
        except Exception:
            continue
        if options not in levels:
            levels.append(options)
        if len(levels) == count:
            break
    return levels


def _options(config: Any) -> dict[str, Any]:
    """Those that are not the data set's defaults, as JSON has them."""
    usual = type(config)()
    values = {f.name: getattr(config, f.name) for f in fields(config) if f.name not in ("seed", "size")}
    changed = {name: value for name, value in values.items() if value != getattr(usual, name)}
    plain: dict[str, Any] = json.loads(json.dumps(changed))
    return plain


def item(name: str, options: dict[str, Any], seed: int) -> dict[str, Any]:
    """The one item of `seed`; where the generator fails for it (`maze` does), that of the first later seed that works.

    Seeds go up by an even number, since the last bit is the split.
    """
    for attempt in range(ATTEMPTS - 1):
        try:
            return one_item(name, options, (seed + STRIDE * attempt) % 2**32)
        except Exception:
            continue
    return one_item(name, options, (seed + STRIDE * (ATTEMPTS - 1)) % 2**32)


def one_item(name: str, options: dict[str, Any], seed: int) -> dict[str, Any]:
    """The item of exactly this seed, global random states included."""
    import numpy

    random.seed(seed)
    numpy.random.seed(seed)
    if name in REUSED:
        dataset = _large(name, json.dumps(options, sort_keys=True))
        dataset.seed = dataset.config.seed = seed
    else:
        dataset = make(name, options, seed)
    entry: dict[str, Any] = dataset[0]
    return entry


@lru_cache(maxsize=8)
def _large(name: str, options: str) -> Any:
    return make(name, json.loads(options), 0)


def make(name: str, options: dict[str, Any], seed: int) -> Any:
    """A data set of a single item: items are made from `seed + index`, so neighbours would share them."""
    from reasoning_gym.factory import DATASETS

    dataset_class, config_class = DATASETS[name]
    config = config_class(**{key: _tuples(value) for key, value in options.items()}, seed=seed, size=1)
    return dataset_class(config)


def portable(entry: dict[str, Any]) -> dict[str, Any]:
    """Question, answer, and the whole entry as a Python literal, where it is one (None elsewhere)."""
    text: str | None = repr(entry)
    try:
        if repr(ast.literal_eval(text or "")) != text:
            text = None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        text = None
    return {"question": entry["question"], "answer": entry["answer"], "entry": text}


def _tuples(value: Any) -> Any:
    """TOML has arrays only; the package's settings compare and hash tuples alike, but nested lists stay lists."""
    return tuple(value) if isinstance(value, list) else value


def _without_plots() -> None:
    """`unplotted.without_plots`, loaded by its path: importing it by name would import all of Surefoot."""
    spec = importlib.util.spec_from_file_location("unplotted", Path(__file__).with_name("unplotted.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.without_plots()


if __name__ == "__main__":
    _without_plots()
    private = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a generator prints must not mix with the replies
    serve(sys.stdin, private)
