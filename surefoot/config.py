"""The recipe: everything that can be configured, each key with its meaning.

`surefoot config explain KEY` prints what stands here beside a key, so these docstrings are the reference manual.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from surefoot.config_cluster import ClusterConfig
from surefoot.config_learning import DomainLearning, LearnerConfig, LoraConfig, RopeConfig, WarmStartConfig
from surefoot.config_section import Section
from surefoot.config_session import SessionConfig
from surefoot.config_tracking import TrackingConfig

__all__ = [
    "CheckpointConfig",
    "ClusterConfig",
    "DomainConfig",
    "DomainLearning",
    "EvaluateConfig",
    "FaultsConfig",
    "ImageConfig",
    "IntegrityConfig",
    "LearnerConfig",
    "LoraConfig",
    "Recipe",
    "RewardConfig",
    "RolloutConfig",
    "RopeConfig",
    "SandboxConfig",
    "ScheduleConfig",
    "Section",
    "SessionConfig",
    "TrackingConfig",
    "WarmStartConfig",
]


class DomainConfig(Section):
    """One `[[domains]]` entry: where tasks come from and how answers are graded."""

    name: str = Field(min_length=1, pattern=r"^[\w.+-]+$")
    """Name of the domain in this run; must be unique."""
    source: str = Field(min_length=1)
    """Where tasks come from: a built-in (`reasoning_gym:gcd`, `code:lists`, `instructions`), `file:PATH` (JSONL or
    Parquet, also .gz), or your own Python (`my_domain.py:domain` or an installed `surefoot.domains` entry point)."""
    options: dict[str, Any] = {}
    """Arguments of the source: difficulty settings of a generator, field mapping of a file."""
    levels: Annotated[int, Field(ge=1, le=20)] | tuple[dict[str, Any], ...] = 1
    """Levels of difficulty among which the scheduler chooses: how many of a reasoning-gym generator's own curriculum,
    or the options of each, the easiest first; 1 for none. All levels are evaluated, in turn."""
    grader: str | None = None
    """Name of the grader (`exact`, `choice`, `number`, `math`, `code`, `constraints`,
    `function_calls`, `ifeval`, `grid`) or `path.py:function`; None
    for the source's own."""
    image: str | None = None
    """Sandbox image that the domain's programs run in: `python`, `python-scientific`, or one of `[sandbox.images]`;
    None for the grader's own."""
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
    """Share of prompts relative to the other domains; the adaptive rule takes it as the domain's priority."""
    min_share: float = Field(default=0.0, ge=0, le=1)
    """Least share of prompts, whatever the scheduling rule thinks."""
    max_share: float = Field(default=1.0, gt=0, le=1)
    """Largest share of prompts."""
    chance: float | None = Field(default=None, ge=0, le=1)
    """Pass rate of blind guessing in the right format; None for the source's own. Reports show it beside results."""
    learner: DomainLearning = DomainLearning()
    """Loss, clip and KL of this domain, if not the recipe's: `learner = { loss = "gspo", kl = 0.01 }`."""
    session: SessionConfig = SessionConfig()
    """Bounds of an episode, for domains of many turns: `session = { turns = 6, tokens = 4096 }`."""
    card: str | None = None
    """Path of a domain card that `surefoot audit` wrote: what blind guessing earned there is the chance level, if it is
    more than the source's own, partial credit counts from the floor that was paid for nothing, and the scheduler
    reckons with its time of a grading. A card whose fingerprint is not that of tasks and grader is refused."""
    profile: str | None = None
    """Path of a profile that `surefoot data profile` wrote: the scheduler starts from it, not from nothing."""


class RolloutConfig(Section):
    """`[rollout]`: how trajectories are sampled."""

    engine: Literal["local", "vllm"] = "local"
    """What samples while training: `local` (built in, CPU or one GPU), or `vllm` in a process of its own, which
    gets the new weights after every step (docs/vllm.md)."""
    vllm_python: str | None = None
    """Python interpreter of an environment with vLLM, for `engine = "vllm"`; None for Surefoot's own."""
    vllm_memory: int = Field(default=2, ge=1)
    """Memory for vLLM's KV cache on a CPU, GiB."""
    vllm_gpu_share: float = Field(default=0.4, gt=0, le=1)
    """Share of the GPU's memory that vLLM takes; the learner needs the rest."""
    vllm_seconds: float = Field(default=600.0, gt=0)
    """Longest that vLLM may be silent (starting, loading weights, sampling) before it is taken for dead and started
    anew."""
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
    """Tasks with longer prompts are not sampled: training draws others in their place and says so in the events, and
    evaluations count and list them apart."""
    batch: int = Field(default=128, ge=1)
    """Most samples decoded at the same time."""


class ImageConfig(Section):
    """`[sandbox.images.NAME]`: what programs of a domain with `image = "NAME"` see. Changes `python` and
    `python-scientific` under these names."""

    python: str | None = None
    """The interpreter, a virtual environment's for instance; None for Surefoot's own."""
    packages: tuple[str, ...] = ()
    """Site packages that can be imported; they are loaded once, before the first run. No others can be seen."""
    preload: tuple[str, ...] = ()
    """More modules to load before the first run."""
    paths: tuple[str, ...] = ()
    """More files and folders of the host that can be read, under their own names."""
    search: tuple[str, ...] = ()
    """More folders on the module search path; readable like `paths`."""
    env: dict[str, str] = {}
    """Additions to the fixed environment."""
    deterministic: bool = True
    """Fix the seeds of `random` and numpy and what `os.urandom` gives."""
    clock: float | None = None
    """If given, the time of day stands still there (seconds since 1970)."""


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
    disk_mb: int = Field(default=16, ge=1)
    """Size of one run's private work directory, MiB."""
    images: dict[str, ImageConfig] = {}
    """Images by name: interpreter, packages and environment of programs; `packages = ["numpy", "pandas"]`."""


class IntegrityConfig(Section):
    """`[reward.integrity]`: what is done about signs of cheating."""

    enabled: bool = True
    """Whether rollouts are inspected."""
    actions: dict[str, Literal["ignore", "flag", "zero", "quarantine"]] = {}
    """Action by kind of finding (`many_answers`, `test_literals`, ...), where it is not to be the kind's own: `flag`
    counts and keeps it, `zero` takes the reward away, `quarantine` also takes the rollout out of training."""
    phrases: dict[str, Literal["flag", "zero", "quarantine"]] = {}
    """Phrases that reviewers rejected, and the action on an answer that has one; case and spacing do not matter.
    `surefoot review RUN --rules rules.toml` writes them."""


class RewardConfig(Section):
    """`[reward]`: how a verdict becomes a number. Correctness gates all the rest."""

    partial: bool = False
    """Whether a wrong answer earns its degree of correctness (share of tests passed), always below a right one."""
    weights: dict[str, float] = {}
    """Weight of each bonus dimension (`format`, `efficiency`, ...); paid to right answers only and bounded by
    `bonus_cap` in sum."""
    bonus_cap: float = Field(default=0.2, ge=0, le=1)
    """Most that all bonuses together can add to a right answer's 1."""
    normalise: Literal["group", "none"] = "group"
    """`group`: each bonus dimension is brought to one scale among the right answers of a group before it is weighted
    (decoupled normalisation, GDPO, arXiv 2601.05242), so that none drowns another; `none`: as measured."""
    integrity: IntegrityConfig = IntegrityConfig()
    """What is done about signs of cheating."""


class ScheduleConfig(Section):
    """`[schedule]`: which domains and prompts are drawn."""

    rule: Literal["adaptive", "proportional", "uniform", "dapo", "sec", "dump"] = "proportional"
    """`adaptive`: where learning per cost is to be had, under floors and caps (docs/scheduler.md); `proportional` to
    the domains' weights; `uniform`; for comparison also `dapo` (oversampling), `sec` and `dump` (bandits)."""
    temperature: float = Field(default=1.0, gt=0)
    """Of the adaptive rule: above 1 evens shares out, below 1 sharpens them."""
    stale: int = Field(default=40, ge=1)
    """Of the adaptive rule: steps after which a domain is drawn again at the latest; more if there are more than ten
    domains for each prompt of a step."""
    second_price: float = Field(default=0.0, ge=0)
    """Tokens that a second of grading is worth. Above 0, draws depend on measured time, so runs are not repeatable,
    unless every domain has a card, which says the time."""


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
    every: int = Field(default=0, ge=0)
    """Steps between evaluations while training, each held against the one before training; 0 for none."""
    gate: str = ""
    """Metric that must not get worse in any domain, such as `pass^4`; empty for pass^k with k half of the samples."""
    on_regression: Literal["report", "slow", "roll_back", "stop"] = "report"
    """What a domain that got worse (paired test, Holm-adjusted at 5%) leads to: a line in the log; half of its share of
    prompts; that and the weights of the last evaluation that was passed; the end of the training."""

    @model_validator(mode="after")
    def _gates_have_a_reference(self) -> Self:
        if self.every and not self.before:
            raise ValueError("evaluations while training are held against the one before it: every needs before = true")
        return self


class CheckpointConfig(Section):
    """`[checkpoint]`: what a crash can cost."""

    every: int = Field(default=10, ge=1)
    """Steps between checkpoints; one is always written at the end."""
    keep: int = Field(default=2, ge=1)
    """Newest checkpoints that are kept."""
    keep_every: int = Field(default=0, ge=0)
    """Checkpoints of steps that this divides are kept as well; 0 for none."""
    keep_best: str = ""
    """Key of the metrics, such as `pass_rate` or `domains/code/pass_rate`: the checkpoint with the largest mean of it
    since the checkpoint before is kept as well; empty for none."""


class FaultsConfig(Section):
    """`[faults]`: what happens when a part of a run fails."""

    trip: float = Field(default=0.5, gt=0, le=1)
    """Share of ungradable rollouts at which a domain is shut off for a while."""
    evidence: int = Field(default=8, ge=1)
    """Recent rollouts of a domain that must have been seen before it can be shut off."""
    wait: int = Field(default=5, ge=1)
    """Steps until a domain that was shut off is tried again; twice as many each time it fails again."""
    slow: float = Field(default=0.0, ge=0)
    """Mean seconds of a grading beyond which a domain is shut off; 0 for never. Above 0, draws depend on measured time,
    so runs are not repeatable."""
    deadline: float = Field(default=120.0, gt=0)
    """Longest that grading one rollout may take, retries included, seconds."""
    retries: int = Field(default=1, ge=0)
    """How often a grader that raised is asked again, after a short pause of random length."""
    poison: int = Field(default=1, ge=1)
    """Groups of a task in a row without a gradable rollout, while other tasks of its domain can be graded, after which
    it is never drawn again and put into `quarantine.jsonl`."""
    roll_back: int = Field(default=3, ge=1)
    """Updates in a row with a loss or gradient that is not finite, after which the weights of the last checkpoint from
    before them are taken up again."""
    give_up: int = Field(default=10, ge=1)
    """Steps in a row without one gradable rollout after which the run saves and ends with an error."""


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
    rope: RopeConfig = RopeConfig()
    """A longer window than the model was trained with."""
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
    faults: FaultsConfig = FaultsConfig()
    """What happens when a part of the run fails."""
    cluster: ClusterConfig = ClusterConfig()
    """Engines and graders as processes on one or many machines."""
    tracking: TrackingConfig = TrackingConfig()
    """Who is told of the run besides its own directory."""

    @model_validator(mode="after")
    def _names_are_known_and_unique(self) -> Self:
        names = [d.name for d in self.domains]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two domains are called {name!r}; give each [[domains]] entry its own name")
        images = sorted({"python", "python-scientific", *self.sandbox.images})
        for domain in self.domains:
            if domain.image is not None and domain.image not in images:
                unknown = f"domains.{domain.name}.image: there is no image {domain.image!r}"
                raise ValueError(f"{unknown}; there are {', '.join(images)}")
        if not any(d.weight > 0 for d in self.domains):
            raise ValueError("every domain has weight 0, so there is nothing to draw")
        return self
