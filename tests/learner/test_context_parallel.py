"""Context parallelism with real processes: one sequence over 2 and 4 of them, gradients equal to one process's."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from learner_stand_ins import make_models
from torch import Tensor

from surefoot.errors import ConfigError
from surefoot.learner.layers import embed, hidden_states
from surefoot.learner.ring import RingAttention, share
from surefoot.models.decoder import CausalAttention

LENGTH = 128
CONTEXT = multiprocessing.get_context("forkserver")


def tokens() -> tuple[Tensor, Tensor]:
    """A sequence [LENGTH] and a slope of the loss for every hidden state [LENGTH, width]."""
    generator = torch.Generator().manual_seed(3)
    return torch.randint(97, (LENGTH,), generator=generator), torch.randn(LENGTH, 48, generator=generator)


def work(rank: int, ranks: int, folder: str, kept: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks)
    decoder, _ = make_models("qwen3")
    ids, slope = tokens()
    mine = share(LENGTH, rank, ranks)
    embedded = embed(decoder, ids[mine])
    hidden = hidden_states(decoder, embedded, mine, RingAttention(), kept=kept)  # type: ignore[arg-type]
    (hidden * slope[mine]).sum().backward()
    gradients = {name: p.grad for name, p in decoder.named_parameters() if p.grad is not None}
    for gradient in gradients.values():
        dist.all_reduce(gradient)
    found = gradients | {"hidden": hidden.detach(), "embedded": embedded.grad, "mine": mine}
    torch.save(found, f"{folder}/{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.parametrize(("ranks", "kept"), [(2, "none"), (4, "layer")])
def test_gradients_equal_those_of_one_process(ranks: int, kept: str, tmp_path: Path) -> None:
    CONTEXT.set_forkserver_preload(["torch", "transformers", "surefoot.learner.ring"])
    processes = [CONTEXT.Process(target=work, args=(rank, ranks, str(tmp_path), kept)) for rank in range(ranks)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        if process.is_alive():
            process.kill()
    assert [process.exitcode for process in processes] == [0] * ranks

    decoder, _ = make_models("qwen3")
    ids, slope = tokens()
    embedded = embed(decoder, ids)
    hidden = hidden_states(decoder, embedded, torch.arange(LENGTH), CausalAttention([LENGTH]))
    (hidden * slope).sum().backward()
    expected = {name: p.grad for name, p in decoder.named_parameters() if p.grad is not None}
    parts = [torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(ranks)]
    assert sorted(torch.cat([part["mine"] for part in parts]).tolist()) == list(range(LENGTH))
    for part in parts:
        assert relative(part["hidden"], hidden[part["mine"]]) < 1e-5
        assert embedded.grad is not None
        assert relative(part["embedded"], embedded.grad[part["mine"]]) < 1e-5
        for name, gradient in expected.items():
            assert gradient is not None
            assert relative(part[name], gradient) < 1e-5, name


def relative(one: Tensor, other: Tensor) -> float:
    """|one - other| / |other|"""
    return float(((one - other).norm() / other.norm()).detach())


def test_every_share_costs_the_same() -> None:
    costs = {sum(int(p) for p in share(64, rank, 4)) for rank in range(4)}
    assert len(costs) == 1  # keys that a share's queries see, added up


def test_a_length_that_cannot_be_spread_says_what_to_pad_it_to() -> None:
    with pytest.raises(ConfigError, match="pad it to 24"):
        share(21, 0, 4)
