"""`surefoot serve` as real clients see it."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
import torch

from surefoot.errors import DataError, ModelError, ResourceError
from surefoot.models import load_model
from surefoot.models.chat import prompt_tokens
from surefoot.models.decoder import CausalAttention
from surefoot.rollout.openai import EndpointOptions, OpenAIEngine, is_endpoint
from surefoot.serve.scoring import score
from surefoot.serve.writing import Writing
from surefoot.types import Draw, Sampling, Task

HELLO = [{"role": "user", "content": "Say hello."}]
CHAT = {"model": "tiny", "messages": HELLO, "max_tokens": 12, "temperature": 1.0, "seed": 5}


def test_the_model_is_listed(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["tiny"]


def test_the_same_seed_gives_the_same_reply_alone_and_in_a_crowd(client: openai.OpenAI) -> None:
    alone = client.chat.completions.create(**CHAT)
    with ThreadPoolExecutor(8) as pool:
        seeds = [5, 6, 7, 8, 5, 9, 10, 11]
        crowd = list(pool.map(lambda seed: client.chat.completions.create(**CHAT | {"seed": seed}), seeds))
    texts = [reply.choices[0].message.content for reply in crowd]
    assert texts[0] == texts[4] == alone.choices[0].message.content
    assert len(set(texts)) > 4
    ends = {reply.choices[0].finish_reason: reply.usage.completion_tokens for reply in crowd}
    assert ends.get("length", 12) == 12 and ends.get("stop", 1) <= 12
    tokenizer = load_model("tiny").tokenizer
    assert alone.usage.prompt_tokens == len(prompt_tokens(tokenizer, HELLO))


def test_streamed_parts_are_the_whole(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(**CHAT)
    parts = list(client.chat.completions.create(**CHAT, stream=True))
    assert parts[0].choices[0].delta.role == "assistant"
    texts = [part.choices[0].delta.content or "" for part in parts]
    assert "".join(texts) == whole.choices[0].message.content
    assert sum(bool(text) for text in texts) > 3, "it came in one piece"
    assert parts[-1].choices[0].finish_reason == whole.choices[0].finish_reason
    plain = {"model": "tiny", "prompt": "ab", "max_tokens": 8, "seed": 1}
    streamed = client.completions.create(**plain, stream=True)
    assert "".join(p.choices[0].text for p in streamed) == client.completions.create(**plain).choices[0].text


def test_stop_strings_end_the_text_and_are_not_in_it(client: openai.OpenAI) -> None:
    text = client.chat.completions.create(**CHAT).choices[0].message.content
    stop = text[2:4]
    short = client.chat.completions.create(**CHAT, stop=[stop])
    assert short.choices[0].message.content == text[: text.find(stop)] and short.choices[0].finish_reason == "stop"
    streamed = "".join(
        p.choices[0].delta.content or "" for p in client.chat.completions.create(**CHAT, stop=stop, stream=True)
    )
    assert streamed == short.choices[0].message.content


def test_echoed_logprobs_are_those_of_the_model(client: openai.OpenAI) -> None:
    model = load_model("tiny")
    tokens = model.tokenizer.encode("the cat sat on the mat")
    reply = client.completions.create(
        model="tiny", prompt=[tokens, tokens[:5]], max_tokens=1, echo=True, logprobs=2, temperature=0
    )
    found = reply.choices[0].logprobs
    assert len(found.token_logprobs) == len(tokens) + 1 and found.token_logprobs[0] is None
    with torch.inference_mode():
        hidden = model.decoder(torch.tensor(tokens), torch.arange(len(tokens)), CausalAttention([len(tokens)]))
        logprobs = (hidden @ model.decoder.head.T).log_softmax(-1)
    want = [float(logprobs[i, token]) for i, token in enumerate(tokens[1:])]
    assert found.token_logprobs[1:-1] == pytest.approx(want, abs=1e-4)
    assert found.token_logprobs[-1] == pytest.approx(float(logprobs[-1].max()), abs=1e-4), "the generated one is greedy"
    assert all(len(top) == 2 for top in found.top_logprobs[1:])
    assert len(reply.choices[1].logprobs.token_logprobs) == 6
    assert reply.choices[0].text.startswith("the cat sat on the mat")


def test_chat_logprobs_and_several_choices(client: openai.OpenAI) -> None:
    reply = client.chat.completions.create(**CHAT, n=3, logprobs=True, top_logprobs=1)
    assert sum(len(choice.logprobs.content) for choice in reply.choices) == reply.usage.completion_tokens
    assert [choice.index for choice in reply.choices] == [0, 1, 2]
    for choice in reply.choices:
        assert all(
            e.logprob <= e.top_logprobs[0].logprob + 1e-6 and math.isfinite(e.logprob) for e in choice.logprobs.content
        )


@pytest.mark.parametrize(
    ("wrong", "error", "told"),
    [
        ({"model": "gpt"}, openai.NotFoundError, "'tiny' is"),
        ({"temperature": -1}, openai.BadRequestError, "temperature"),
        ({"tools": [{"type": "function"}]}, openai.BadRequestError, "tools"),
        ({"messages": [{"role": "user", "content": "x" * 9000}]}, openai.BadRequestError, "tokens"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, openai.BadRequestError, "text"),
    ],
)
def test_what_cannot_be_answered_is_refused(client: openai.OpenAI, wrong: dict, error: type, told: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(error, match=told):
        client.chat.completions.create(**CHAT | wrong)
    assert client.chat.completions.create(**CHAT).choices, "the server goes on"


def test_scores_of_a_long_text_do_not_depend_on_the_chunks() -> None:
    decoder = load_model("tiny").decoder
    tokens = [i * 7 % 200 for i in range(1300)]
    whole = score(decoder, tokens)
    start = score(decoder, tokens[:600], top=1)
    assert [s.token for s in whole] == tokens
    assert [s.logprob for s in start[1:]] == pytest.approx([s.logprob for s in whole[1:600]], abs=1e-4)
    assert all(s.top[0][1] >= s.logprob for s in start[1:])


def test_half_a_character_is_held_back() -> None:
    tokenizer = load_model("tiny").tokenizer
    writing, tokens = Writing(tokenizer, frozenset(), ()), tokenizer.encode("aé☃")
    sent = [writing.more(tokens[: i + 1]) for i in range(len(tokens))]
    assert "".join(sent) == "aé☃" and all("\ufffd" not in part for part in sent) and sent[1] == ""


# ------------------------------------------------------------------------------------- the other way: as an engine


def tasks(count: int) -> list[Task]:
    return [Task(f"d/{i}", "d", ({"role": "user", "content": f"Say {i}."},)) for i in range(count)]


def test_an_endpoint_samples_what_the_engine_behind_it_would(address: str) -> None:
    engine = OpenAIEngine(address, EndpointOptions(concurrency=4))
    draws = [Draw(task, 2, 9, (i, i + 100)) for i, task in enumerate(tasks(5))]
    got = {(r.task_id, r.sample): r for r in engine.rollout(draws, Sampling(0.9))}
    again = {(r.task_id, r.sample): r for r in engine.rollout(draws[::-1], Sampling(0.9))}
    assert got == again and len(got) == 10
    assert all(r.sampled <= 9 and r.prompt_length > 10 and r.stop in ("stop", "length") for r in got.values())
    assert engine.model == "tiny" and is_endpoint(address) and not is_endpoint("tiny")
    engine.close()


def test_requests_a_minute_are_bounded(address: str) -> None:
    import time

    engine = OpenAIEngine(address, EndpointOptions(requests_per_minute=600))
    began = time.monotonic()
    assert len(list(engine.rollout([Draw(tasks(1)[0], 8, 2)], Sampling()))) == 8
    assert time.monotonic() - began >= 7 * 0.1


def test_what_is_wrong_with_an_endpoint_is_said(address: str) -> None:
    with pytest.raises(ResourceError, match="cannot be reached"):
        OpenAIEngine("http://127.0.0.1:1/v1", EndpointOptions(retries=0))
    engine = OpenAIEngine(f"{address}#other")
    with pytest.raises(ModelError, match="'tiny' is"):
        list(engine.rollout([Draw(tasks(1)[0], 1, 2)], Sampling()))
    long = Task("d/long", "d", ({"role": "user", "content": "x" * 9000},))
    got = list(OpenAIEngine(address).rollout([Draw(long, 1, 2), Draw(tasks(1)[0], 1, 2)], Sampling()))
    stops = {rollout.task_id: rollout.stop for rollout in got}
    assert stops.pop("d/long") == "aborted" and len(stops) == 1 and "aborted" not in stops.values()
    assert any("tokens" in rollout.text for rollout in got if rollout.stop == "aborted")
    with pytest.raises(DataError, match="d/0"):
        list(OpenAIEngine(address).rollout([Draw(tasks(1)[0], 1, 2)], Sampling(temperature=-1.0)))
