"""The bytes of small files: as FORMAT.md says, the same for ever, and no byte changed unnoticed."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import phlox_record as pr

GOLDEN = Path(__file__).parent / "golden"
PLAIN_KINDS = (pr.CompactMsgpackRecorder, pr.JsonRecorder, pr.NamedMsgpackRecorder)
NOTES = {"note": "golden"}


@pytest.mark.parametrize("kind", [*PLAIN_KINDS, pr.NpzRecorder, pr.SafetensorsRecorder])
def test_golden_bytes(
    kind: type[pr.Recorder], small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phlox_record._recorder.WRITER", "phlox-record 0.1.0")  # that wrote them
    golden = (GOLDEN / "2" / f"small{kind.extension}").read_bytes()
    assert kind(pr.FullPrecision).to_bytes(small, metadata=NOTES) == golden


def test_golden_files_load(
    kind: type[pr.Recorder], small: dict[str, Any], plain: Callable[[Any], Any]
) -> None:
    # Compressed bytes depend on the zlib in use, so gzip files are compared by content only.
    files = sorted(GOLDEN.glob(f"*/small{kind.extension}"))
    foreign = kind in (pr.NpzRecorder, pr.SafetensorsRecorder)
    assert [path.parent.name for path in files] == (["2"] if foreign else ["1", "2"])
    for path in files:
        found = kind().load(path, like=small, dtype="stored")
        assert plain(found) == plain(small)


def test_named_file_by_the_letter(small: dict[str, Any]) -> None:
    """Builds the file from FORMAT.md, with nothing from the package."""

    def ref(number: int) -> bytes:
        return number.to_bytes(4, "little")

    tree = {
        "layers": [
            {"weight": msgpack.ExtType(2, ref(0) + b"w-1")},
            {"weight": msgpack.ExtType(1, ref(1)), "bias": None},
        ],
        "moments": [
            msgpack.ExtType(3, b""),
            {"w-1": {"step": 3, "m": msgpack.ExtType(1, ref(2))}},
        ],
        "mask": msgpack.ExtType(1, ref(3)),
        "none": msgpack.ExtType(1, ref(4)),
        "scalar": msgpack.ExtType(1, ref(5)),
        "rate": 1e-3,
        "best": float("-inf"),
        "done": False,
        "name": "größe",
        "raw": b"\x00\xff",
        "$odd": {"$tensor": 1},
        "seed": 2**64 - 1,
        "empty": {"list": [], "dict": {}},
    }
    table: list[Any] = [
        ["float32", [2, 2], 0, 16],
        ["float32", [1], 64, 4],
        ["int64", [2], 128, 16],
        ["bool", [2], 192, 2],
        ["float32", [0, 2], 256, 0],
        ["float32", [], 320, 4],
    ]
    blocks = [
        struct.pack("<4f", 1, -2.5, 0.5, 3),
        struct.pack("<f", 1.5),
        struct.pack("<2q", 7, 8),
        b"\x01\x00",
        b"",
        struct.pack("<f", -0.0),
    ]
    writer = f"phlox-record {pr.__version__}"
    header = {
        "writer": writer,
        "precision": "keep",
        "metadata": NOTES,
        "tree": tree,
        "tensors": table,
    }
    packed = cast("bytes", msgpack.packb(header))
    start = b"\x89PHLOX\r\n" + struct.pack("<HHI", 2, 1, len(packed))
    flags = bytes(4)
    crc = zlib.crc32(start + flags + packed)
    expected = start + struct.pack("<I", crc) + flags + packed
    for data in blocks:
        expected += bytes(-len(expected) % 64) + data + struct.pack("<I", zlib.crc32(data))
    assert pr.NamedMsgpackRecorder().to_bytes(small, metadata=NOTES) == expected


def test_compact_header_by_the_letter() -> None:
    keys = hashlib.blake2b(b"\x92\xa1a\xa1b" + b"\x91\xa1c", digest_size=8)
    data = pr.CompactMsgpackRecorder().to_bytes({"a": {"c": 1}, "b": [2]})
    positional = msgpack.ExtType(4, b"")
    tree = [positional, [positional, 1], [2]]
    writer = f"phlox-record {pr.__version__}"
    assert data[24:] == msgpack.packb(["keep", {}, keys.digest(), tree, [], writer])


def test_tensor_data_is_aligned(tmp_path: Path, small: dict[str, Any]) -> None:
    path = pr.NamedMsgpackRecorder().record(small, tmp_path / "a")
    for where, tensor in pr.inspect(path).tensors():
        assert tensor.numpy().ctypes.data % 64 == 0, where


def test_every_truncation_is_refused(kind: type[pr.Recorder], small: dict[str, Any]) -> None:
    recorder = kind()
    data = recorder.to_bytes(small)
    # The last byte of JSON is a line feed, which means nothing.
    whole = len(data) - 1 if kind is pr.JsonRecorder else len(data)
    for length in range(whole):
        with pytest.raises(pr.RecordError):
            recorder.from_bytes(data[:length], like=small)


@pytest.mark.parametrize("kind", [pr.CompactMsgpackRecorder, pr.NamedMsgpackRecorder])
def test_every_changed_byte_is_refused(kind: type[pr.Recorder], small: dict[str, Any]) -> None:
    recorder = kind()
    data = bytearray(recorder.to_bytes(small))
    for at in range(len(data)):
        for change in (0x01, 0x80, 0xFF):
            data[at] ^= change
            with pytest.raises(pr.RecordError):
                recorder.from_bytes(data, like=small)
            data[at] ^= change


def test_of_a_changed_byte_comes_nothing_but_a_refusal(
    kind: type[pr.Recorder], small: dict[str, Any]
) -> None:
    """Numbers in text, and elements without a checksum, may change unseen."""
    recorder = kind()
    data = bytearray(recorder.to_bytes(small))
    refused = 0
    for at in range(len(data)):
        for change in (0x01, 0xFF):
            data[at] ^= change
            try:
                recorder.from_bytes(data, like=small)
            except pr.RecordError:
                refused += 1
            data[at] ^= change
    assert refused > len(data) / 2


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damage_is_refused_or_harmless(
    data: st.DataObject, kind: type[pr.Recorder], small: dict[str, Any]
) -> None:
    """Whatever is done to a file, nothing but RecordError escapes.

    Behind the checksum, so that the header's parser sees the damage too.
    """
    recorder = kind()
    raw = recorder.to_bytes(small)
    if kind.extension.endswith(".gz"):
        raw = gzip.decompress(raw)
    start = data.draw(st.integers(0, len(raw)))
    end = data.draw(st.integers(start, min(len(raw), start + 8)))
    raw = raw[:start] + data.draw(st.binary(max_size=8)) + raw[end:]
    if raw[:8] == b"\x89PHLOX\r\n" and len(raw) > 24:
        length = int.from_bytes(raw[12:16], "little")
        crc = zlib.crc32(raw[24 : 24 + length], zlib.crc32(raw[:16] + raw[20:24]))
        raw = raw[:16] + struct.pack("<I", crc) + raw[20:]
    if kind.extension.endswith(".gz"):
        raw = gzip.compress(raw, 1, mtime=0)
    with contextlib.suppress(pr.RecordError):
        recorder.from_bytes(raw, like=small)
