"""A machine that gives no processor time is at fault, not the program."""

from __future__ import annotations

import pytest

from surefoot.protocols import Limits, Program
from surefoot.sandbox import Sandbox, sampler

IDLE = Program(code="import time\ntime.sleep(30)", limits=Limits(wall_seconds=0.2))


def test_a_program_that_waits_for_nothing_is_timed_out(sandbox: Sandbox) -> None:
    assert sandbox.run(IDLE).outcome == "timeout"


def test_a_program_that_gets_no_core_is_never_counted_against_the_model(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "delay", lambda pid: 1e6)  # as the kernel tells it of a starved process
    run = sandbox.run(IDLE)
    assert run.outcome == "sandbox_error"
    assert "hardly any processor time" in run.detail
