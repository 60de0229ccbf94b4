"""What the engine promises: contents of a rollout, repeatability, independence of the batch, limits, stop strings."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import pytest
import torch
from made_models import draw, engine, logits_of, run

from surefoot.errors import DataError, ResourceError
from surefoot.models.chat import prompt_tokens
from surefoot.models.library import LoadedModel
from surefoot.protocols import Engine
from surefoot.rollout.runner import Runner
from surefoot.types import Rollout, Sampling, Turn, dump, load, stable_seed

DRAWS = [draw("a", 5, 9), draw("bb", 3, 14), draw("ccc", 1, 6), draw("dddd", 4, 20)]


def same_samples(a: dict[tuple[str, int], Rollout], b: dict[tuple[str, int], Rollout]) -> None:
    """Equal tokens; log-probs equal up to the rounding of matrix products of other heights."""
    assert a.keys() == b.keys()
    for key, one in a.items():
        assert one.tokens == b[key].tokens and one.stop == b[key].stop
        assert one.logprobs == pytest.approx(b[key].logprobs, abs=1e-4)


def test_it_is_an_engine(tiny: LoadedModel) -> None:
    assert isinstance(engine(tiny), Engine)


def test_a_rollout_holds_prompt_and_answer_as_sampled(tiny: LoadedModel) -> None:
    rollouts = run(engine(tiny), DRAWS)
    assert sorted(rollouts) == sorted((d.task.id, i) for d in DRAWS for i in range(d.samples))
    for (name, index), r in rollouts.items():
        asked = next(d for d in DRAWS if d.task.id == name)
        prompt, count = prompt_tokens(tiny.tokenizer, asked.task.messages), r.sampled
        assert r.tokens[: len(prompt)] == prompt and r.prompt_length == len(prompt)
        assert r.mask == (False,) * len(prompt) + (True,) * count
        assert len(r.logprobs) == len(r.tokens) and not any(r.logprobs[: len(prompt)])
        assert 1 <= count <= asked.max_new_tokens
        ended = r.tokens[-1] in tiny.end_tokens
        assert r.stop == ("stop" if ended else "length") and (ended or count == asked.max_new_tokens)
        assert r.text == tiny.tokenizer.decode(r.tokens[len(prompt) : len(r.tokens) - ended], skip_special_tokens=True)
        assert r.seed == stable_seed(name, index) and r.domain == "words"
        assert r.turns == (Turn("prompt", 0, len(prompt)), Turn("assistant", len(prompt), len(r.tokens)))
        assert load(Rollout, dump(r)) == r


def test_logprobs_equal_those_of_a_full_forward_pass(tiny: LoadedModel) -> None:
    for temperature in (1.0, 0.6):
        for r in run(engine(tiny), DRAWS, temperature=temperature).values():
            every = (logits_of(tiny.decoder, r.tokens) / temperature).log_softmax(-1)  # [T, vocab]
            expected = every[:-1].gather(1, torch.tensor(r.tokens[1:])[:, None])[:, 0]  # [T - 1]
            own = torch.tensor(r.logprobs[1:])
            written = torch.tensor(r.mask[1:])
            torch.testing.assert_close(own[written], expected[written], atol=1e-4, rtol=1e-4)


def test_the_same_draws_give_bit_identical_rollouts(tiny: LoadedModel) -> None:
    own = engine(tiny, batch=4)
    assert list(own.rollout(DRAWS, Sampling())) == list(own.rollout(DRAWS, Sampling()))
    assert list(engine(tiny, batch=4).rollout(DRAWS, Sampling())) == list(own.rollout(DRAWS, Sampling()))


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_a_small_batch_gives_the_same_samples_as_a_large_one(tiny: LoadedModel, batch: int) -> None:
    same_samples(run(engine(tiny, batch=batch), DRAWS), run(engine(tiny), DRAWS))


def test_the_order_of_the_draws_does_not_matter(tiny: LoadedModel) -> None:
    same_samples(run(engine(tiny, batch=6), DRAWS[::-1]), run(engine(tiny, batch=6), DRAWS))


def test_a_shared_prefix_gives_the_same_samples_as_prompts_of_their_own(tiny: LoadedModel) -> None:
    together = run(engine(tiny), DRAWS)
    for asked in DRAWS:
        for i in range(asked.samples):
            alone = run(engine(tiny), [replace(asked, samples=1, seeds=(stable_seed(asked.task.id, i),))])
            expected = together[asked.task.id, i]
            assert alone[asked.task.id, 0].tokens == expected.tokens


def test_prompts_are_encoded_in_chunks_and_once_a_group(tiny: LoadedModel) -> None:
    encoded: list[int] = []
    runner = type(engine(tiny).runner)
    encode = runner.encode

    def counting(self: Runner, prompts: list[tuple[int, ...]]) -> object:
        encoded.append(len(prompts))
        return encode(self, prompts)

    whole = run(engine(tiny), DRAWS)
    with mock.patch.object(runner, "encode", counting), mock.patch("surefoot.rollout.local.PREFILL_TOKENS", 90):
        same_samples(run(engine(tiny), DRAWS), whole)
    assert sum(encoded) == len(DRAWS) and len(encoded) > 1


def test_slots_grow_with_long_answers(tiny: LoadedModel) -> None:
    asked = [draw("long", 3, 40)]
    with mock.patch("surefoot.rollout.cache.FIRST_ROOM", 16):
        grown = run(engine(tiny), asked)
    assert grown == run(engine(tiny), asked)


def test_seeds_decide_the_sample(tiny: LoadedModel) -> None:
    asked = replace(draw("seeds", 4, 12), seeds=(1, 2, 1, 3))
    got = run(engine(tiny), [asked])
    assert got["seeds", 0].tokens == got["seeds", 2].tokens != got["seeds", 1].tokens
    assert [got["seeds", i].seed for i in range(4)] == [1, 2, 1, 3]


def test_a_stop_string_ends_the_sample_and_stays_in_it(tiny: LoadedModel) -> None:
    free = run(engine(tiny), [draw("stop", 6, 30)])
    letter = next(c for r in free.values() for c in r.text[1:] if c.isascii() and c.isprintable())
    for key, r in run(engine(tiny), [draw("stop", 6, 30)], stop=(letter,)).items():
        found = free[key].text.find(letter)
        if found >= 0:
            assert r.stop == "stop" and r.text == free[key].text[: found + 1]
        else:
            assert r.tokens == free[key].tokens


def test_refresh_samples_from_the_new_weights(tiny: LoadedModel) -> None:
    from copy import deepcopy

    decoder = deepcopy(tiny.decoder)
    own = engine(tiny, decoder)
    before = run(own, DRAWS)
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.mul_(1.5)
    own.refresh(7)
    after = run(own, DRAWS)
    same_samples(after, run(engine(tiny, decoder), DRAWS))
    assert own.version == 7 and {r.policy_version for r in after.values()} == {7}
    assert any(after[key].tokens != before[key].tokens for key in before)


def test_the_model_decides_the_longest_sequence(tiny: LoadedModel) -> None:
    decoder = tiny.decoder
    room = len(prompt_tokens(tiny.tokenizer, DRAWS[0].task.messages)) + 4
    with mock.patch.object(decoder, "config", replace(decoder.config, max_positions=room)):
        assert {r.sampled for r in run(engine(tiny), DRAWS[:1]).values()} <= {1, 2, 3, 4}


def test_a_long_prompt_is_refused_by_the_name_of_its_task(tiny: LoadedModel) -> None:
    with pytest.raises(DataError, match=r"'huge'.*max_prompt_tokens"):
        engine(tiny).rollout([draw("fine", 1, 4), draw("huge", 1, 4, "word " * 100)], Sampling())
    assert not engine(tiny).refusal(draw("fine", 1, 4).task)
    assert "max_prompt_tokens is 256" in engine(tiny).refusal(draw("huge", 1, 4, "word " * 100).task)


def test_running_out_of_memory_says_what_to_lower(tiny: LoadedModel) -> None:
    with (
        mock.patch.object(type(engine(tiny).runner), "decode", side_effect=torch.OutOfMemoryError("no memory")),
        pytest.raises(ResourceError, match=r"rollout\.batch"),
    ):
        list(engine(tiny).rollout(DRAWS, Sampling()))


def test_nothing_asked_nothing_given(tiny: LoadedModel) -> None:
    assert list(engine(tiny).rollout([], Sampling())) == []
