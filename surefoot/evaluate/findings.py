"""What an evaluation found, in plain sentences that claim no more than the numbers carry."""

from __future__ import annotations

from collections.abc import Sequence

from surefoot.evaluate.calibration import calibration_findings
from surefoot.evaluate.comparison import Change, Comparison, compare
from surefoot.evaluate.intervals import Estimate
from surefoot.evaluate.metric import PASS_1, Metric, estimate
from surefoot.evaluate.modes import modes
from surefoot.evaluate.records import DomainRecord, Evaluation
from surefoot.evaluate.retention import retention_findings
from surefoot.evaluate.sensitivity import sensitivity_findings


def findings(before: Evaluation, after: Evaluation, *, alpha: float = 0.05) -> list[str]:
    """Which domains improved, got worse, did not change detectably or stayed at chance, whether the model became
    steadier, and what the figures leave out."""
    once = compare(before, after, PASS_1, alpha=alpha)
    if not once.domains:
        return ["The two evaluations share no domain, so nothing can be compared.", *caveats(after)]
    return [
        *([_mean(once)] if len(once.domains) > 1 else []),
        *[_changed(change, after.domain(change.name)) for change in once.domains if change.direction == "better"],
        *[_changed(change, after.domain(change.name)) for change in once.domains if change.direction == "worse"],
        *_unclear(once),
        *_at_chance(once, before, after),
        *_steadiness(before, after, alpha),
        *_mismatches(once, before, after),
        *caveats(after),
    ]


def caveats(evaluation: Evaluation) -> list[str]:
    """What the figures of one evaluation leave out, and how its samples failed."""
    drawn = sum(d.drawn for d in evaluation.domains)
    lost = {d.name: d.ungradable for d in evaluation.domains if d.ungradable}
    cut = {d.name: d.truncated for d in evaluation.domains if d.truncated}
    title = evaluation.title
    if lost:
        told = [
            f"{title}: {sum(lost.values())} of {drawn} samples could not be graded and are in no figure "
            f"({_counted(lost)}); the fault lies with the grader or the machine, not with the model."
        ]
    else:
        told = [f"{title}: all {drawn} samples could be graded."]
    if long := {d.name: len(d.skipped) for d in evaluation.domains if d.skipped}:
        whole = sum(len(d.tasks) + len(d.skipped) for d in evaluation.domains)
        told.append(
            f"{title}: {sum(long.values())} of {whole} tasks were left out because their prompt is too long "
            f'({_counted(long)}); they are in no figure, and are listed under "Left out".'
        )
    failed = modes(sample for d in evaluation.domains for sample in d)
    if failed.keys() - {"wrong", "ungradable"}:
        shown = ", ".join(f"{mode} {count / drawn:.0%}" for mode, count in failed.most_common(4))
        told.append(f"{title}: how samples failed, of all: {shown}.")
    if cut:
        told.append(
            f"{title}: {sum(cut.values())} of {drawn} samples were cut off at the token limit ({_counted(cut)})."
        )
    return told


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))


def _mean(once: Comparison) -> str:
    change, many = once.mean, len(once.domains)
    verb = {"better": "rose", "worse": "fell", "unclear": "did not change detectably:"}[change.direction]
    return (
        f"Mean {once.metric} over {many} domains {verb} from {_share(change.before)} to {_share(change.after)} "
        f"({_points(change.difference)}; {_p(change.p)})."
    )


def _changed(change: Change, domain: DomainRecord | None) -> str:
    verb = "improved" if change.direction == "better" else "got worse"
    said = (
        f"{change.name} {verb}: pass@1 from {_share(change.before)} to {_share(change.after)} "
        f"({_points(change.difference)}; Holm-adjusted {_p(change.adjusted)})"
    )
    if change.direction == "better" and domain and _is_chance(change.after, domain):
        return (
            f"{said}, but no higher than the {domain.chance:.0%} that blind answers in the right format reach: the "
            "format was learnt, the task not."
        )
    return f"{said}."


def _unclear(once: Comparison) -> list[str]:
    """One sentence for all domains without a detectable change."""
    still = [change for change in once.domains if change.direction == "unclear"]
    if not still:
        return []
    told = ", ".join(f"{change.name} ({_points(change.difference)})" for change in still)
    return [f"No detectable change in pass@1: {told}."]


def _at_chance(once: Comparison, before: Evaluation, after: Evaluation) -> list[str]:
    """Domains that blind answering explains before and after."""
    stayed = []
    for change in once.domains:
        pair = before.domain(change.name), after.domain(change.name)
        if pair[0] and pair[1] and _is_chance(change.before, pair[0]) and _is_chance(change.after, pair[1]):
            stayed.append(f"{change.name} ({_share(change.after)}, chance {pair[1].chance:.0%})")
    return [f"Not above chance before or after: {', '.join(stayed)}."] if stayed else []


def _is_chance(found: Estimate, domain: DomainRecord) -> bool:
    """Whether blind answering explains the figure: it is within the interval, or above it."""
    return found.known and (found.low <= domain.chance if domain.chance > 0 else found.value == 0)


def _steadiness(before: Evaluation, after: Evaluation, alpha: float) -> list[str]:
    """Whether all of k samples are right more often: the change in pass^k.

    k is half of the samples: pass^k with all of them is a mere yes or no a task, in which less would show.
    """
    samples = min(before.samples, after.samples)
    if samples < 2:
        return []
    metric = Metric("pass^", max(2, samples // 2))
    every = compare(before, after, metric, alpha=alpha)
    told = []
    for direction, word in (("better", "Steadier"), ("worse", "Less steady")):
        some = [change for change in every.domains if change.direction == direction]
        if some:
            shown = ", ".join(f"{c.name} ({_share(c.before)} to {_share(c.after)})" for c in some)
            told.append(f"{word}, {metric.k} of {metric.k} samples right ({metric}): {shown}.")
    return told or [f"No domain became detectably steadier or less steady ({metric})."]


def _mismatches(once: Comparison, before: Evaluation, after: Evaluation) -> list[str]:
    """Whatever makes the two evaluations less than fully comparable."""
    told = []
    for names, only in ((once.only_before, before.title), (once.only_after, after.title)):
        if names:
            told.append(f"Evaluated only for {only}, and not compared: {', '.join(names)}.")
    if before.sampling != after.sampling:
        told.append(
            f"Caution: sampled differently ({before.title}: {_sampling(before)}; {after.title}: {_sampling(after)})."
        )
    if before.samples != after.samples:
        told.append(f"Caution: {before.samples} samples a task for {before.title}, {after.samples} for {after.title}.")
    unpaired = _unpaired(before, after)
    if unpaired:
        told.append(f"Tasks that only one of the two has are not compared: {_counted(unpaired)}.")
    return told


def _unpaired(before: Evaluation, after: Evaluation) -> dict[str, int]:
    counts = {}
    for domain in before.domains:
        other = after.domain(domain.name)
        if other:
            ids = [{(t.id, t.prompt_hash) for t in d.tasks} for d in (domain, other)]
            counts[domain.name] = len(ids[0] ^ ids[1])
    return {name: count for name, count in counts.items() if count}


def _sampling(evaluation: Evaluation) -> str:
    s = evaluation.sampling
    return f"temperature {s.temperature:g}, top-p {s.top_p:g}, top-k {s.top_k}"


def _share(found: Estimate) -> str:
    return f"{found.value:.1%}" if found.known else "unknown"


def _points(found: Estimate) -> str:
    if not found.known:
        return "no task in common"
    return f"{100 * found.value:+.1f} points, 95% interval {100 * found.low:+.1f} to {100 * found.high:+.1f}"


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def report_findings(evaluations: Sequence[Evaluation]) -> list[str]:
    """The sentences of a report: what the last stage added to the one before it and, with three stages or more, what
    all of them did together."""
    last = evaluations[-1]
    also = [*calibration_findings(last), *sensitivity_findings(last), *retention_findings(last.conversations)]
    evaluations = [evaluation.originals for evaluation in evaluations]
    if len(evaluations) == 1:
        only = evaluations[0]
        low = [d.name for d in only.domains if _is_chance(estimate(PASS_1, d), d)]
        return [*([f"Not above chance: {', '.join(low)}."] if low else []), *also, *caveats(only)]
    first, before, after = evaluations[0], evaluations[-2], evaluations[-1]
    told = findings(before, after)
    whole = compare(first, after)
    if len(evaluations) > 2 and whole.domains:
        told.insert(0, f"From {first.title} to {after.title}: {_mean(whole)}")
        told.insert(1, f"What follows compares {after.title} with {before.title}.")
    return [*told, *also]
