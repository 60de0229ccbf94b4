"""The tests' side of a verdict: stand-ins for the solution's functions and objects.

What a stand-in gives back is plain data, built in this process from JSON. A stand-in is never equal to anything but
itself and has no truth value, so that no test is decided by code of the solution (`__eq__`, `__bool__`, ...).
"""

from __future__ import annotations

import builtins
import secrets
import sys
from collections.abc import Iterator
from typing import Any

from . import codec
from .channel import Channel
from .solution import OPERATORS


class SolutionGoneError(Exception):
    """The solution's process ended, or did not keep to the protocol."""


class RemoteError(Exception):
    """An exception of the solution that is none of Python's ordinary ones."""


class Peer:
    """The connection to the solution, and the table of the tests' functions that it may call back."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._exported: list[Any] = []
        self._broken = ""
        self._exceptions = Exceptions()
        self._last: tuple[str, tuple[Any, ...], Any] | None = None
        self.names: frozenset[str] = frozenset()

    def wait_until_loaded(self) -> bool:
        """Whether the solution's code ran to its end without an exception."""
        try:
            message = self._channel.receive()
            self.names = frozenset(name for name in message["names"] if isinstance(name, str))
            return message["loaded"] is True
        except (EOFError, OSError, codec.CodecError, KeyError, TypeError) as error:
            self._broken = f"the solution ended while it was loaded ({error})"
            return False

    def request(
        self, operation: str, target: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Have the solution do something. Raises what it raised, or SolutionGoneError."""
        if self._broken:
            raise SolutionGoneError(self._broken)
        identifier = secrets.token_hex(8)
        raw = [codec.encode(arg, self._export) for arg in args]
        named = {name: codec.encode(arg, self._export) for name, arg in (kwargs or {}).items()}
        try:
            self._channel.send([identifier, operation, target, raw, named])
            reply = self._reply(identifier)
            self._apply_changes(reply.get("m"), args)
            if "r" in reply:
                return self._result(reply["r"], args)
        except (EOFError, OSError) as error:
            raise self._break(f"the solution's process ended ({error})") from None
        except (codec.CodecError, AttributeError, TypeError, KeyError, IndexError) as error:
            raise self._break(f"the solution's process sent something malformed ({error})") from None
        if reply.get("stop"):
            raise StopIteration
        raise self._exceptions.made_from(reply.get("e"))

    def _break(self, why: str) -> SolutionGoneError:
        self._broken = why
        return SolutionGoneError(why)

    def _reply(self, identifier: str) -> dict[str, Any]:
        while True:
            message: dict[str, Any] = self._channel.receive()
            if "back" in message:
                self._channel.send(self._answer(message))
            elif message.get("id") == identifier:
                return message
            else:
                raise codec.CodecError("a reply to a call that was not made")

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Let the solution call a function of the tests that it was given, or take from an iterator."""
        thing = self._exported[message["of"]]
        args = [codec.decode(raw, self._resolve) for raw in message["a"]]
        kwargs = {str(name): codec.decode(raw, self._resolve) for name, raw in message["k"].items()}
        try:
            result = next(thing) if isinstance(thing, Iterator) else thing(*args, **kwargs)
            return {"r": codec.encode(result, self._export)}
        except StopIteration:
            return {"stop": True}
        except SolutionGoneError:
            raise EOFError("the solution's process ended") from None
        except Exception as error:
            return {"e": f"{type(error).__name__}: {error}"}

    def _result(self, raw: Any, args: tuple[Any, ...]) -> Any:
        if type(raw) is dict and "same" in raw:
            return args[raw["same"]]
        return codec.decode(raw, self._resolve)

    def _apply_changes(self, changes: Any, args: tuple[Any, ...]) -> None:
        for index, raw in (changes or {}).items():
            if isinstance(args[int(index)], codec.MUTABLE):
                codec.assign(args[int(index)], codec.decode(raw, self._resolve))

    def _export(self, value: Any) -> dict[str, Any]:
        if type(value) is Remote:
            return {"y": object.__getattribute__(value, "_number")}
        if not (callable(value) or isinstance(value, Iterator)):
            kind = type(value).__name__
            raise TypeError(f"a {kind} cannot be passed to the solution: only plain data and functions can")
        self._exported.append(value)
        return {"h": [len(self._exported) - 1, "iterator" if isinstance(value, Iterator) else "function"]}

    def _resolve(self, tag: str, inner: Any) -> Any:
        if tag == "y":
            return self._exported[inner]
        if tag == "h":
            number, kind, module, bases = inner
            if module and (module in sys.stdlib_module_names or module == "numpy"):
                return __import__(str(module))
            return self._exceptions.type_of(bases[0], bases[1:]) if bases else Remote(self, int(number), str(kind))
        raise codec.CodecError(f"unknown tag {tag!r}")

    def function(self, name: str) -> Any:
        """A stand-in for the solution's global `name`: its value if that is plain data."""
        value = self.request("name", name)
        return Function(self, name) if type(value) is Remote else value

    # ---------------------------------------------------------------------------------------------------- evidence

    def note(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        self._last = (name, args, result)

    def last_call(self) -> str:
        """The latest call and what it gave, shortened."""
        if self._last is None:
            return ""
        name, args, result = self._last
        return f"{name}({', '.join(show(arg) for arg in args)}) -> {show(result)}"


def show(value: Any, limit: int = 200) -> str:
    """A short repr that never calls the solution."""
    if type(value) is Remote:
        return f"<{object.__getattribute__(value, '_kind')} object>"
    if isinstance(value, (list, tuple, set, frozenset, dict)) and _holds_remote(value):
        return f"<{type(value).__name__} with objects of the solution>"
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}: {error}>"
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def _holds_remote(value: Any, depth: int = 3) -> bool:
    if type(value) is Remote or not depth:
        return True
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    nested = (Remote, list, tuple, set, frozenset, dict)
    return any(isinstance(item, nested) and _holds_remote(item, depth - 1) for item in value)


class Remote:
    """An object that lives in the solution's process."""

    __slots__ = ("_kind", "_number", "_peer")

    def __init__(self, peer: Peer, number: int, kind: str) -> None:
        object.__setattr__(self, "_peer", peer)
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "_kind", kind)

    def __getattr__(self, name: str) -> Any:
        return _ask(self, "get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        _ask(self, "set", name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        peer, number = _of(self)
        result = peer.request("call", number, args, kwargs)
        peer.note(object.__getattribute__(self, "_kind"), args, result)
        return result

    def __iter__(self) -> Any:
        return _ask(self, "iter")

    def __next__(self) -> Any:
        return _ask(self, "next")

    def __len__(self) -> int:
        length = _ask(self, "len")
        return length if type(length) is int else NotImplemented

    def __str__(self) -> str:
        return _text(_ask(self, "str"))

    def __repr__(self) -> str:
        return _text(_ask(self, "repr"))

    def __eq__(self, other: object) -> bool:
        if type(other) is not Remote:
            return False
        if _of(self)[1] == _of(other)[1]:
            return True
        raise TypeError("whether two of the solution's objects are equal is the solution's word, so it proves nothing")

    def __hash__(self) -> int:
        return hash(_of(self)[1])

    def __bool__(self) -> bool:
        raise TypeError("whether an object of the solution is true is the solution's word, so it proves nothing")


def _of(remote: Remote) -> tuple[Peer, int]:
    return object.__getattribute__(remote, "_peer"), object.__getattribute__(remote, "_number")


def _ask(remote: Remote, operation: str, *args: Any) -> Any:
    peer, number = _of(remote)
    return peer.request(operation, number, args)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("the solution's __str__ gave no text")
    return value


def _operator(name: str) -> Any:
    def method(self: Remote, *args: Any) -> Any:
        result = _ask(self, name, *args)
        if name == "contains" and type(result) is not bool:
            raise TypeError("the solution's __contains__ gave no bool")
        return result

    return method


for _name in OPERATORS:
    setattr(Remote, f"__{_name.rstrip('_')}__", _operator(_name))


class Function:
    """A global of the solution, called by its name."""

    def __init__(self, peer: Peer, name: str) -> None:
        self.__dict__.update(_peer=peer, _name=name, __name__=name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self._peer.request("call_name", self._name, args, kwargs)
        self._peer.note(self._name, args, result)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._peer.request("name", self._name), name)


class Exceptions:
    """The solution's exceptions as the tests see them: one type of ours for each name, so that `except` finds it."""

    def __init__(self) -> None:
        self._types: dict[str, type[Exception]] = {}

    def made_from(self, described: Any) -> Exception:
        """An exception like the one that the solution raised: [name, message, names of its built-in bases]."""
        try:
            name, message, bases = described
            return self.type_of(name, bases)(str(message))
        except (TypeError, ValueError):
            return RemoteError(show(described))

    def type_of(self, name: Any, bases: Any) -> type[Exception]:
        """The nearest built-in exception that can be made from a message alone, under the solution's name for it."""
        known = [getattr(builtins, str(base), None) for base in bases]
        usable = (b for b in known if isinstance(b, type) and issubclass(b, Exception) and b not in _NEVER)
        base = next((b for b in usable if _takes_a_message(b)), RemoteError)
        if base.__name__ == name:
            return base
        return self._types.setdefault(str(name), type(str(name), (base,), {}))


def _takes_a_message(kind: type[Exception]) -> bool:
    """Some, as UnicodeDecodeError, need more."""
    try:
        kind("")
    except TypeError:
        return False
    return True


_NEVER = (Exception, StopIteration, StopAsyncIteration)
