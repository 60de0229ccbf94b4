"""The audit of verifiers: what it must find in graders that are bad in a known way, and real faults that there are."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from made_up import ListSource, ask, domain_of, written
from typer.testing import CliRunner

from surefoot.config import DomainConfig, IntegrityConfig
from surefoot.domains import build_domain
from surefoot.domains.audit import Rate, audit
from surefoot.domains.audit.cases import read_cases
from surefoot.domains.audit.page import to_html
from surefoot.domains.audit.probes import NON_ANSWERS, attacks, guesses
from surefoot.domains.audit.record import as_data, card_of, from_data, write_cards
from surefoot.domains.audit.twin import ask_twins
from surefoot.domains.audit.variants import variants
from surefoot.domains.fingerprint import fingerprint
from surefoot.domains.reasoning_raw import as_published
from surefoot.errors import ConfigError, DataError
from surefoot.rewards.cards import read_cards
from surefoot.rewards.graders import named_grader
from surefoot.store.review import open_review
from surefoot.store.rollouts import write_rollouts
from surefoot.types import Group, Reward, Verdict


def numbers(count: int, start: int = 100):
    return [ask(f"Say the number {i}, please.", str(i)) for i in range(start, start + count)]


SOUND = ListSource(numbers(30), numbers(9, 500))


class Judge:
    """Grades with a function of (task, text)."""

    def __init__(self, decide):
        self.decide = decide

    def grade(self, task, rollout, sandbox):
        decided = self.decide(task, rollout.text)
        if isinstance(decided, Verdict):
            return decided
        return Verdict("right", 1.0) if decided else Verdict("wrong")


def faulty(decide, source=SOUND, **fields):
    return domain_of(source, Judge(decide), **fields)


def is_answer(task, text):
    return text.strip() == task.checks["answer"]


def pays_a_little(task, text):
    return Verdict("right", 1.0) if is_answer(task, text) else Verdict("wrong", 0.3)


def test_a_sound_domain_holds(sandbox):
    found = audit(domain_of(SOUND), sandbox, 10)
    assert not found.fails(0.0) and (found.fooled.hits, found.refused.hits, found.floor) == (0, 0, 0.0)
    assert found.tasks == 10 and found.fooled.tries == 10 and found.oracle_failures == Rate(0, 10)
    kinds = {probe.kind for probe in found.probes}
    assert kinds == {"reference", "non-answer", "hedge", "guess", "variant", "taste"}


@pytest.mark.parametrize(
    ("decide", "says"),
    [
        (lambda task, text: text != "", "non-answer accepted by 10 of 10 tasks: garbage"),
        (lambda task, text: task.checks["answer"] in text, "hedge accepted by 10 of 10"),
        (lambda task, text: False, "10 of 10 reference answers score below 1"),
        (lambda task, text: text == task.checks["answer"], "tasks refuse harmless variants: trailing newline"),
        (pays_a_little, "pays 0.300 for nothing"),
        (lambda task, text: int(text) == int(task.checks["answer"]), "could not be graded: .*ValueError"),
        (lambda task, text: is_answer(task, text) or (text == "0"), "always '0' is right for 100%"),
        (lambda task, text: is_answer(task, text) and random.random() < 0.5, "verdicts differ"),
    ],
)  # fmt: skip
def test_a_bad_grader_is_told_what_is_wrong(decide, says, sandbox):
    import re

    problems = "\n".join(audit(faulty(decide), sandbox, 10).problems)
    assert re.search(says, problems), problems


def test_a_task_that_changes_is_found(sandbox):
    class Moody(ListSource):
        def task(self, split, index):
            self.made.append((split, index))
            return ask(f"{split} {index} {len(self.made)}", str(len(self.made)))

    assert audit(domain_of(Moody(numbers(20), numbers(3))), sandbox, 4).unstable > 0


def test_a_held_out_prompt_in_training_is_found(sandbox):
    found = audit(domain_of(ListSource(numbers(20), numbers(5))), sandbox, 8)
    assert found.leaked == Rate(5, 5) and any("occur in the training split" in p for p in found.problems)
    assert found.heldout_in_train == 0  # TaskPool keeps them apart


def test_a_domain_that_cannot_be_used_is_reported_and_not_raised(sandbox):
    found = audit(domain_of(ListSource(numbers(5), [])), sandbox, 4)
    assert "no held-out tasks" in found.error and found.fails(1.0)


def test_probes_never_equal_the_reference():
    tasks = [ask("Say null.", "null"), ask("Say it depends.", "it depends")]
    texts = [probe.text for probe in attacks(tasks[0], tasks, "whole", first=True)]
    assert "null" not in texts and "xyzzy qwrt zzkx" in texts and len(texts) > len(NON_ANSWERS)
    tagged = [probe.text for probe in attacks(tasks[1], tasks, "tag", first=False)]
    assert "null" in tagged and "<answer>null</answer>" in tagged
    assert any("another task" in probe.name for probe in guesses(tasks[0], tasks, [], "whole"))


@pytest.mark.parametrize("answer", ["def f(x):\n    return x", "```python\ndef f(x):\n    return x\n```"])
def test_variants_of_code_are_fenced_once(answer):
    task = ask("Write f.", answer)
    texts = {probe.name: probe.text for probe in variants(task, "code")}
    assert texts["fenced as python"] == "```python\ndef f(x):\n    return x\n```"
    assert all(text.count("```") in (0, 2) for text in texts.values())


def test_rates_have_exact_intervals():
    assert Rate(0, 10).interval == pytest.approx((0.0, 0.3085), abs=1e-4)
    assert Rate(3, 20).interval == pytest.approx((0.0321, 0.3789), abs=1e-4)
    assert Rate(5, 5).interval[1] == 1.0 and Rate(0, 0).interval == (0.0, 1.0)


# ------------------------------------------------------------------------------- real faults, found by the audit itself


def published(name: str):
    return as_published(DomainConfig(name=name, source=f"reasoning_gym:{name}"))


def offered(name: str):
    return build_domain(DomainConfig(name=name, source=f"reasoning_gym:{name}"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("game_of_life_halting", "non-answer accepted by 4 of 4"),
        ("complex_arithmetic", "accepted by 4 of 4 tasks: nan"),
        ("gsm_symbolic", "hedge accepted"),
        ("time_intervals", "right or wrong is right for|hedge accepted"),
        ("puzzle24", "the answer of another task is right for"),
        ("prime_factorization", "could not be graded: .*ValueError"),
    ],
)
def test_faults_of_published_scorers_are_found_and_mended(name, says, sandbox):
    pytest.importorskip("reasoning_gym")
    import re

    found = audit(published(name), sandbox, 4)
    # chance needs five tasks to be told of: here it is read from the guesses themselves
    told = "\n".join([*found.problems, *(f"{p.name} is right for {p.accepted}" for p in found.probes if p.accepted)])
    assert re.search(says, told), told
    mended = audit(offered(name), sandbox, 4)
    assert mended.fooled.hits == 0 and mended.oracle_failures.hits == 0 and mended.ungradable == 0
    other = next((p for p in mended.probes if p.name == "the answer of another task"), None)
    assert other is None or other.accepted == 0


@pytest.mark.slow
def test_a_generator_that_depends_on_the_hash_seed_is_found_and_mended(sandbox):
    pytest.importorskip("reasoning_gym")
    config = DomainConfig(name="ransom_note", source="reasoning_gym:ransom_note")
    [twin] = ask_twins([config], raw=True)
    assert audit(as_published(config), sandbox, 4, twin=twin).unstable > 0
    [twin] = ask_twins([config])
    found = audit(build_domain(config), sandbox, 4, twin=twin)
    assert (found.unstable, found.disagreements) == (0, 0) and found.compared > 0


def test_a_generator_that_fails_for_a_seed_goes_on_with_another():
    pytest.importorskip("reasoning_gym")
    source = offered("maze").source
    assert len({source.task("train", i).prompt_hash for i in range(40)}) == 40


# ------------------------------------------------------------------------------------------------------------- reports


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.outside += [value for key, value in attrs if key in ("src", "href")]


def test_the_page_escapes_what_tasks_and_probes_hold(sandbox):
    tasks = [ask(f"<script>alert({i})</script>", f"<b>{i}</b>") for i in range(8)]
    found = audit(faulty(lambda task, text: text != "", ListSource(tasks, numbers(3))), sandbox, 6)
    page = to_html([found], 0.05)
    tags = _Tags()
    tags.feed(page)
    assert "script" not in tags.tags and "b" not in tags.tags and not tags.outside
    assert "Content-Security-Policy" in page and "fail at a rate above" in page


def test_json_reads_back_and_cards_are_for_others_to_read(sandbox, tmp_path):
    found = audit(faulty(lambda task, text: Verdict("wrong", 0.2)), sandbox, 4, source="made:up")
    assert from_data(json.loads(json.dumps(as_data(found)))) == found
    write_cards([found], tmp_path)
    card = read_cards(tmp_path)["made"]
    assert card == card_of(found) and card.floor == pytest.approx(0.2) and card.source == "made:up"
    assert card.rebased(0.2) == pytest.approx(0.0) and card.rebased(1.0) == 1.0
    (tmp_path / "cards" / "bad.json").write_text("{}")
    with pytest.raises(DataError, match=r"bad\.json"):
        read_cards(tmp_path)
    with pytest.raises(DataError, match="no folder of domain cards"):
        read_cards(tmp_path / "nothing")


def test_a_recipe_reads_a_card(sandbox, tmp_path):
    found = audit(faulty(pays_a_little), sandbox, 4, source="code:lists")
    now = fingerprint(build_domain(DomainConfig(name="other", source="code:lists")))
    [path] = write_cards([replace(found, fingerprint=now)], tmp_path)
    built = build_domain(DomainConfig(name="lists", source="code:lists", card=str(path)))
    task = built.source.task("train", 0)
    half = Verdict("wrong", 0.65)
    object.__setattr__(built.grader, "inner", Judge(lambda task, text: half))
    assert built.grader.grade(task, written(task, "x"), sandbox).score == pytest.approx(0.5)
    assert built.chance == pytest.approx(found.guess_rate)
    assert built.grader_seconds == pytest.approx(found.mean_seconds) and fingerprint(built) != now  # it is rebased
    with pytest.raises(ConfigError, match="the card is of 'code:lists'"):
        build_domain(DomainConfig(name="words", source="code:words", card=str(path)))
    with pytest.raises(DataError, match="cannot be read"):
        build_domain(DomainConfig(name="lists", source="code:lists", card=str(tmp_path / "none.json")))
    with pytest.raises(ConfigError, match="out of date"):
        build_domain(DomainConfig(name="lists", source="code:lists", instruction="Be brief.", card=str(path)))
    path.write_text(path.read_text().replace('"version": 2', '"version": 1'))
    with pytest.raises(DataError, match="of version 1"):
        build_domain(DomainConfig(name="lists", source="code:lists", card=str(path)))


def test_a_fingerprint_changes_with_tasks_and_grader_and_not_with_the_name(tmp_path):
    file = tmp_path / "shop.py"
    source = (
        "from surefoot import domain, task\n\n@domain\ndef shop(rng):\n    n = rng.randint(100, 999)\n"
        "    return task(f'Say {n}.', answer=n)\n\n"
        "@shop.grader\ndef grade(task, rollout):\n    return rollout.text == task.checks['answer']\n"
    )
    file.write_text(source)
    first = fingerprint(build_domain(DomainConfig(name="a", source=f"{file}:shop")))
    assert fingerprint(build_domain(DomainConfig(name="b", source=f"{file}:shop"))) == first
    file.write_text(source.replace("rollout.text ==", "rollout.text.strip() =="))
    assert fingerprint(build_domain(DomainConfig(name="a", source=f"{file}:shop"))) != first
    numbers = [DomainConfig(name="a", source="code:numbers", shots=shots) for shots in (0, 1)]
    assert len({fingerprint(build_domain(config)) for config in numbers}) == 2
    exact, choice = (named_grader("exact", extract=how) for how in ("whole", "last_line"))
    assert fingerprint(replace(domain_of(SOUND), grader=exact)) != fingerprint(replace(domain_of(SOUND), grader=choice))


def rejected(run, texts, task):
    """Cases of a run whose rollouts with these texts were all rejected, through the review's own store and command."""
    (run / "rollouts").mkdir(parents=True)
    rollouts = tuple(written(task, text) for text in texts)
    rollouts = tuple(replace(rollout, sample=i) for i, rollout in enumerate(rollouts))
    group = Group(task, rollouts, (Verdict("right", 1.0),) * len(texts), (Reward(1.0),) * len(texts))
    write_rollouts(run / "rollouts", 1, [group])
    store = open_review(run)
    for item in store.items():
        store.decide(item.position, "ann", "reject", note="says nothing")
    path = run / "cases.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in store.cases()))
    return read_cases(path)


def test_rejected_texts_must_not_be_paid(sandbox, tmp_path):
    domain = faulty(lambda task, text: is_answer(task, text) or "trust me" in text)
    task = domain.source.task("train", 3)
    cases = rejected(tmp_path / "run", ["trust me", "no"], task)[task.domain]
    found = audit(domain, sandbox, 4, cases=cases)
    assert found.cases == Rate(1, 2) and found.fails(1.0) and from_data(as_data(found)) == found
    assert any("1 of 2 texts that people rejected are still paid" in p and "trust me" in p for p in found.problems)
    rule = IntegrityConfig(phrases={"Trust me": "zero"})
    assert not audit(domain, sandbox, 4, cases=cases, integrity=rule).cases.hits
    flagged = IntegrityConfig(phrases={"Trust me": "flag"})
    assert audit(domain, sandbox, 4, cases=cases, integrity=flagged).cases.hits == 1
    mended = audit(faulty(is_answer), sandbox, 4, cases=cases)
    assert mended.cases == Rate(0, 2) and not mended.fails(0.0)
    gone = [{**cases[0], "messages": [{"role": "user", "content": "Another question?"}]}]
    assert "not found any more" in audit(domain, sandbox, 4, cases=gone).problems[-1]


def test_malformed_cases_are_told_with_their_line(tmp_path):
    path = tmp_path / "cases.jsonl"
    path.write_text('\n{"domain": "a"}\n')
    with pytest.raises(DataError, match=r"cases\.jsonl:2"):
        read_cases(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_cases(tmp_path / "none.jsonl")


def test_the_command_writes_reports_and_fails_over_a_threshold(tmp_path, monkeypatch):
    from surefoot.cli import app

    (tmp_path / "shop.py").write_text(
        "from surefoot import domain, task\n\n@domain\ndef any_text(rng):\n    n = rng.randint(100, 999)\n"
        "    return task(f'Say {n}.', answer=n)\n\n"
        "@any_text.grader\ndef grade(task, rollout):\n    return len(rollout.text) > 0\n"
    )
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "report"
    case = {"domain": "x", "task_id": "x/train/0", "messages": [], "text": "yes", "note": ""}
    (tmp_path / "cases.jsonl").write_text(json.dumps(case))
    arguments = ["audit", "shop.py:any_text", "--tasks", "4", "--out", str(out), "--cases", "cases.jsonl"]
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 1 and "fails" in ended.output and "garbage" in ended.output
    assert "1 rejected texts were not tried" in ended.output
    assert json.loads((out / "audit.json").read_text())["failed"] and (out / "audit.html").exists()
    assert [path.name for path in (out / "cards").iterdir()] == [
        f"{json.loads((out / 'audit.json').read_text())['failed'][0]}.json"
    ]
