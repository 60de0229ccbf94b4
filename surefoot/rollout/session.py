"""Episodes of many turns over any engine, in waves: the next turns of all living episodes are one batch.

Token in, token out: a turn goes on from the very tokens that were sampled before, and the environment's messages are
put behind them by the chat template's increments. The rollout that comes out is one sequence whose mask is true on what
the policy wrote, whatever the number of turns, so that learner and store need to know nothing of episodes.

Environments are called from threads while other episodes' turns are still being sampled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from surefoot.errors import DataError, SurefootError
from surefoot.models.templates import ChatTemplate
from surefoot.protocols import ChecksPrompts, Domain, Sandbox, TrainingEngine
from surefoot.rollout.episode import Episode, checked_messages
from surefoot.rollout.requests import too_long
from surefoot.rollout.stepping import Call, Stepper
from surefoot.types import Draw, Message, Rollout, Sampling, Task, stable_seed


class SessionEngine:
    """Wraps an engine: domains with an environment are played in turns, the others are passed through.

    The same draws give the same rollouts as long as the environments do the same: each turn has a seed of its own.

    Args:
        engine: Samples the turns.
        template: Of the engine's tokenizer.
        domains: Those with an environment are played.
        sandbox: What environments may use.
        max_prompt_tokens: Most tokens that a turn may go on from; an episode ends before it.
        max_positions: The model's window, which an episode ends at.
        seconds: Longest that an environment may take for an answer.
    """

    def __init__(
        self,
        engine: TrainingEngine,
        template: ChatTemplate,
        domains: Sequence[Domain],
        sandbox: Sandbox,
        *,
        max_prompt_tokens: int,
        max_positions: int,
        seconds: float = 120.0,
    ) -> None:
        self.engine, self.template, self.sandbox = engine, template, sandbox
        self.domains: Mapping[str, Domain] = {d.name: d for d in domains if d.environment}
        self.max_prompt_tokens, self.max_positions = max_prompt_tokens, max_positions
        self.stepper = Stepper(seconds)

    @property
    def version(self) -> int:
        """Version of the weights that it samples from."""
        return self.engine.version

    def refresh(self, version: int) -> None:
        """See TrainingEngine."""
        self.engine.refresh(version)

    def rest(self) -> None:
        """See TrainingEngine."""
        self.engine.rest()

    def refusal(self, task: Task) -> str:
        """Why nothing can be sampled for this task; empty if it can. Of an episode, its messages are looked at."""
        if task.domain not in self.domains:
            return self.engine.refusal(task) if isinstance(self.engine, ChecksPrompts) else ""
        return too_long(len(self.template.opening(task.messages)), self.max_prompt_tokens, self.max_positions)

    def close(self) -> None:
        """Close the engine; threads of environments that hang are left behind."""
        self.stepper.close()
        self.engine.close()

    def rollout(self, draws: Sequence[Draw], sampling: Sampling) -> Iterator[Rollout]:
        """All samples of all draws, each given back as soon as it is finished.

        An environment that fails makes its rollout carry a `fault`. Raises what the engine raises.
        """
        single = [draw for draw in draws if draw.task.domain not in self.domains]
        living = [episode for draw in draws if draw.task.domain in self.domains for episode in self._episodes(draw)]
        self._reset(living)
        yield from self._finished(living)
        living = [episode for episode in living if not episode.over]
        while single or living:
            calls: list[tuple[Episode, Call]] = []
            asked, owners = _wave(living)
            for rollout in self.engine.rollout([*single, *asked], sampling):
                if rollout.task_id not in owners:
                    yield rollout
                    continue
                episode = owners[rollout.task_id][rollout.sample]
                message = episode.hear(rollout)
                if not episode.over:
                    calls.append((episode, self._call(episode, partial(_step, episode, message))))
            for episode, call in calls:
                self._answer(episode, self.stepper.wait(call), call.fault)
            single = []
            yield from self._finished(living)
            living = [episode for episode in living if not episode.over]

    def _episodes(self, draw: Draw) -> Iterator[Episode]:
        limits = self.domains[draw.task.domain].session
        seeds = draw.seeds or tuple(stable_seed(draw.task.id, i) for i in range(draw.samples))
        room = min(limits.tokens or self.max_positions, self.max_positions)
        for sample, seed in enumerate(seeds):
            yield Episode(draw, sample, seed, limits, room, self.max_prompt_tokens, version=self.version)

    def _reset(self, episodes: Sequence[Episode]) -> None:
        calls = [(episode, self._call(episode, partial(self._begin, episode))) for episode in episodes]
        for episode, call in calls:
            said = self.stepper.wait(call)
            messages = call.fault or checked_messages(said, examples=True)
            if isinstance(messages, str):
                episode.fail(messages)
                messages = episode.task.messages
            try:
                episode.open(self.template.opening(messages))
            except SurefootError as refused:
                episode.fail(str(refused))
            if not episode.over and episode.turn_limit < 1:
                raise DataError(
                    f"the prompt has {len(episode.tokens)} tokens, an episode may have {episode.room} in all",
                    where=f"task {episode.task.id!r}",
                    fix="raise session.tokens of the domain, or shorten its tasks",
                )

    def _begin(self, episode: Episode) -> Sequence[Message]:
        maker = self.domains[episode.task.domain].environment
        assert maker is not None
        episode.environment = maker(self.sandbox)
        return episode.environment.reset(episode.task)

    def _answer(self, episode: Episode, said: Any, fault: str) -> None:
        if fault:
            episode.fail(fault)
            return
        try:
            episode.answer(said, self.template)
        except SurefootError as refused:
            episode.fail(str(refused))

    def _finished(self, episodes: Sequence[Episode]) -> Iterator[Rollout]:
        """Those that are over, with what their environment leaves to the grader."""
        calls = [
            (e, self._call(e, partial(_end, e)) if e.environment and not e.fault else None) for e in episodes if e.over
        ]
        for episode, call in calls:
            if call is not None:
                state = self.stepper.wait(call)
                if call.fault:
                    episode.fail(call.fault)
                else:
                    episode.leave(state)
            yield episode.rollout()

    def _call(self, episode: Episode, work: Any) -> Call:
        return self.stepper.submit(episode.task.domain, work)


def _step(episode: Episode, message: Message) -> Sequence[Message] | None:
    assert episode.environment is not None
    return episode.environment.step(message)


def _end(episode: Episode) -> Mapping[str, Any]:
    assert episode.environment is not None
    return episode.environment.end()


def _wave(episodes: Sequence[Episode]) -> tuple[list[Draw], dict[str, list[Episode]]]:
    """The next turns as draws, and whose samples they are. Episodes that read the same share one draw, and so one
    encoding of their prompt."""
    alike: dict[tuple[str, int, tuple[int, ...]], list[Episode]] = {}
    for episode in episodes:
        alike.setdefault((episode.task.id, episode.turn_limit, tuple(episode.tokens)), []).append(episode)
    draws, owners = [], {}
    for number, ((_, limit, prompt), group) in enumerate(alike.items()):
        task: Task = replace(group[0].task, id=f"{group[0].task.id} (turn {group[0].said + 1}, {number})")
        draws.append(Draw(task, len(group), limit, tuple(e.turn_seed for e in group), prompt))
        owners[task.id] = group
    return draws, owners
