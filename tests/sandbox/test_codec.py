"""What crosses the wall comes out as it went in; what is malformed is refused, and nothing else happens."""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.sandbox.inside import codec

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(1 << 9000), max_value=1 << 9000)
    | st.floats(allow_nan=False)
    | st.text(st.characters())
    | st.text(st.characters(categories=["Cs"]))
    | st.binary()
    | st.complex_numbers(allow_nan=False)
)
HASHABLE = st.recursive(SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=6)
VALUES = st.recursive(
    HASHABLE | st.binary().map(bytearray),
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(HASHABLE, inner, max_size=4) | st.sets(HASHABLE)
    ),
    max_leaves=12,
)


def across(value: Any) -> Any:
    return codec.decode(codec.loads(codec.dumps(codec.encode(value))))


@given(VALUES)
@settings(max_examples=300, deadline=None)
def test_plain_data_comes_out_as_it_went_in(value: Any) -> None:
    result = across(value)
    assert result == value and type(result) is type(value)


@pytest.mark.parametrize("value", [math.inf, -math.inf, -0.0, 5e-324, 0.1 + 0.2, 1e308])
def test_floats_are_exact(value: float) -> None:
    assert math.copysign(1, across(value)) == math.copysign(1, value) and across(value) == value


def test_nan() -> None:
    assert math.isnan(across(math.nan)) and math.isnan(across([math.nan])[0])


@pytest.mark.parametrize("value", [Decimal("1.50"), Fraction(1, 3), range(2, 9, 3), bytearray(b"x"), 1 << 9999])
def test_other_plain_values(value: Any) -> None:
    assert across(value) == value and type(across(value)) is type(value)


def test_subclasses_are_flattened() -> None:
    point = namedtuple("point", "x y")

    class Lying(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    for value, plain in (
        (point(1, 2), (1, 2)),
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(a=1), {"a": 1}),
        (defaultdict(list, a=[1]), {"a": [1]}),
        (deque([1, 2]), [1, 2]),
        (Lying(3), 3),
    ):
        assert across(value) == plain and type(across(value)) is type(plain)


@pytest.mark.parametrize("value", [object(), lambda: 1, codec, iter([]), int, {1: object()}])
def test_what_is_not_plain_data_is_named(value: Any) -> None:
    with pytest.raises(codec.CodecError, match="cannot cross"):
        codec.encode(value)


def test_cycles_and_depth_are_refused() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(codec.CodecError, match="cyclic"):
        codec.encode(cycle)
    with pytest.raises(codec.CodecError):
        codec.decode(codec.loads(b"[" * 100000 + b"]" * 100000))


def test_size_is_bounded() -> None:
    with pytest.raises(codec.CodecError, match="larger"):
        codec.dumps("x" * (codec.MAX_MESSAGE + 1))


@pytest.mark.parametrize(
    "data",
    [
        "{", "nope", '{"i": 5}', '{"i": "zz"}', '{"b": "0g"}', '{"d": [1]}', '{"d": [[[], 1]]}', '{"s": [[1]]}', "{}",
        '{"t": 1, "s": 2}', '{"__reduce__": ["os.system", "true"]}', '{"h": [0, "x", "", true]}', '{"c": ["a", 1]}',
        '{"n": "x"}', '{"q": [1, 0]}', '{"a": ["O", [1]]}', '{"a": ["<i4", ["x"]]}', '{"m": 1}', '{"r": [1, 2, 0]}',
    ],
)  # fmt: skip
def test_malformed_data_is_an_error_of_ours(data: str) -> None:
    with pytest.raises(codec.CodecError):
        codec.decode(codec.loads(data.encode()))


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("ibBctsfdrnqamhyz") | st.text(), inner, max_size=2),
))  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_any_json_decodes_or_is_an_error_of_ours(data: Any) -> None:
    with contextlib.suppress(codec.CodecError):
        codec.decode(codec.loads(json.dumps(data).encode()))


def test_assign_keeps_identities() -> None:
    inner = [1]
    outer: list[Any] = [inner, {"a": inner}]
    codec.assign(outer, [[1, 2], {"a": [3], "b": 4}, 5])
    assert outer[0] is inner and inner == [3] and outer == [[3], {"a": [3], "b": 4}, 5]


def test_numpy_arrays_cross() -> None:
    numpy = pytest.importorskip("numpy")
    array = numpy.array([[1.5, 2], [3, 4]])
    assert (across(array) == array).all() and across(array).dtype == array.dtype
    assert across(numpy.int64(3)) == 3 and across(numpy.bool_(True)) is True
