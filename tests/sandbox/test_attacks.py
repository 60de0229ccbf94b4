"""Every hostile program gets the outcome that it must get, reaches nothing, harms no neighbour, and leaves nothing."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread

import attacks_endings  # noqa: F401 - these three fill ATTACKS
import attacks_reach  # noqa: F401
import attacks_resources  # noqa: F401
import pytest
from hostile import ATTACKS, Attack

from surefoot.protocols import Limits, Program
from surefoot.sandbox import Sandbox, probes, sampler
from surefoot.types import Execution

LIMITS = Limits(cpu_seconds=0.4, wall_seconds=1.5, memory_mb=128, processes=12, output_kb=32, disk_mb=8)
NEIGHBOUR = "print(sum(i * i for i in range(20000)))"
EXPECTED = f"{sum(i * i for i in range(20000))}\n"


@dataclass
class Host:
    """What must be as it was after an attack."""

    target: probes.Bait
    listener: socket.socket

    def unharmed(self) -> bool:
        self.listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            self.listener.accept()
        os.kill(self.target.pid, 0)
        state = Path(f"/proc/{self.target.pid}/stat").read_text().rsplit(")")[1].split()[0]
        return state in "SR" and not (Path(self.target.folder) / "hit").exists()


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with probes.bait() as target, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{target.folder}/socket")
        listener.listen()
        Path(target.folder, "socket").chmod(0o777)
        yield Host(target, listener)


def _left_behind() -> tuple[int, int, int]:
    processes = len(list(sampler.tree(os.getpid())))
    mounts = len(Path("/proc/self/mounts").read_text().splitlines())
    return processes, mounts, len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: f"{attack.kind}-{attack.name}")
def test_attack_is_contained(sandbox: Sandbox, host: Host, attack: Attack) -> None:
    values = {**asdict(host.target), "supervisor": os.getpid()}
    body = attack.code
    for name, value in values.items():
        body = body.replace("{" + name + "}", str(value))
    body = body.replace("{{", "{").replace("}}", "}")
    sandbox.run(Program(code="mark = 'PREVIOUS-' + 'RUN-MARK' + str(1)"))
    before = _left_behind()
    neighbours: list[Execution] = []
    neighbour = Thread(target=lambda: neighbours.append(sandbox.run(Program(code=NEIGHBOUR))))
    neighbour.start()
    execution = sandbox.run(Program(code=body, limits=LIMITS))
    neighbour.join()
    assert "ESCAPED" not in execution.stdout, execution.stdout
    assert execution.outcome in attack.outcomes, execution
    assert (neighbours[0].outcome, neighbours[0].stdout) == ("ok", EXPECTED)
    assert host.unharmed()
    _complete(execution)
    after = sandbox.run(Program(code=LOOK_BACK))
    assert after.stdout == "[] [] clean\n", after
    for _ in range(50):  # the kernel may take a moment to reap
        if _left_behind() <= before:
            break
        time.sleep(0.02)
    assert _left_behind() <= before


LOOK_BACK = """
import builtins, os, sys, tempfile
traces = hasattr(builtins, "PREVIOUS_RUN") or "PREVIOUS_RUN" in os.environ or "PREVIOUS_RUN" in sys.modules
print(os.listdir("."), os.listdir(tempfile.gettempdir()), "dirty" if traces else "clean")
"""


def _complete(execution: Execution) -> None:
    """Every field is filled, for a killed run as well."""
    assert execution.outcome != "sandbox_error", execution
    assert (execution.exit_code is None) != (execution.signal is None)
    assert execution.wall_seconds > 0 and execution.cpu_seconds > 0 and execution.peak_memory_mb > 1
    assert execution.level and execution.image
    assert execution.detail or execution.outcome == "ok"


def test_there_are_enough_attacks() -> None:
    assert len({attack.name for attack in ATTACKS}) >= 60
    assert len({attack.kind for attack in ATTACKS}) >= 10
