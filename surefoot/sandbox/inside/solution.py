"""The solution's side of a verdict: holds the model's code, answers calls, and never sees an expected value."""

from __future__ import annotations

import importlib
import operator
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn

from . import codec, program
from .channel import Channel

_OPERATORS = """
add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift neg pos abs invert iadd isub imul
getitem setitem delitem contains
"""
OPERATORS = tuple(_OPERATORS.split())


def main(payload: dict[str, Any], fd: int) -> NoReturn:
    """Load `payload["code"]` and serve calls on the socket `fd` until the caller closes it."""
    server = Server(Channel(fd))
    status = server.load(payload["code"])
    if status is not None:
        program.finish(status)
    program.stay_on(payload.get("core"))
    server.serve()
    program.finish(0)


def run_calls(code: str, calls: list[dict[str, Any]], fd: int) -> NoReturn:
    """Load `code`, make all `calls`, and write one line of JSON for each to `fd`."""
    server = Server(None)
    status = server.load(code)
    if status is not None:
        program.finish(status)
    with open(fd, "wb", buffering=0) as pipe:
        for call in calls:
            reply = server.answer("call_name", call["f"], call["a"], call["k"])
            try:
                line = codec.dumps(reply)
            except codec.CodecError as error:
                line = codec.dumps({"e": ["CodecError", str(error), []]})
            pipe.write(line + b"\n")
    program.finish(0)


class Server:
    """A namespace with the solution loaded, and the table of its objects that the caller holds."""

    def __init__(self, channel: Channel | None) -> None:
        self._channel = channel
        self._objects: list[Any] = []
        self._numbers: dict[int, int] = {}
        self.module = types.ModuleType("solution")

    def load(self, code: str) -> int | None:
        """Run the solution's code. Returns the exit status if that failed (its traceback is on stderr)."""
        name = "solution" if code else "__main__"  # a project of files may have a solution.py of its own
        self.module = program.new_main(code, name, "solution.py")
        sys.modules["__main__"] = self.module
        status = program.run_guarded(code, self.module)
        if self._channel is not None:
            self._channel.send({"loaded": status == 0, "names": [n for n in self.module.__dict__ if n[:2] != "__"]})
        return status or None

    def serve(self) -> None:
        channel = self._channel
        assert channel is not None
        while True:
            try:
                identifier, operation, target, args, kwargs = channel.receive()
            except EOFError:
                return
            reply = self.answer(operation, target, args, kwargs)
            reply["id"] = identifier
            try:
                channel.send(reply)
            except codec.CodecError as error:
                channel.send({"id": identifier, "e": ["CodecError", str(error), []]})

    def answer(self, operation: str, target: Any, raw_args: Any, raw_kwargs: Any) -> dict[str, Any]:
        """Do one operation; the reply holds the result `r` or the error `e`, and the arguments changed in place `m`."""
        args: list[Any] = []
        try:
            args = [codec.decode(raw, self._resolve) for raw in raw_args]
            kwargs = {name: codec.decode(raw, self._resolve) for name, raw in raw_kwargs.items()}
            result = self._perform(operation, target, args, kwargs)
            reply: dict[str, Any] = {}
            position = next((i for i, arg in enumerate(args) if arg is result and isinstance(arg, codec.MUTABLE)), None)
            reply["r"] = codec.encode(result, self._export) if position is None else {"same": position}
        except BaseException as error:
            reply = {"e": describe(error)}
            if isinstance(error, StopIteration):
                reply["stop"] = True
        if operation.startswith("call"):
            self._tell_changes(reply, raw_args, args)
        return reply

    def _tell_changes(self, reply: dict[str, Any], raw_args: Any, args: list[Any]) -> None:
        changed = {}
        for index, (raw, arg) in enumerate(zip(raw_args, args, strict=False)):
            if isinstance(arg, codec.MUTABLE):
                try:
                    after = codec.encode(arg, self._export)
                except codec.CodecError:
                    continue
                if after != raw:
                    changed[str(index)] = after
        if changed:
            reply["m"] = changed

    def _perform(self, operation: str, target: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if operation == "name":
            return self._named(target)
        if operation == "module":
            return importlib.import_module(target).__name__
        if operation == "call_name":
            return self._lookup(target)(*args, **kwargs)
        if operation == "call_method":
            number, method = target
            return getattr(self._objects[number], method)(*args, **kwargs)
        thing = self._objects[target]
        if operation == "call":
            return thing(*args, **kwargs)
        simple: dict[str, Callable[..., Any]] = {
            "get": getattr, "set": setattr, "iter": iter, "next": next, "len": len, "str": str, "repr": repr,
        }  # fmt: skip
        if operation in simple:
            return simple[operation](thing, *args)
        if operation in OPERATORS:
            return getattr(operator, operation)(thing, *args)
        raise TypeError(f"unknown operation {operation!r}")

    def _named(self, name: str) -> Any:
        """A global of the solution, or `module:name` of a project."""
        module, _, attribute = name.rpartition(":")
        scope = importlib.import_module(module).__dict__ if module else self.module.__dict__
        return scope[attribute]

    def _lookup(self, name: str) -> Any:
        """A function by name; a LeetCode-style `Solution` class is looked through as well."""
        if ":" in name:
            return self._named(name)
        first, *rest = name.split(".")
        scope = self.module.__dict__
        if first in scope:
            found = scope[first]
        elif "Solution" in scope and hasattr(scope["Solution"], first):
            found = getattr(scope["Solution"](), first)
        else:
            raise NameError(f"name {first!r} is not defined")
        for attribute in rest:
            found = getattr(found() if isinstance(found, type) else found, attribute)
        return found

    def _export(self, value: Any) -> dict[str, Any]:
        if type(value) is Theirs or type(value) is TheirIterator:
            return {"y": value.number}
        if self._channel is None:
            raise codec.CodecError(f"a value of type {type(value).__name__} cannot cross the wall: only plain data can")
        number = self._numbers.setdefault(id(value), len(self._objects))
        if number == len(self._objects):
            self._objects.append(value)
        is_module = isinstance(value, types.ModuleType)
        bases = describe_type(value) if isinstance(value, type) and issubclass(value, BaseException) else []
        return {"h": [number, type(value).__name__, value.__name__ if is_module else "", bases]}

    def _resolve(self, tag: str, inner: Any) -> Any:
        if tag == "y":
            return self._objects[inner]
        if tag == "h" and self._channel is not None:
            number, kind = inner[0], inner[1]
            return TheirIterator(self, number) if kind == "iterator" else Theirs(self, number)
        raise codec.CodecError(f"unknown tag {tag!r}")

    def back(self, operation: str, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call something of the caller's, in the middle of a call of ours."""
        channel = self._channel
        assert channel is not None
        raw = [codec.encode(arg, self._export) for arg in args]
        named = {name: codec.encode(arg, self._export) for name, arg in kwargs.items()}
        channel.send({"back": operation, "of": number, "a": raw, "k": named})
        while True:
            message = channel.receive()
            if isinstance(message, list):  # the tests use our objects while we wait
                identifier, inner, target, inner_args, inner_kwargs = message
                channel.send({**self.answer(inner, target, inner_args, inner_kwargs), "id": identifier})
                continue
            if message.get("stop"):
                raise StopIteration
            if "e" in message:
                raise RuntimeError(f"the caller's function raised {message['e']}")
            return codec.decode(message["r"], self._resolve)


class Theirs:
    """A function of the tests that was passed as an argument."""

    def __init__(self, server: Server, number: int) -> None:
        self._server, self.number = server, number

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._server.back("call", self.number, args, kwargs)


class TheirIterator:
    """An iterator of the tests that was passed as an argument."""

    def __init__(self, server: Server, number: int) -> None:
        self._server, self.number = server, number

    def __iter__(self) -> TheirIterator:
        return self

    def __next__(self) -> Any:
        return self._server.back("next", self.number, (), {})


def describe_type(kind: type[BaseException]) -> list[str]:
    """The name of an exception's type, and those of the built-in exceptions that it derives from."""
    return [kind.__name__, *(base.__name__ for base in kind.__mro__ if base.__module__ == "builtins")]


def describe(error: BaseException) -> list[Any]:
    """Type name, message, and the names of the built-in exceptions that it derives from."""
    try:
        message = str(error)[:2000]
    except BaseException:
        message = "(its message cannot be shown)"
    name, *bases = describe_type(type(error))
    return [name, message, bases]
