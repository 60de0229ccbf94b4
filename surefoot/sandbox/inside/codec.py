"""Plain data as JSON, and back: what may cross between a solution and whoever calls it.

Numbers of any size, inf and nan, text with lone surrogates, bytes, and nested containers cross by value. Subclasses
are flattened to their base. Nothing is pickled; decoding runs no code of the sender. Everything that is not one of
JSON's own types becomes an object with one key, its tag:

    i big int   c complex   n Decimal   q Fraction   r range   u text with surrogates   b bytes   B bytearray
    t tuple     s set       f frozenset   d dict     a numpy array     m regular-expression match
    h the sender's object   y the receiver's object
"""

from __future__ import annotations

import json
import re
import sys
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from . import match

MAX_MESSAGE = 16 << 20
"""Longest message in bytes."""
_SMALL = 1 << 62


class CodecError(ValueError):
    """A value cannot cross, or what came across is malformed."""


Export = Callable[[Any], dict[str, Any]]
Import = Callable[[str, Any], Any]


def _no_export(value: Any) -> dict[str, Any]:
    raise CodecError(f"a value of type {type(value).__name__} cannot cross the wall: only plain data can")


def _no_import(tag: str, _: Any) -> Any:
    raise CodecError(f"an object ({tag!r}) where only plain data may come")


def encode(value: Any, export: Export = _no_export) -> Any:
    """`value` as JSON-ready data; `export` turns what is not plain data into a tagged reference.

    Raises CodecError for what cannot cross, and for cyclic or too deeply nested containers.
    """
    try:
        return _encode(value, export)
    except RecursionError:
        raise CodecError("the value is cyclic or nested too deeply") from None


def _encode(value: Any, export: Export) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _encode_text(value)
    if kind is float or kind is bool or value is None:
        return value
    if kind is int:
        return value if -_SMALL < value < _SMALL else {"i": hex(value)}
    if kind is list:
        return [_encode(item, export) for item in value]
    if kind is tuple:
        return {"t": [_encode(item, export) for item in value]}
    if kind is dict:
        return {"d": [[_encode(k, export), _encode(v, export)] for k, v in value.items()]}
    if kind is set or kind is frozenset:
        return {"s" if kind is set else "f": [_encode(item, export) for item in value]}
    return _encode_rare(value, export)


def _encode_text(text: str) -> Any:
    """JSON would join two lone surrogates that stand side by side into one character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return {"u": text.encode("utf-8", "surrogatepass").hex()}
    return text


def _encode_rare(value: Any, export: Export) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return {"B" if isinstance(value, bytearray) else "b": value.hex()}
    if isinstance(value, complex):
        return {"c": [value.real, value.imag]}
    if type(value) is range:
        return {"r": [_encode(n, export) for n in (value.start, value.stop, value.step)]}
    if type(value) is Decimal:
        return {"n": str(value)}
    if type(value) is Fraction:
        return {"q": [_encode(value.numerator, export), _encode(value.denominator, export)]}
    if type(value) is re.Match and isinstance(value.string, str):
        return {"m": match.pack(value)}
    if (array := _numpy(value, export)) is not None:
        return array
    for base, flatten in _FLATTEN:
        if isinstance(value, base):
            return _encode(flatten(value), export)
    return export(value)


_FLATTEN: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__index__),
    (float, float.__float__),
    (str, str.__str__),
    (list, lambda v: list(list.__iter__(v))),
    (tuple, lambda v: tuple(tuple.__iter__(v))),
    (dict, lambda v: dict(dict.items(v))),
    (set, lambda v: set(set.__iter__(v))),
    (frozenset, lambda v: frozenset(frozenset.__iter__(v))),
    (deque, lambda v: list(deque.__iter__(v))),
)


def _numpy(value: Any, export: Export) -> Any:
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, (numpy.generic, numpy.ndarray)):
        return None
    if value.dtype.kind not in "biufcSU":
        raise CodecError(f"a numpy array of type {value.dtype} cannot cross")
    if isinstance(value, numpy.generic):
        return _encode(value.item(), export)
    return {"a": [value.dtype.str, _encode(value.tolist(), export)]}


def decode(data: Any, resolve: Import = _no_import) -> Any:
    """The inverse of `encode`; `resolve` turns a tagged reference into an object. Raises CodecError if malformed."""
    try:
        return _decode(data, resolve)
    except CodecError:
        raise
    except RecursionError:
        raise CodecError("nested too deeply") from None
    except Exception as error:
        raise CodecError(f"malformed data: {error}") from None


def _decode(data: Any, resolve: Import) -> Any:
    kind = type(data)
    if kind is list:
        return [_decode(item, resolve) for item in data]
    if kind is not dict:
        return data
    ((tag, inner),) = data.items()
    if tag == "t":
        return tuple([_decode(item, resolve) for item in inner])
    if tag == "d":
        return {_decode(k, resolve): _decode(v, resolve) for k, v in inner}
    if tag == "i":
        return int(inner, 16)
    if tag in _DECODERS:
        return _DECODERS[tag](inner, resolve)
    return resolve(tag, inner)


def _decode_array(inner: Any, resolve: Import) -> Any:
    import numpy

    dtype = numpy.dtype(str(inner[0]))
    if dtype.kind not in "biufcSU":
        raise CodecError(f"a numpy array of type {dtype}")
    return numpy.array(_decode(inner[1], resolve), dtype=dtype)


_DECODERS: dict[str, Callable[[Any, Import], Any]] = {
    "s": lambda inner, resolve: {_decode(item, resolve) for item in inner},
    "f": lambda inner, resolve: frozenset(_decode(item, resolve) for item in inner),
    "b": lambda inner, _: bytes.fromhex(inner),
    "B": lambda inner, _: bytearray.fromhex(inner),
    "c": lambda inner, _: complex(float(inner[0]), float(inner[1])),
    "r": lambda inner, resolve: range(*[_decode(n, resolve) for n in inner]),
    "n": lambda inner, _: Decimal(inner),
    "q": lambda inner, resolve: Fraction(_decode(inner[0], resolve), _decode(inner[1], resolve)),
    "a": _decode_array,
    "u": lambda inner, _: bytes.fromhex(inner).decode("utf-8", "surrogatepass"),
    "m": lambda inner, _: match.unpack(inner),
}


def dumps(message: Any) -> bytes:
    """A message as bytes. Raises CodecError if it is too long or too deep."""
    try:
        data = _write(message).encode("ascii")
    except (RecursionError, ValueError, TypeError) as error:
        raise CodecError(f"cannot be written: {error}") from None
    if len(data) > MAX_MESSAGE:
        raise CodecError(f"the message of {len(data) >> 20} MiB is larger than {MAX_MESSAGE >> 20} MiB")
    return data


def reader(nan: Callable[[], float]) -> Callable[[str], Any]:
    """A JSON reader that gives `nan()` for each nan."""
    return json.JSONDecoder(parse_constant=lambda name: nan() if name == "NaN" else float(name)).decode


# Made once: `json.dumps` and `json.loads` make a new one for each call that has options, for a third of a call's time.
_write = json.JSONEncoder(separators=(",", ":")).encode
_read = reader(lambda: float("nan"))


def loads(data: bytes, read: Callable[[str], Any] = _read) -> Any:
    """A message from bytes, by `read`. Raises CodecError if it is not JSON or too deep."""
    try:
        return read(data.decode())
    except (RecursionError, ValueError) as error:
        raise CodecError(f"cannot be read: {type(error).__name__}: {str(error)[:200]}") from None


MUTABLE = (list, dict, set, bytearray)


def assign(old: Any, new: Any) -> Any:
    """Make `old` equal to `new` in place where both are mutable containers of one type, so that aliases see it."""
    if type(old) is not type(new):
        return new
    if isinstance(old, list):
        old[:] = [assign(old[i], item) if i < len(old) else item for i, item in enumerate(new)]
    elif isinstance(old, dict):
        kept = {key: assign(old[key], item) if key in old else item for key, item in new.items()}
        old.clear()
        old.update(kept)
    elif isinstance(old, set):
        old.clear()
        old.update(new)
    elif isinstance(old, bytearray):
        old[:] = new
    else:
        return new
    return old
