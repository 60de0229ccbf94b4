"""From a recipe to the parts of a run: models, domains, engine, graders. No decisions, only assembly."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from surefoot.config import DomainConfig, FaultsConfig, Recipe, RolloutConfig, SandboxConfig
from surefoot.domains import TaskPool, build_domain
from surefoot.errors import ConfigError
from surefoot.evaluate.variants import INPUTS, derive, derive_inputs
from surefoot.models import Decoder, LoadedModel, load_model
from surefoot.models.compute import pick_device, pick_dtype
from surefoot.models.templates import ChatTemplate
from surefoot.protocols import Domain, Engine, Graders, Sandbox, TrainingEngine
from surefoot.rewards import GradingPool
from surefoot.rollout import LocalEngine
from surefoot.rollout.openai import EndpointOptions, OpenAIEngine, is_endpoint
from surefoot.rollout.session import SessionEngine
from surefoot.sandbox.from_recipe import sandbox_of
from surefoot.schedule import Arms, DomainScheduler, make_rule
from surefoot.schedule.warm import warm
from surefoot.types import Task


@dataclass(frozen=True)
class Suite:
    """The domains of a run with their tasks, and what grades them."""

    domains: tuple[Domain, ...]
    pools: Mapping[str, TaskPool]
    graders: Graders
    sandbox: Sandbox


@contextmanager
def open_suite(
    configs: Sequence[DomainConfig],
    rollout: RolloutConfig,
    sandbox: SandboxConfig,
    *,
    heldout: int,
    seed: int,
    train: bool = True,
    variants: Sequence[str] = (),
    faults: FaultsConfig | None = None,
) -> Iterator[Suite]:
    """Domains, pools and graders over one sandbox; all of it is closed at the end of the block.

    Without `train`, domains need no tasks to train on. For each of `variants` there is a further domain of changed
    held-out tasks, wherever some can be changed.

    Raises ConfigError or DataError for a domain that cannot be built, SandboxError where the level is not to be had.
    """
    domains = tuple(build_domain(c, default_max_new_tokens=rollout.max_new_tokens) for c in configs)
    pools = {domain.name: TaskPool(domain, heldout, seed=seed) for domain in domains}
    for pool in pools.values():
        _ = pool.heldout, train and pool.train(0)  # bad data is reported before the minutes of loading and evaluating
    with sandbox_of(sandbox) as box:
        changed = [new for domain in domains for new in _variants(domain, pools[domain.name].heldout, variants, box)]
        pools |= {domain.name: TaskPool(domain, heldout, seed=seed) for domain in changed}
        domains = (*domains, *changed)
        faults = faults or FaultsConfig()
        graders = GradingPool(domains, box, sandbox.workers, seconds=faults.deadline, retries=faults.retries)
        try:
            yield Suite(domains, pools, graders, box)
        finally:
            graders.close()


def _variants(domain: Domain, tasks: Sequence[Task], names: Sequence[str], box: Sandbox) -> Iterator[Domain]:
    for name in names:
        if name == INPUTS:
            yield from derive_inputs(domain, tasks, box)
        elif changed := derive(domain, tasks, name):
            yield changed


def scheduler(recipe: Recipe, suite: Suite) -> DomainScheduler:
    """The scheduler that `schedule.rule` names."""
    settings = recipe.schedule
    uniform = settings.rule == "uniform"
    limits = {config.name: config for config in recipe.domains}
    arms = Arms.of(
        {d.name: float(d.weight > 0) if uniform else d.weight for d in suite.domains},
        levels={name: pool.levels for name, pool in suite.pools.items()},
        floors={name: config.min_share for name, config in limits.items()},
        caps={name: config.max_share for name, config in limits.items()},
    )
    rule = make_rule(settings, arms, samples=recipe.rollout.samples, seed=recipe.seed)
    made = DomainScheduler(
        suite.pools,
        arms,
        rule,
        {domain.name: domain.max_new_tokens for domain in suite.domains},
        prompts=recipe.rollout.prompts,
        samples=recipe.rollout.samples,
        seed=recipe.seed,
        second_price=settings.second_price,
        grader_seconds={d.name: d.grader_seconds for d in suite.domains if d.grader_seconds is not None},
    )
    for config in recipe.domains:
        if config.profile:
            warm(made, config.name, Path(config.profile).expanduser())
    return made


def engine(model: LoadedModel, decoder: Decoder, rollout: RolloutConfig, version: int = 0) -> LocalEngine:
    """A local engine over `decoder`, which it does not copy: new weights written into it are sampled from."""
    return LocalEngine(
        decoder,
        model.tokenizer,
        model.end_tokens,
        batch=rollout.batch,
        max_prompt_tokens=rollout.max_prompt_tokens,
        version=version,
    )


def policy_engine(
    model: LoadedModel, decoder: Decoder, rollout: RolloutConfig, *, longest_answer: int, version: int
) -> TrainingEngine:
    """The engine that `rollout.engine` names, following `decoder`. Raises ConfigError where it is not to be had."""
    if rollout.engine == "vllm":
        from surefoot.rollout.vllm import VllmEngine

        return VllmEngine(model, decoder, rollout, longest_answer=longest_answer, version=version)
    return engine(model, decoder, rollout, version)


def with_sessions(engine: TrainingEngine, model: LoadedModel, suite: Suite, recipe: Recipe) -> TrainingEngine:
    """The engine, able to play episodes if any domain has an environment. Raises ModelError for an unfit template."""
    if not any(domain.environment for domain in suite.domains):
        return engine
    return SessionEngine(
        engine,
        ChatTemplate(model.tokenizer, model.end_tokens),
        suite.domains,
        suite.sandbox,
        max_prompt_tokens=recipe.rollout.max_prompt_tokens,
        max_positions=model.decoder.config.max_positions,
        seconds=recipe.faults.deadline,
    )


def open_engine(name: str, recipe: Recipe, suite: Suite, endpoint: EndpointOptions | None = None) -> Engine:
    """An engine for evaluating only: over a model that is loaded here, or over an endpoint (`http://...`).

    Raises ConfigError where an endpoint is to play episodes: it takes no tokens to go on from.
    """
    if not is_endpoint(name):
        model = load_model(name, seed=recipe.seed, rope=recipe.rope)
        return with_sessions(sampling_engine(model, recipe), model, suite, recipe)
    if many := [domain.name for domain in suite.domains if domain.environment]:
        raise ConfigError(
            "episodes of many turns need a model that is loaded here, not an endpoint",
            where=f"domains.{many[0]}",
            fix="leave the domain out, or name a model or a run directory",
        )
    return OpenAIEngine(name, endpoint or EndpointOptions())


def sampling_engine(model: LoadedModel, recipe: Recipe) -> LocalEngine:
    """An engine over a copy of the model that is for sampling only, in the compute type, on the device."""
    device = pick_device(recipe.device)
    decoder = copy.deepcopy(model.decoder).to(device, pick_dtype(recipe.learner.dtype, device)).requires_grad_(False)
    return engine(model, decoder, recipe.rollout)


def set_threads(wanted: int) -> None:
    """Let torch use `wanted` CPU threads (0: one a core), and always the same, so that sums are repeatable."""
    torch.set_num_threads(wanted or len(os.sched_getaffinity(0)))
