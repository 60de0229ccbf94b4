"""The parent's side of `reasoning_child`: asks for items in blocks and keeps the latest."""

from __future__ import annotations

import atexit
import difflib
import importlib.util
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from surefoot.errors import ConfigError, DataError

CHILD = Path(__file__).with_name("reasoning_child.py")
SECONDS = 120.0
"""Longest that one block of items may take."""
KEPT = 512
"""Items kept in memory for each data set."""


class Maker:
    """One child process for all reasoning-gym domains of this process. Thread-safe; starts the child when needed."""

    def __init__(self, hash_seed: str = "0") -> None:
        self._hash_seed = hash_seed
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    def items(self, name: str, options: Mapping[str, Any], seeds: Sequence[int]) -> tuple[list[dict[str, Any]], bool]:
        """The items of `seeds`, and whether the data set scores by plain equality.

        Raises ConfigError for an unknown name or option, DataError for a generator that fails or takes too long.
        """
        where = f"reasoning_gym:{name}"
        with self._lock:
            reply = self._ask({"name": name, "options": dict(options), "seeds": list(seeds)}, where)
        if "error" in reply:
            raise _explain(reply, name, where)
        return reply["items"], bool(reply["plain"])

    def curriculum(self, name: str, count: int) -> list[dict[str, Any]]:
        """Options of the first `count` levels of the data set's own curriculum, the easiest first.

        Levels that the data set itself refuses, and those that are like the one before, are left out. Raises
        ConfigError for an unknown name.
        """
        where = f"reasoning_gym:{name}"
        with self._lock:
            reply = self._ask({"name": name, "curriculum": count}, where)
        if "error" in reply:
            raise _explain(reply, name, where)
        levels: list[dict[str, Any]] = reply["levels"]
        return levels

    def close(self) -> None:
        """End the child."""
        with self._lock:
            self._drop()

    def _ask(self, request: dict[str, Any], where: str) -> dict[str, Any]:
        child = self._child if self._child is not None and self._child.poll() is None else self._start()
        assert child.stdin is not None and child.stdout is not None
        try:
            child.stdin.write(json.dumps(request).encode() + b"\n")
            child.stdin.flush()
            line = _read_line(child.stdout.fileno(), SECONDS)
        except TimeoutError:
            self._drop()
            fix = "choose easier options for this generator"
            raise DataError(f"the generator took more than {SECONDS:.0f} s", where=where, fix=fix) from None
        except (OSError, EOFError) as error:
            self._drop()
            raise DataError(f"the generator's process ended ({error or 'it crashed'})", where=where) from None
        reply: dict[str, Any] = json.loads(line)
        return reply

    def _start(self) -> subprocess.Popen[bytes]:
        if importlib.util.find_spec("reasoning_gym") is None:
            raise ConfigError(
                "the package reasoning-gym is not installed",
                fix="pip install 'surefoot[reasoning]'",
                where="reasoning_gym",
            )
        env = {**os.environ, "PYTHONHASHSEED": self._hash_seed, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._child = subprocess.Popen(
            [sys.executable, "-P", str(CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
            start_new_session=True,  # Ctrl-C is for the trainer, which ends the child by closing its input
        )
        return self._child

    def _drop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()


class Items:
    """The items of one data set by seed, made in blocks."""

    def __init__(self, maker: Maker, name: str, options: Mapping[str, Any]) -> None:
        self._maker, self._name, self._options = maker, name, options
        self._kept: OrderedDict[int, dict[str, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, seed: int, ahead: Sequence[int]) -> dict[str, Any]:
        """The item of `seed`; where it has to be made, those of `ahead` are made with it."""
        with self._lock:
            if seed not in self._kept:
                wanted = [seed, *(s for s in ahead if s != seed and s not in self._kept)]
                made, plain = self._maker.items(self._name, self._options, wanted)
                self._kept.update((s, {**item, "plain": plain}) for s, item in zip(wanted, made, strict=True))
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            return self._kept[seed]


MAKER = Maker()
atexit.register(MAKER.close)


def _read_line(descriptor: int, seconds: float) -> bytes:
    """One line from a pipe. Raises TimeoutError, or EOFError where the other side is gone."""
    deadline = time.monotonic() + seconds
    data = bytearray()
    while not data.endswith(b"\n"):
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        chunk = os.read(descriptor, 1 << 16)
        if not chunk:
            raise EOFError
        data += chunk
    return bytes(data)


def _explain(reply: Mapping[str, Any], name: str, where: str) -> ConfigError | DataError:
    if reply["kind"] == "item":
        fix = "the generator failed; other options may avoid it"
        return DataError(f"an item could not be made: {reply['error']}", where=where, fix=fix)
    near = difflib.get_close_matches(str(reply.get("key", name)), reply["known"], n=1, cutoff=0.5)
    hint = f" (did you mean {near[0]!r}?)" if near and ("key" in reply or reply["kind"] == "name") else ""
    fix = (
        f"options of this generator: {', '.join(reply['known'])}"
        if reply["kind"] == "options"
        else ("surefoot domains list names all of them")
    )
    return ConfigError(f"{reply['error']}{hint}", where=where, fix=fix)
