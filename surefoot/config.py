"""The recipe: everything that can be configured, each key with its meaning.

A recipe is a TOML file. Unknown keys are errors that name the nearest known key. `surefoot config explain KEY` prints
what stands here beside a key, so these docstrings are the reference manual.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

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


class Section(BaseModel):
    """Base of all sections: frozen, no unknown keys, documented by attribute docstrings."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class DomainConfig(Section):
    """One `[[domains]]` entry: where tasks come from and how answers are graded."""

    name: str = Field(min_length=1, pattern=r"^[\w.+-]+$")
    """Name of the domain in this run; must be unique."""
    source: str = Field(min_length=1)
    """Where tasks come from: a built-in (`reasoning_gym:gcd`, `code:lists`, `instructions`), `file:PATH` (JSONL or
    Parquet, also .gz), or your own Python (`my_domain.py:domain` or an installed `surefoot.domains` entry point)."""
    options: dict[str, Any] = {}
    """Arguments of the source: difficulty settings of a generator, field mapping of a file."""
    grader: str | None = None
    """Name of the grader (`exact`, `choice`, `number`, `math`, `code`, `constraints`) or `path.py:function`; None
    for the source's own."""
    extract: Literal["whole", "first_line", "last_line", "last_number", "tag", "boxed", "code"] | None = None
    """How the answer is found in what the model wrote; None for the source's own way. `tag` means
    `<answer>...</answer>`."""
    instruction: str | None = None
    """Text put after the question in every prompt, such as `Reply with the final answer only.`; None for the
    source's own."""
    shots: int = Field(default=0, ge=0, le=32)
    """Worked examples shown as chat turns before each question, drawn from a range of their own."""
    max_new_tokens: int | None = Field(default=None, ge=1)
    """Longest answer in tokens; None for the source's own or `rollout.max_new_tokens`."""
    weight: float = Field(default=1.0, ge=0)
    """Share of prompts relative to the other domains."""
    chance: float | None = Field(default=None, ge=0, le=1)
    """Pass rate of blind guessing in the right format; None for the source's own. Reports show it beside results."""


class RolloutConfig(Section):
    """`[rollout]`: how trajectories are sampled."""

    engine: str = "local"
    """`local` (built in, CPU or one GPU) or the name of an installed `surefoot.engines` entry point."""
    prompts: int = Field(default=8, ge=1)
    """Prompts (groups) a step."""
    samples: int = Field(default=8, ge=1)
    """Samples a prompt: the group size G."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature. The learner uses the same, so that its log-probs are those that were sampled."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus sampling; below 1, the sampled distribution differs from the learner's."""
    top_k: int = Field(default=0, ge=0)
    """Keep the k most likely tokens; 0 for all. Above 0, the sampled distribution differs from the learner's."""
    stop: tuple[str, ...] = ()
    """Strings that end a sample, besides the end-of-turn token."""
    max_new_tokens: int = Field(default=64, ge=1)
    """Longest answer in tokens, where the domain does not say."""
    max_prompt_tokens: int = Field(default=2048, ge=1)
    """Longer prompts are an error that names the task."""
    batch: int = Field(default=128, ge=1)
    """Most samples decoded at the same time."""


class LearnerConfig(Section):
    """`[learner]`: the policy-gradient update."""

    loss: str = "grpo"
    """Name of the policy loss; see `surefoot.learner.losses`."""
    advantage: Literal["group_std", "group_mean"] = "group_std"
    """`group_std`: (r - mean) / (std + 1e-4), GRPO (arXiv 2402.03300); `group_mean`: r - mean, Dr. GRPO
    (arXiv 2503.20783)."""
    lr: float = Field(default=2e-5, gt=0)
    """Peak learning rate of AdamW."""
    warmup_steps: int = Field(default=3, ge=0)
    """Steps over which the learning rate rises linearly to `lr`."""
    schedule: Literal["constant", "linear"] = "constant"
    """What the learning rate does after warm-up: stays, or falls linearly to a tenth at the last step."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Decoupled weight decay; norms are exempt."""
    betas: tuple[float, float] = (0.9, 0.95)
    """AdamW's moment decay rates."""
    clip_low: float = Field(default=0.2, ge=0)
    """Lower clip of the ratio: 1 - clip_low."""
    clip_high: float = Field(default=0.2, ge=0)
    """Upper clip of the ratio: 1 + clip_high; larger than `clip_low` is DAPO's clip-higher (arXiv 2503.14476)."""
    kl: float = Field(default=0.0, ge=0)
    """Weight of the KL penalty to the starting model (k3 estimator); 0 keeps no reference model in memory."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradients are scaled down to this norm."""
    epochs: int = Field(default=1, ge=1)
    """Passes over each step's rollouts."""
    minibatches: int = Field(default=1, ge=1)
    """Optimiser steps a pass; groups are split among them."""
    token_budget: int = Field(default=2048, ge=64)
    """Most tokens in one forward-backward pass; more are accumulated. Lower it if memory runs out."""
    dtype: Literal["bfloat16", "float32"] = "bfloat16"
    """Compute type of matrix products in learner and engine. Master weights and optimiser state are always fp32."""
    checkpoint_activations: bool = False
    """Recompute activations in the backward pass: about a third slower, far less memory for long sequences."""


class WarmStartConfig(Section):
    """`[warm_start]`: supervised fine-tuning on the domains' own demonstrations before reinforcement learning."""

    examples: int = Field(default=0, ge=0)
    """Demonstrations in all, spread over the domains; 0 for no warm start."""
    epochs: int = Field(default=1, ge=1)
    """Passes over the demonstrations."""
    lr: float = Field(default=5e-5, gt=0)
    """Peak learning rate."""
    batch_tokens: int = Field(default=2048, ge=64)
    """Tokens an optimiser step."""


class SandboxConfig(Section):
    """`[sandbox]`: where untrusted programs run."""

    level: Literal["namespaces", "landlock", "rlimits"] = "namespaces"
    """Weakest isolation that is accepted; a machine that cannot give it is an error, never a silent downgrade."""
    allow_weak: bool = False
    """Must be true for `level = "rlimits"`, which does not isolate files or network."""
    workers: int = Field(default=2, ge=1)
    """Programs run at the same time."""
    cpu_seconds: float = Field(default=2.0, gt=0)
    """CPU time of one run; it decides the verdict."""
    wall_seconds: float = Field(default=20.0, gt=0)
    """Wall-clock backstop of one run."""
    memory_mb: int = Field(default=512, ge=32)
    """Memory of one run's process tree, MiB."""
    processes: int = Field(default=16, ge=1)
    """Processes and threads of one run."""
    output_kb: int = Field(default=64, ge=1)
    """Most stdout, and most stderr, of one run, KiB."""


class RewardConfig(Section):
    """`[reward]`: how a verdict becomes a number. Correctness gates all the rest."""

    partial: bool = False
    """Whether a wrong answer earns its degree of correctness (share of tests passed), always below a right one."""
    weights: dict[str, float] = {}
    """Weight of each bonus dimension (`format`, `efficiency`, ...); paid to right answers only and bounded by
    `bonus_cap` in sum."""
    bonus_cap: float = Field(default=0.2, ge=0, le=1)
    """Most that all bonuses together can add to a right answer's 1."""


class ScheduleConfig(Section):
    """`[schedule]`: which domains and prompts are drawn."""

    rule: str = "proportional"
    """`proportional` to the domains' weights, or `uniform`."""


class EvaluateConfig(Section):
    """`[evaluate]`: measuring stability on held-out tasks before, between and after."""

    tasks: int = Field(default=24, ge=1)
    """Held-out tasks a domain; training never draws their prompts."""
    samples: int = Field(default=8, ge=1)
    """Samples a task."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature of the evaluation."""
    before: bool = True
    """Evaluate before training (and after the warm start)."""
    after: bool = True
    """Evaluate after the last step."""


class CheckpointConfig(Section):
    """`[checkpoint]`: what a crash can cost."""

    every: int = Field(default=10, ge=1)
    """Steps between checkpoints; one is always written at the end."""
    keep: int = Field(default=2, ge=1)
    """Newest checkpoints that are kept."""


class Recipe(Section):
    """A whole training run."""

    model: str = Field(min_length=1)
    """`smollm2-135m-instruct` (embedded), `tiny` (random, for tests), a local Hugging Face directory, or a hub id."""
    steps: int = Field(default=40, ge=1)
    """Policy updates."""
    seed: int = 0
    """Every draw, sample and shuffle depends on it and on nothing else."""
    run_dir: str | None = None
    """Where everything about the run is written; default `runs/NAME-OF-RECIPE`."""
    threads: int = Field(default=0, ge=0)
    """CPU threads of torch; 0 for as many as there are cores."""
    device: str = "auto"
    """`cpu`, `cuda`, `cuda:1`, ..., or `auto`: a GPU if there is one."""
    domains: tuple[DomainConfig, ...] = Field(min_length=1)
    """One `[[domains]]` table each."""
    rollout: RolloutConfig = RolloutConfig()
    """How trajectories are sampled."""
    learner: LearnerConfig = LearnerConfig()
    """The policy-gradient update."""
    warm_start: WarmStartConfig = WarmStartConfig()
    """Supervised fine-tuning before reinforcement learning."""
    sandbox: SandboxConfig = SandboxConfig()
    """Where untrusted programs run."""
    reward: RewardConfig = RewardConfig()
    """How a verdict becomes a number."""
    schedule: ScheduleConfig = ScheduleConfig()
    """Which domains and prompts are drawn."""
    evaluate: EvaluateConfig = EvaluateConfig()
    """Measuring stability."""
    checkpoint: CheckpointConfig = CheckpointConfig()
    """What a crash can cost."""

    @model_validator(mode="after")
    def _domain_names_are_unique(self) -> Self:
        names = [d.name for d in self.domains]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two domains are called {name!r}; give each [[domains]] entry its own name")
        if not any(d.weight > 0 for d in self.domains):
            raise ValueError("every domain has weight 0, so there is nothing to draw")
        return self


# ------------------------------------------------------------------------------------------------------- reading


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
        _apply(data, override)
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


def to_toml(recipe: Recipe) -> str:
    """The resolved recipe as TOML that `load_recipe` reads back to an equal one."""
    data = recipe.model_dump(mode="json", exclude_none=True)
    scalars = {k: v for k, v in data.items() if not isinstance(v, dict) and k != "domains"}
    blocks = [_toml_lines(scalars)]
    blocks += [f"[{k}]\n{_toml_lines(v)}" for k, v in data.items() if isinstance(v, dict)]
    blocks += [f"[[domains]]\n{_toml_lines(d)}" for d in data["domains"]]
    return "\n\n".join(blocks) + "\n"


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


def _apply(data: dict[str, Any], override: str) -> None:
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
