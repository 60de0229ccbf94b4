"""What a hostile program of the corpus is; the programs are in `attacks_resources` and `attacks_reach`.

A program prints `ESCAPED ...` when it reached something that it must not reach. `{secret}`, `{folder}`, `{port}`,
`{abstract}`, `{pid}` and `{supervisor}` are filled with real targets on the host.
"""

from __future__ import annotations

from dataclasses import dataclass

PRELUDE = """
import ctypes, os, signal, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
def escaped(*what): print("ESCAPED", *what, flush=True)
def must_fail(name, action):
    try: value = action()
    except BaseException: return
    escaped(name, repr(value)[:200])
def syscall(x86, arm, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(x86 if X86 else arm, *arguments)
    if result < 0: raise OSError(ctypes.get_errno(), "refused")
    return result
"""


@dataclass(frozen=True)
class Attack:
    """One hostile program."""

    kind: str
    name: str
    code: str
    outcomes: tuple[str, ...] = ("ok",)
    """Any of these; where there is more than one, the level or the moment decides."""


OK, FAILED, TIMEOUT = ("ok",), ("failed",), ("timeout",)

ATTACKS: list[Attack] = []
"""Filled by the modules that hold the programs."""


def add(kind: str, name: str, code: str, outcomes: tuple[str, ...] = OK) -> None:
    ATTACKS.append(Attack(kind, name, PRELUDE + code, outcomes))
