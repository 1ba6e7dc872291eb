"""Our msgpack reader against the msgpack package."""

from __future__ import annotations

import struct
import tracemalloc
from typing import Any

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from phlox_record._errors import Malformed
from phlox_record._msgpack import Ext, pack, read_carefully, read_fast, unpack

VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False),
        st.text(st.characters(exclude_categories=["Cs"])),
        st.binary(),
        st.binary(max_size=40).map(lambda data: msgpack.ExtType(5, data)),
    ),
    lambda below: st.one_of(
        st.lists(below, max_size=20),
        st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), below, max_size=20),
    ),
    max_leaves=30,
)


def _ext(value: Any) -> Any:
    if isinstance(value, Ext):
        return msgpack.ExtType(value.code, value.data)
    if isinstance(value, list):
        return [_ext(child) for child in value]
    if isinstance(value, dict):
        return {key: _ext(child) for key, child in value.items()}
    return value


@settings(deadline=None)
@given(value=VALUES)
def test_reads_what_msgpack_writes(value: Any) -> None:
    assert _ext(unpack(pack(value), depth=100, nodes=10_000)) == value


@settings(deadline=None, max_examples=500)
@given(data=st.binary(max_size=60))
def test_accepts_nothing_that_msgpack_reads_differently(data: bytes) -> None:
    try:
        ours = unpack(data, depth=100, nodes=10_000)
    except Malformed:
        return
    theirs = msgpack.unpackb(data, ext_hook=Ext)
    assert repr(ours) == repr(theirs)


@settings(deadline=None, max_examples=500)
@given(data=st.binary(max_size=60) | VALUES.map(pack), at=st.integers(0, 60), byte=st.binary())
@example(data=pack([]), at=0, byte=b"\x91\xd6\xff\0\0\0\1")  # a time stamp
@example(data=pack([]), at=0, byte=b"\x91\xc7\x0c\xff" + bytes(12))
@example(data=pack([]), at=0, byte=b"\x91\xc8\0\x04\xff\0\0\0\1")
@example(data=pack([]), at=0, byte=b"\x91\xd4\xfe\0")  # a code below zero
@example(data=pack([]), at=0, byte=b"\x82\xa1a\1\xa1a\2")  # a key twice
@example(data=pack([]), at=0, byte=b"\x81\xc4\1a\1")  # a key of bytes
@example(data=pack([]), at=0, byte=b"\x91\xa1\xff")  # no UTF-8
@example(data=pack([]), at=0, byte=b"\x91" * 7 + b"\1")  # too deep
@example(data=pack([]), at=0, byte=b"\x91" * 6 + b"\1")
@example(data=pack([]), at=0, byte=b"\x91" * 2000)
@example(data=pack([]), at=0, byte=b"\xdd\xff\xff\xff\xff" * 9)
def test_what_is_read_fast_is_what_is_read_carefully(data: bytes, at: int, byte: bytes) -> None:
    changed = data[:at] + byte + data[at + len(byte) :]
    try:
        fast = read_fast(changed, 6)
    except (ValueError, msgpack.UnpackException):
        return
    assert repr(fast) == repr(read_carefully(changed, 6, len(changed)))


def test_what_we_write_is_read_fast() -> None:
    value = {"a": [1, -1, 2.5, "größe", b"raw", None, True], "b": {"c": [[[]]]}}
    assert read_fast(pack(value), 6) == value
    assert read_fast(pack(msgpack.ExtType(1, b"\0\0\0\1")), 6) == Ext(1, b"\0\0\0\1")


def test_lengths_that_no_bytes_bear_out_take_no_memory() -> None:
    greedy = b"\xdd\x00\x0f\xff\xff" * 1000 + bytes(1 << 20)
    tracemalloc.start()
    with pytest.raises(Malformed, match="the header"):
        unpack(greedy, depth=2000, nodes=2_000_000)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 << 20


LONG_FORMS = {
    b"\xca" + struct.pack(">f", 0.5): 0.5,
    b"\xcb" + struct.pack(">d", -0.0): -0.0,
    b"\xcc\x01": 1,
    b"\xcd\x00\x01": 1,
    b"\xce\x00\x00\x00\x01": 1,
    b"\xcf" + bytes(7) + b"\x01": 1,
    b"\xd0\xff": -1,
    b"\xd1\xff\xff": -1,
    b"\xd2\xff\xff\xff\xff": -1,
    b"\xd3" + b"\xff" * 8: -1,
    b"\xd9\x01a": "a",
    b"\xda\x00\x01a": "a",
    b"\xdb\x00\x00\x00\x01a": "a",
    b"\xc4\x01a": b"a",
    b"\xc5\x00\x01a": b"a",
    b"\xc6\x00\x00\x00\x01a": b"a",
    b"\xc7\x01\x05a": Ext(5, b"a"),
    b"\xc8\x00\x01\x05a": Ext(5, b"a"),
    b"\xc9\x00\x00\x00\x01\x05a": Ext(5, b"a"),
    b"\xd4\x05a": Ext(5, b"a"),
    b"\xdc\x00\x01\xc0": [None],
    b"\xdd\x00\x00\x00\x01\xc2": [False],
    b"\xde\x00\x01\xa1a\xc3": {"a": True},
    b"\xdf\x00\x00\x00\x01\xa1a\xff": {"a": -1},
}


@pytest.mark.parametrize("data", LONG_FORMS, ids=bytes.hex)
def test_every_form_of_a_value(data: bytes) -> None:
    found = unpack(data, depth=2, nodes=4)
    assert repr(found) == repr(LONG_FORMS[data])


@pytest.mark.parametrize(
    ("depth", "nodes"), [(2, 100), (100, 4)], ids=["too deep", "too many values"]
)
def test_limits(depth: int, nodes: int, request: pytest.FixtureRequest) -> None:
    value = pack([[[1, 2]]])
    assert unpack(value, depth=3, nodes=5) == [[[1, 2]]]
    with pytest.raises(Malformed, match="too"):
        unpack(value, depth=depth, nodes=nodes)
