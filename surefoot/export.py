"""A run's model as a Hugging Face directory with a model card."""

from __future__ import annotations

import shutil
from pathlib import Path

from surefoot.config import Recipe
from surefoot.errors import RunError
from surefoot.evaluate import read
from surefoot.evaluate.findings import report_findings
from surefoot.evaluate.report import to_markdown
from surefoot.recipe import load_recipe
from surefoot.store import atomic
from surefoot.store.checkpoint import score_of
from surefoot.store.overview import sound_checkpoints

OURS = ("optimizer.safetensors", "state.json", "checksums.json")
"""Files of a checkpoint that only a resumed run needs."""


def export_model(run: Path, to: Path, *, best: bool = False) -> Path:
    """Write the last checkpoint, or the one with the best score, to a new directory; returns the checkpoint.

    Adapters are merged into the weights already; their own folder stays behind.

    Raises:
        RunError: There is no run or no sound checkpoint, none has a score, or `to` exists.
    """
    if to.exists():
        raise RunError("this exists already", where=str(to), fix="choose another --to")
    sound = list(sound_checkpoints(run))
    if not sound:
        raise RunError("there is no sound checkpoint", where=str(run), fix="surefoot runs verify says what is wrong")
    chosen = _best(sound) if best else sound[0]
    to.parent.mkdir(parents=True, exist_ok=True)
    with atomic.new_directory(to) as scratch:
        for path in chosen.iterdir():
            if path.is_file() and path.name not in OURS:
                shutil.copyfile(path, scratch / path.name)
        (scratch / "README.md").write_text(model_card(run, chosen, load_recipe(run / "config.toml")), encoding="utf-8")
    return chosen


def _best(newest_first: list[Path]) -> Path:
    """The one with the best score, the oldest of equals."""
    scored = {path: score for path in reversed(newest_first) if (score := score_of(path)) is not None}
    if not scored:
        raise RunError("no checkpoint has a score", where="--best", fix="set checkpoint.keep_best, or leave out --best")
    return max(scored, key=scored.__getitem__)


def model_card(run: Path, checkpoint: Path, recipe: Recipe) -> str:
    """The README.md of an exported model: what it was trained on, how, and what changed by it."""
    lines = ["---", "library_name: transformers", "tags: [surefoot, reinforcement-learning]", "---", ""]
    lines += [f"# {recipe.model}, after reinforcement learning with Surefoot", ""]
    lines += [
        f"Checkpoint `{checkpoint.name}` of a run of {recipe.steps} steps, seed {recipe.seed}.",
        "",
        "## Domains",
        "",
    ]
    lines += ["| domain | source | grader | weight |", "|---|---|---|---|"]
    for domain in recipe.domains:
        source = domain.source.replace("|", "\\|")
        lines.append(f"| {domain.name} | {source} | {domain.grader or 'the source’s own'} | {domain.weight:g} |")
    reward = recipe.reward
    bonus = ", ".join(f"{name} {weight:g}" for name, weight in reward.weights.items()) or "none"
    lines += ["", "## Reward", "", f"1 for a right answer. Bonuses: {bonus}, at most {reward.bonus_cap:g} in sum."]
    lines += [f"Partial credit: {'yes' if reward.partial else 'no'}. Loss: {recipe.learner.loss}.", ""]
    made = [read(run / "evaluations" / name) for name in _evaluations(run)]
    if made:
        lines += ["## Held-out tasks", "", "Evaluations of the run, the last after its last step.", ""]
        lines += [to_markdown(made), "", "## Findings", ""]
        lines += [f"- {sentence}" for sentence in report_findings(made)]
    lines += ["", "## Licence", ""]
    lines += [
        f"These weights derive from `{recipe.model}`, whose licence goes on to apply. The training tasks come from:"
    ]
    lines += [*(f"- {source}" for source in dict.fromkeys(domain.source for domain in recipe.domains)), ""]
    lines += ["Surefoot does not know the licences of the tasks; look them up before you publish this model.", ""]
    return "\n".join(lines)


def _evaluations(run: Path) -> list[str]:
    """The evaluations of the run that are complete, in their order."""
    order = ("base", "warm-start", "after-RL")
    return [name for name in order if (run / "evaluations" / name / "evaluation.json").is_file()]
