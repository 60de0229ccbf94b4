"""Reading, explaining, comparing and writing recipes. Unknown keys are errors that name the nearest known one."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from surefoot.config import DomainConfig, Recipe
from surefoot.errors import ConfigError

PEER_NAMES = {
    "learning_rate": "learner.lr",
    "kl_coef": "learner.kl",
    "beta": "learner.kl",
    "group_size": "rollout.samples",
    "num_generations": "rollout.samples",
    "max_completion_length": "rollout.max_new_tokens",
    "max_tokens": "rollout.max_new_tokens",
    "max_steps": "steps",
}
"""What other trainers call some keys: only used to suggest the right one."""


def load_recipe(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe and apply `--set KEY=VALUE` overrides.

    Args:
        path: TOML file.
        overrides: `section.key=value`, the value in TOML syntax or a bare string; `domains.NAME.key=value` reaches
            into the domain of that name.

    Raises:
        ConfigError: file missing, not TOML, unknown key (with the nearest known one), or a value that does not fit.
    """
    try:
        data = tomllib.loads(path.read_text())
    except (FileNotFoundError, IsADirectoryError) as missing:
        raise ConfigError(
            "there is no such recipe", where=str(path), fix="give the path of a TOML file, e.g. recipes/quickstart.toml"
        ) from missing
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as broken:
        raise ConfigError(f"not valid TOML: {broken}", where=str(path)) from broken
    for override in overrides:
        apply_override(data, override)
    return parse_recipe(data, where=str(path))


def parse_recipe(data: Mapping[str, Any], where: str = "recipe") -> Recipe:
    """Validate a recipe given as plain data. Raises ConfigError, naming every key that is wrong."""
    try:
        return Recipe.model_validate(data)
    except ValidationError as invalid:
        errors = invalid.errors()
        inner = any(len(e["loc"]) > 1 and e["loc"][0] == "domains" for e in errors)
        # One bad entry makes pydantic also report the whole tuple as too short, which would only confuse.
        shown = [e for e in errors if not (inner and e["loc"] == ("domains",))]
        problems = [_explain_error(error, data) for error in shown]
        raise ConfigError(
            "\n  ".join(problems), where=where, fix="surefoot config explain lists every key"
        ) from invalid


def keys() -> Iterator[tuple[str, FieldInfo]]:
    """Every key of a recipe with its dotted name (`learner.lr`, `domains.shots`)."""
    yield from _keys_of(Recipe, "")


def explain(key: str) -> str:
    """What `key` means, its type and default. Raises ConfigError with the nearest key if there is none."""
    table = dict(keys())
    if key in table:
        info = table[key]
        default = "required" if info.is_required() else f"default {info.get_default(call_default_factory=True)!r}"
        kind = (
            str(info.annotation).replace("typing.", "")
            if not isinstance(info.annotation, type)
            else (info.annotation.__name__)
        )
        return f"{key}  ({kind}, {default})\n{' '.join((info.description or '').split())}"
    inside = [name for name in table if name.startswith(f"{key}.")]
    if inside:
        return "\n\n".join(explain(name) for name in inside)
    raise ConfigError(f"there is no key {key!r}{_nearest(key, table)}", fix="surefoot config explain lists every key")


def select_domains(recipe: Recipe, names: Sequence[str]) -> list[DomainConfig]:
    """The recipe's domains of these names; a name with a colon that the recipe lacks is taken as a source.

    All of the recipe's domains if `names` is empty. Raises ConfigError for a name that is neither.
    """
    table = {domain.name: domain for domain in recipe.domains}
    if not names:
        return list(recipe.domains)
    chosen = []
    for name in names:
        if name not in table and ":" not in name:
            raise ConfigError(
                f"the recipe has no domain {name!r}{_nearest(name, table)}",
                fix="give one of its domains, or a source such as reasoning_gym:gcd (see surefoot domains list)",
            )
        chosen.append(table.get(name) or source_of(name))
    return chosen


def source_of(source: str) -> DomainConfig:
    """A domain straight from its source, with the source's own settings."""
    name = "".join(c if c.isalnum() or c in "_.+-" else "-" for c in source.rsplit("/", 1)[-1])
    return DomainConfig(name=name, source=source)


def to_toml(recipe: Recipe) -> str:
    """The resolved recipe as TOML that `load_recipe` reads back to an equal one."""
    data = recipe.model_dump(mode="json", exclude_none=True)
    scalars = {k: v for k, v in data.items() if not isinstance(v, dict) and k != "domains"}
    blocks = [_toml_lines(scalars)]
    blocks += [f"[{k}]\n{_toml_lines(v)}" for k, v in data.items() if isinstance(v, dict)]
    blocks += [f"[[domains]]\n{_toml_lines(d)}" for d in data["domains"]]
    return "\n\n".join(blocks) + "\n"


def differences(old: Recipe, new: Recipe) -> list[str]:
    """One line `key: old -> new` for every key in which two recipes differ."""
    before, after = _flat(old.model_dump(mode="json")), _flat(new.model_dump(mode="json"))
    names = sorted(before.keys() | after.keys())
    return [f"{n}: {before.get(n)!r} -> {after.get(n)!r}" for n in names if before.get(n) != after.get(n)]


def _flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in data.items():
        if name == "domains" and not prefix:
            flat |= {k: v for d in value for k, v in _flat(d, f"domains.{d['name']}.").items()}
        elif isinstance(value, Mapping) and name != "options":
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _keys_of(section: type[BaseModel], prefix: str) -> Iterator[tuple[str, FieldInfo]]:
    for name, info in section.model_fields.items():
        inner = DomainConfig if name == "domains" else info.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _keys_of(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", info


def _nearest(key: str, known: Mapping[str, Any] | Sequence[str]) -> str:
    """` (did you mean ...?)`, or nothing if no known key is near; compares the last part of dotted names too."""
    by_tail: dict[str, str] = {}
    for name in known:
        by_tail.setdefault(name.rsplit(".", 1)[-1], name)
    tail = key.rsplit(".", 1)[-1]
    close = [PEER_NAMES[tail]] if PEER_NAMES.get(tail) in known else []
    close = close or difflib.get_close_matches(key, list(known), n=1, cutoff=0.6)
    if not close:
        tails = difflib.get_close_matches(tail, list(by_tail), n=1, cutoff=0.7)
        close = [by_tail[t] for t in tails]
    return f" (did you mean {close[0]!r}?)" if close else ""


def _explain_error(error: Any, data: Mapping[str, Any]) -> str:
    place = _dotted(error["loc"], data)
    if error["type"] == "extra_forbidden":
        known = [name for name, _ in keys()]
        generic = ".".join(str(part) for part in error["loc"] if not isinstance(part, int))
        return f"unknown key {place!r}{_nearest(generic, known)}"
    message = str(error["msg"]).removeprefix("Value error, ")
    shown = "" if error["type"] in {"missing", "value_error"} else f", not {error.get('input')!r}"
    return f"{place}: {message}{shown}" if place else message


def _dotted(location: Sequence[str | int], data: Mapping[str, Any]) -> str:
    """`domains.gcd.shots` rather than `domains.0.shots`, where the domain has a name."""
    parts = [str(part) for part in location]
    if len(location) > 1 and location[0] == "domains" and isinstance(location[1], int):
        entry = data["domains"][location[1]]
        parts[1] = str(entry.get("name", location[1])) if isinstance(entry, Mapping) else parts[1]
    return ".".join(parts)


def apply_override(data: dict[str, Any], override: str) -> None:
    """Set one key of a recipe that is still plain data. Raises ConfigError for what is not KEY=VALUE or no section."""
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {override!r} is not KEY=VALUE", fix="for example --set learner.lr=2e-6")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *path, last = key.strip().split(".")
    node: Any = data
    for part in path:
        node = _step_into(node, part, override)
    if not isinstance(node, dict):
        raise ConfigError(f"--set {override!r}: {'.'.join(path)} is not a section")
    node[last] = value


def _step_into(node: Any, part: str, override: str) -> Any:
    if isinstance(node, list):
        for entry in node:
            if entry.get("name") == part:
                return entry
        names = [str(entry.get("name")) for entry in node]
        raise ConfigError(f"--set {override!r}: there is no domain {part!r}{_nearest(part, names)}")
    if not isinstance(node, dict):
        raise ConfigError(f"--set {override!r}: {part!r} is not a section")
    return node.setdefault(part, {})


def _toml_lines(table: Mapping[str, Any]) -> str:
    return "\n".join(f"{_toml_key(k)} = {_toml_value(v)}" for k, v in table.items() if v is not None)


def _toml_key(key: str) -> str:
    bare = key.replace("_", "a").replace("-", "a")
    return key if bare.isascii() and bare.isalnum() else _toml_value(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
        return '"' + "".join(escapes.get(c, c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}") for c in value) + '"'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml_key(k)} = {_toml_value(v)}" for k, v in value.items() if v is not None) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_toml_value(v) for v in value) + "]"
    return repr(value)
