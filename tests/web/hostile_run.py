"""A run directory as the store's own writers make it, with hostile text wherever a model can put some."""

from __future__ import annotations

from pathlib import Path

from surefoot.store.journal import Journal
from surefoot.store.rollouts import write_rollouts
from surefoot.store.summary import summarise
from surefoot.types import Check, Execution, Finding, Group, Reward, Rollout, Task, Verdict

SCRIPT = "<script>window.hacked = 1</script>"
HOSTILE = f"""'"><img src=x onerror="window.hacked=1" class='evil'>{SCRIPT}</div></pre><svg onload=window.hacked=1>"""


def sample(task: str, domain: str, number: int, text: str, right: bool) -> tuple[Rollout, Verdict, Reward]:
    rollout = Rollout(
        task, domain, number, (1, 2, 3, 4), (False, True, True, False), (0.0, -0.01, -5.0, 0.0), text, "stop", 3, 7
    )
    verdict = Verdict(
        "right" if right else "wrong",
        float(right),
        (Check(f"check {text}", right, f"evidence {text}"),),
        (Execution("ok" if right else "timeout", stdout=text, stderr=text, detail=text),),
        () if right else (Finding("many_answers", "warning", text),),
        {"format": 0.5},
        reason=text,
    )
    return rollout, verdict, Reward(float(right))


def write_step(run: Path, journal: Journal, step: int, texts: tuple[str, ...] = ("forty-two", HOSTILE)) -> None:
    groups = []
    for domain in ("sums", "code"):
        task = Task(f"{domain}/train/{step}", domain, ({"role": "user", "content": f"What is {step}? {HOSTILE}"},))
        samples = [sample(task.id, domain, i, text, i == 0) for i, text in enumerate(texts)]
        rollouts, verdicts, rewards = zip(*samples, strict=True)
        groups.append(Group(task, rollouts, verdicts, rewards))
    write_rollouts(run / "rollouts", step, groups)
    timing = {"generate": 1.0, "generate_and_grade": 1.5, "learn": 0.5, "record": 0.1, "step": 2.1}
    learner = {"entropy": 1.0 / step, "gap/mean_abs": 1e-4, "grad_norm": float("nan")}
    journal.metrics(step, {**summarise(groups), "learner": learner, "timing": timing})
