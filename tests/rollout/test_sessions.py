"""Episodes of many turns: tokens trained on are the tokens sampled, budgets hold, broken environments harm no other."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from chat_templates import STYLES, make_tokenizer
from session_stand_ins import Chatter, WritingEngine, sessions, talks
from transformers import AutoModelForCausalLM

from surefoot.errors import DataError, ModelError
from surefoot.learner.backward import score_pack
from surefoot.learner.packing import group_trees, pack
from surefoot.models import load_model, save_model
from surefoot.models.library import LoadedModel
from surefoot.models.templates import ChatTemplate
from surefoot.protocols import Domain, SessionLimits
from surefoot.rewards import GradingPool
from surefoot.rollout import LocalEngine
from surefoot.rollout.session import SessionEngine
from surefoot.types import Draw, Group, Message, Reward, Rollout, Sampling, Task

EPISODES = 10_000
SAMPLES = 4


@pytest.fixture(params=STYLES)
def written(request: pytest.FixtureRequest) -> WritingEngine:
    return WritingEngine(*make_tokenizer(STYLES[request.param]))


def trained(rollout: Rollout) -> tuple[list[int], list[int], list[float]]:
    """Context, targets and log-probs of the one sequence that the learner makes of a rollout."""
    group = Group(Task(rollout.task_id, rollout.domain, ()), (rollout,), (), (Reward(1.0),))
    packed = pack(group_trees(group, [1.0]), 1 << 20)[0]
    learnt = [i for i, own in enumerate(rollout.mask) if own]
    assert packed.source.tolist() == [i - 1 for i in learnt]
    assert packed.positions.tolist() == list(range(len(packed.tokens)))
    return packed.tokens.tolist(), packed.targets.tolist(), packed.old_logprobs.tolist()


def test_tokens_trained_on_are_the_tokens_sampled(written: WritingEngine) -> None:
    """All templates together: 10,000 random episodes."""
    count = -(-EPISODES // len(STYLES) // SAMPLES)
    engine = sessions(written, lambda sandbox: Chatter(), limits=SessionLimits(turns=6, observation_tokens=16))
    rollouts = list(engine.rollout(talks(count, SAMPLES, system=True), Sampling()))
    assert len({(r.task_id, r.sample) for r in rollouts}) == len(rollouts) == count * SAMPLES
    assert not any(r.fault for r in rollouts)
    spans = 0
    for rollout in rollouts:
        own = [turn for turn in rollout.turns if turn.role == "assistant"]
        spans += len(own)
        masked = [False] * len(rollout.tokens)
        sampled: list[int] = []
        logprobs: list[float] = []
        for turn in own:
            given = rollout.logprobs[turn.start : turn.end]
            written.sampled[rollout.tokens[: turn.end]].remove(given)  # this very turn, after these very tokens
            masked[turn.start : turn.end] = [True] * len(given)
            sampled += rollout.tokens[turn.start : turn.end]
            logprobs += given
        assert list(rollout.mask) == masked
        context, targets, old = trained(rollout)
        assert targets == sampled
        assert old == pytest.approx(logprobs, abs=1e-6)
        assert context == list(rollout.tokens[: len(context)])
    assert spans == len(written.prompts) and not any(written.sampled.values())
    assert max(len([t for t in r.turns if t.role == "assistant"]) for r in rollouts) == 6


@pytest.mark.parametrize("style", STYLES)
def test_a_conversation_reads_as_the_template_renders_it(style: str) -> None:
    """Where what was sampled is how the template would have it, increments give the rendered conversation."""
    tokenizer, ends = make_tokenizer(STYLES[style])
    said = ["the inner one", "on and on", "then, nothing."]
    engine = WritingEngine(tokenizer, ends, [STYLES[style].start + text for text in said])
    asked = ["more?", "really: {{ ü }}?", "why"]

    class Asker(Chatter):
        def step(self, message: Message) -> Sequence[Message] | None:
            return [{"role": "user", "content": asked.pop(0)}] if len(asked) > 1 else None

    (rollout,) = sessions(engine, lambda sandbox: Asker()).rollout(talks(1, 1), Sampling())
    conversation: list[dict[str, str]] = [{"role": "user", "content": "hello number 0"}]
    for prompt, text, question in zip(engine.prompts, said, ["more?", "really: {{ ü }}?", ""], strict=True):
        rendered = tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=True)
        assert tokenizer.decode(prompt) == rendered
        assert list(prompt) == tokenizer.encode(rendered, add_special_tokens=False)
        conversation += [{"role": "assistant", "content": text}, {"role": "user", "content": question}]
    assert [m["role"] for m in rollout.messages] == ["assistant", "user", "assistant", "user", "assistant"]
    assert rollout.text.strip() == "then, nothing." and rollout.state == {"done": True} and rollout.stop == "stop"


@pytest.mark.parametrize("style", STYLES)
def test_what_an_environment_says_cannot_forge_a_turn(style: str) -> None:
    tokenizer, ends = make_tokenizer(STYLES[style])
    template = ChatTemplate(tokenizer, ends)
    forged = "".join(STYLES[style].special) * 2
    plain = template.increment([{"role": "user", "content": "x"}], closed=True)
    said = template.increment([{"role": "user", "content": template.harmless(forged)}], closed=True)
    marks = set(tokenizer.convert_tokens_to_ids(list(STYLES[style].special)))
    assert [t for t in said if t in marks] == [t for t in plain if t in marks]


def test_every_role_arrives_in_every_template() -> None:
    for style in STYLES.values():
        tokenizer, ends = make_tokenizer(style)
        template = ChatTemplate(tokenizer, ends)
        opening = tokenizer.decode(
            template.opening([{"role": "system", "content": "AAA"}, {"role": "user", "content": "BBB"}])
        )
        said = [
            {"role": "tool", "content": "CCC"},
            {"role": "system", "content": "DDD"},
            {"role": "user", "content": "EEE"},
        ]
        text = tokenizer.decode(template.increment(said, closed=False))
        assert all(word in opening for word in ("AAA", "BBB")) and all(word in text for word in ("CCC", "DDD", "EEE"))
        assert text.startswith(style.ends[0])


def test_a_template_without_the_assistants_words_is_refused() -> None:
    tokenizer, ends = make_tokenizer(STYLES["chatml"])
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] | upper }}{% endfor %}"
    with pytest.raises(ModelError, match="does not keep what the assistant said"):
        ChatTemplate(tokenizer, ends)


# --------------------------------------------------------------------------------------------------------- budgets


class Endless(Chatter):
    long = 1

    def step(self, message: Message) -> Sequence[Message] | None:
        return [{"role": "user", "content": "again " * self.long}]


def chatml() -> WritingEngine:
    return WritingEngine(*make_tokenizer(STYLES["chatml"]))


def test_budgets_hold() -> None:
    engine = chatml()
    limits = SessionLimits(turns=50, tokens=300)
    rollouts = list(sessions(engine, lambda s: Endless(), limits=limits).rollout(talks(4, 4), Sampling()))
    assert all(len(r.tokens) <= 300 and r.stop == "length" and r.mask[-1] and r.state for r in rollouts)
    assert engine.longest <= 300 and min(len(r.tokens) for r in rollouts) > 200
    engine = chatml()
    rollouts = list(sessions(engine, lambda s: Endless(), window=200).rollout(talks(4, 4), Sampling()))
    assert engine.longest <= 200 and max(map(len, engine.prompts)) < 200
    rollouts = list(
        sessions(chatml(), lambda s: Endless(), limits=SessionLimits(turns=3)).rollout(talks(2, 2), Sampling())
    )
    assert all(sum(t.role == "assistant" for t in r.turns) == 3 and r.stop == "length" for r in rollouts)
    ended = sessions(chatml(), lambda s: Endless(), limits=SessionLimits(turns=9, on_cut="end"))
    cut = [r for r in ended.rollout(talks(8, 4), Sampling()) if sum(t.role == "assistant" for t in r.turns) < 9]
    assert cut and all(r.tokens[-1] not in ended.template.ends for r in cut)


def test_a_long_observation_loses_its_middle() -> None:
    class Long(Endless):
        long = 500

    limits = SessionLimits(turns=2, observation_tokens=40)
    for rollout in sessions(chatml(), lambda s: Long(), limits=limits).rollout(talks(1, 2), Sampling()):
        (said,) = [m["content"] for m in rollout.messages if m["role"] == "user"]
        assert "tokens left out" in said and said.startswith("again") and len(said) < 100


def test_an_episode_that_cannot_begin_is_an_error_that_names_the_task() -> None:
    engine = sessions(chatml(), lambda s: Endless(), limits=SessionLimits(tokens=10))
    with pytest.raises(DataError, match=r"talk/0.*session\.tokens|session\.tokens"):
        list(engine.rollout(talks(1, 1), Sampling()))


# ---------------------------------------------------------------------------------------------- broken environments


class Broken(Chatter):
    """Fails in one of its methods for odd tasks."""

    where = ""
    how: Any = None

    def _maybe(self, where: str) -> Any:
        if where != self.where or self.odd:
            return None
        return self.how() if callable(self.how) else self.how

    def reset(self, task: Task) -> Sequence[Message]:
        self.odd = bool(int(task.id[-1]) % 2)
        super().reset(task)
        return self._maybe("reset") or task.messages

    def step(self, message: Message) -> Sequence[Message] | None:
        return self._maybe("step") or super().step(message)

    def end(self) -> Mapping[str, Any]:
        return self._maybe("end") or {}


def fails() -> None:
    raise KeyError("lost")


def leaves() -> None:
    raise SystemExit(3)


def hangs() -> None:
    threading.Event().wait()


@pytest.mark.parametrize("where", ["reset", "step", "end"])
@pytest.mark.parametrize("how", [fails, leaves, hangs, "words", {"a": 1}, [{"role": "user"}], [1], lambda: [{1, 2}]])
def test_a_broken_environment_harms_no_other(where: str, how: Any) -> None:
    if where == "end" and isinstance(how, dict):
        pytest.skip("that is what an environment may leave")

    class Now(Broken):
        pass

    Now.where, Now.how = where, staticmethod(how) if callable(how) else how
    engine = sessions(chatml(), lambda s: Now(), seconds=0.4)
    draws = talks(6, 2)
    rollouts = list(engine.rollout(draws, Sampling()))
    assert len(rollouts) == 12
    for rollout in rollouts:
        assert bool(rollout.fault) == (int(rollout.task_id[-1]) % 2 == 0), rollout
        assert len(rollout.tokens) == len(rollout.mask) == len(rollout.logprobs) > 0
    no: Any = None
    with GradingPool([Domain("talk", no, no)], no) as pool:
        verdicts = dict(zip([r.task_id for r in rollouts], pool.grade_all(rollouts, {}), strict=True))
    assert all("environment" in verdicts[f"talk/{n}"].reason for n in (0, 2, 4))


# -------------------------------------------------------------------------------------------------- the real engine


def played(model: LoadedModel, draws: Sequence[Draw], turns: int = 4) -> list[Rollout]:
    no: Any = None
    local = LocalEngine(model.decoder, model.tokenizer, model.end_tokens, batch=32, max_prompt_tokens=2048)
    domain = Domain("talk", no, no, 12, environment=lambda s: Chatter(), session=SessionLimits(turns=turns))
    template = ChatTemplate(model.tokenizer, model.end_tokens)
    engine = SessionEngine(local, template, [domain], no, max_prompt_tokens=2048, max_positions=4096)
    return sorted(engine.rollout(draws, Sampling()), key=lambda r: (r.domain, r.task_id, r.sample))


def test_log_probs_are_those_of_plain_transformers_on_the_whole_sequence(tmp_path: Any) -> None:
    """Engine, learner and transformers agree on every token that was sampled, over all turns of an episode."""
    model = load_model("tiny", seed=3)
    with torch.no_grad():
        for parameter in model.decoder.parameters():
            parameter.mul_(3.0 if parameter.ndim == 2 else 1.0)
    save_model(model.decoder, model.hf_config, model.tokenizer, tmp_path)
    plain = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    rollouts = [r for r in played(model, talks(3, 4)) if sum(t.role == "assistant" for t in r.turns) > 1]
    assert len(rollouts) > 3
    for rollout in rollouts:
        tokens = torch.tensor([rollout.tokens])
        with torch.no_grad():
            logits = plain(tokens).logits[0, :-1].double()
        learnt = torch.tensor([i for i, own in enumerate(rollout.mask) if own])
        expected = logits.log_softmax(-1)[learnt - 1, tokens[0, learnt]]
        sampled = torch.tensor([rollout.logprobs[i] for i in learnt.tolist()], dtype=torch.float64)
        torch.testing.assert_close(sampled, expected, atol=2e-4, rtol=0)
        group = Group(Task(rollout.task_id, "talk", ()), (rollout,), (), (Reward(1.0),))
        packed = pack(group_trees(group, [1.0]), 1 << 20)[0]
        learner = score_pack(model.decoder, packed, temperature=1.0).logprobs.double()
        torch.testing.assert_close(learner, expected, atol=2e-4, rtol=0)


def test_episodes_and_single_answers_are_sampled_together_and_again_the_same() -> None:
    model = load_model("tiny")
    single = Draw(Task("one/0", "one", ({"role": "user", "content": "hi"},)), 3, 5, (1, 2, 3))
    first = played(model, [single, *talks(2, 2)])
    assert first == played(model, [*talks(2, 2), single])
    assert [r.domain for r in first] == ["one"] * 3 + ["talk"] * 4
    assert all(not r.messages for r in first[:3]) and all(r.messages for r in first[3:])
