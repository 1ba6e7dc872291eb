"""What is fuzzed: for each parser ways to make a file of any bytes, past checksums too."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

import phlox_record as pr
import phlox_tensor as pt
from phlox_record import _shards
from phlox_record._content import Content
from phlox_record._errors import Malformed, located
from phlox_record._recorder import recognize

Make = Callable[[bytes], bytes]

FILES: Final = Path(__file__).parent.parent / "tests" / "files"
LIMITS: Final = pr.Limits(
    header_bytes=1 << 20, inflated_bytes=1 << 22, json_bytes=1 << 20, nodes=10_000, tensors=100
)
NUMPY: Final = pt.Numpy()
_LONGEST: Final = 4000
_KEPT: Final = pr.NamedMsgpackRecorder(pr.KeepPrecision)


def tree() -> dict[str, Any]:
    """Return a record with every kind of value."""
    with pt.use_device(NUMPY):
        weight = pr.ParamEntry("w-1", pt.asarray(np.array([[1, -2.5], [0.5, 3]], "f4")))
        return {
            "layers": [{"weight": weight, "tied": weight}, {"bias": None, "on": True}],
            "moments": pr.Keyed({"w-1": {"step": 3, "m": pt.asarray(np.array([7, 8], "i8"))}}),
            "mask": pt.asarray(np.array([True, False])),
            "half": pt.asarray(np.array([1.5], "f2")),
            "none": pt.asarray(np.zeros((0, 2), "f4")),
            "best": float("-inf"),
            "name": "größe",
            "raw": b"\x00\xff",
            "$odd": {"$tensor": 1},
        }


TREE: Final = tree()


class Target(NamedTuple):
    """A parser: what reads a file, how bytes become one, and bytes to begin with."""

    read: Callable[[bytes], Any]
    ways: tuple[Make, ...]
    seeds: Callable[[], list[bytes]]


def as_it_is(data: bytes) -> bytes:
    """Return the bytes: the fuzzer has to get past checksums itself."""
    return data


def sealed(data: bytes) -> bytes:
    """Return a msgpack file with the right checksum of its header."""
    length = int.from_bytes(data[12:16], "little")
    crc = zlib.crc32(data[24 : 24 + length], zlib.crc32(data[:16] + data[20:24]))
    return data[:16] + struct.pack("<I", crc) + data[20:]


def zipped(data: bytes) -> bytes:
    """Return a compressed msgpack file."""
    return gzip.compress(sealed(data), 1, mtime=0)


def in_json(data: bytes) -> bytes:
    """Return a JSON file with the bytes as its tree."""
    root = {"format": "phlox-record", "version": 2, "writer": "", "precision": "", "metadata": {}}
    return json.dumps(root)[:-1].encode() + b', "tree": ' + data + b"}"


def in_header(data: bytes) -> bytes:
    """Return a safetensors file with the bytes as its header."""
    return len(data).to_bytes(8, "little") + data + bytes(64)


def in_gguf(data: bytes) -> bytes:
    """Return a GGUF file with the bytes as its values and table, room for a tensor behind them."""
    whole = struct.pack("<4sIQQ", b"GGUF", 3, 1, 1) + data
    return whole + bytes(-len(whole) % 32 + 64)


def archive(members: dict[str, bytes]) -> bytes:
    """Return a zip file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for name, data in members.items():
            made.writestr(name, data)
    return out.getvalue()


def npy(array: Any) -> bytes:
    """Return the member of an array."""
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def in_array(data: bytes) -> bytes:
    """Return a NumPy archive with the bytes as an array, header included."""
    return archive({"a.npy": data})


def in_notes(data: bytes) -> bytes:
    """Return a NumPy archive with the bytes as the text that says what the arrays are."""
    array = npy(np.arange(2, dtype="<u2"))
    return archive({"__phlox__.npy": npy(np.frombuffer(data, "u1")), "a.npy": array})


def in_pickle(data: bytes) -> bytes:
    """Return a file of PyTorch with the bytes as its pickle."""
    return archive({"a/data.pkl": data, "a/data/0": bytes(16), "a/data/1": bytes(8)})


def _reader(kind: type[pr.Recorder]) -> Callable[[bytes], Any]:
    recorder = kind(limits=LIMITS)

    def read(data: bytes) -> Any:
        with contextlib.suppress(Malformed):
            recognize(memoryview(data))
        return recorder.from_bytes(data, device=NUMPY, dtype="stored", like=TREE)

    return read


def _read_index(data: bytes) -> Any:
    """Read an index whose files all hold the same two tensors."""
    arrays = {name: pr.TensorEntry.from_numpy(np.arange(2.0)) for name in ("a", "b.c")}
    with located("load", "index"):
        found = _shards.read_shards(Path("index"), data, LIMITS, lambda _: Content(arrays))
        return pr.materialize(found.tree, device=NUMPY, dtype="stored")


def _written(kind: type[pr.Recorder]) -> Callable[[], list[bytes]]:
    return lambda: [kind(pr.KeepPrecision).to_bytes(TREE), kind().to_bytes({"w": TREE["mask"]})]


def _json_seeds() -> list[bytes]:
    files = _written(pr.JsonRecorder)()
    return [*files, *[json.dumps(json.loads(data)["tree"]).encode() for data in files]]


def _npz_seeds() -> list[bytes]:
    files = _written(pr.NpzRecorder)()
    found = [*files, npy(np.arange(2.0)), npy(np.asfortranarray(np.ones((2, 3))))]
    notes = {"precision": "full", "metadata": {}, "writer": "", "bfloat16": ["a"]}
    notes["tree"] = '{"x": {"$param": {"id": "1", "tensor": "a"}}, "y": {"$shared": 0}}'
    return [*found, json.dumps(notes).encode()]


# A tensor of 2x2 in the storage "0" and a second one beside it in a dict, opcode by opcode.
_STORAGE = b"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" + b"0X\3\0\0\0cpuK\4tQ"
_TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n(" + _STORAGE + b"K\0K\2K\2\x86K\2K\1\x86\x89NtR"
_PICKLE = b"\x80\2}(X\1\0\0\0a" + _TENSOR + b"X\1\0\0\0b]" + _TENSOR + b"au."


def _pytorch_seeds() -> list[bytes]:
    found = [_PICKLE]
    for path in sorted(FILES.glob("*.p*t*")):
        found.append(path.read_bytes())
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as made:
                names = [name for name in made.namelist() if name.endswith("data.pkl")]
                found += [made.read(name) for name in names]
    return [data for data in found if len(data) < 20_000]


def _gguf_seeds() -> list[bytes]:
    header = {"a": ["x", "yy"], "b": [1, -2], "c": 1.5, "d": True, "e": "f"}
    rows: Any = {"w": TREE["half"], "m": pt.asarray(np.ones((2, 32), "f4"), device=NUMPY)}
    whole = pr.GgufRecorder(blocks={"m": "Q4_0"}, header=header).to_bytes(rows)
    value = struct.pack("<Q1sIQ", 1, b"a", 8, 1) + b"x"
    table = struct.pack("<Q1sIQIQ", 1, b"w", 1, 64, 24, 0)
    return [whole, value + table, *[whole[:n] for n in (24, 90)]]


def _safetensors_seeds() -> list[bytes]:
    files = _written(pr.SafetensorsRecorder)()
    row = {"a": {"dtype": "F32", "shape": [2, 8], "data_offsets": [0, 64]}}
    headers = [data[8 : 8 + int.from_bytes(data[:8], "little")] for data in files]
    return [*files, *headers, json.dumps(row).encode()]


def _index_seeds() -> list[bytes]:
    shards = {"weight_map": {"a": "1.mpk", "b.c": "2.mpk"}, "metadata": {"total_size": 32}}
    text = '{"x": {"$tensor": "a"}, "y": [{"$tensor": "b.c"}, 1.5, {"$float": "nan"}]}'
    whole = {**shards, "metadata": {"phlox.tree": text, "phlox.precision": "full"}}
    return [json.dumps(about).encode() for about in (shards, whole)]


TARGETS: Final = {
    "compact": Target(
        _reader(pr.CompactMsgpackRecorder), (as_it_is, sealed), _written(pr.CompactMsgpackRecorder)
    ),
    "gguf": Target(_reader(pr.GgufRecorder), (as_it_is, in_gguf), _gguf_seeds),
    "gzip": Target(
        _reader(pr.NamedMsgpackGzRecorder),
        (as_it_is, zipped),
        lambda: [*_written(pr.NamedMsgpackGzRecorder)(), *_written(pr.NamedMsgpackRecorder)()],
    ),
    "index": Target(_read_index, (as_it_is,), _index_seeds),
    "json": Target(_reader(pr.JsonRecorder), (as_it_is, in_json), _json_seeds),
    "named": Target(
        _reader(pr.NamedMsgpackRecorder), (as_it_is, sealed), _written(pr.NamedMsgpackRecorder)
    ),
    "npz": Target(_reader(pr.NpzRecorder), (as_it_is, in_array, in_notes), _npz_seeds),
    "pytorch": Target(_reader(pr.PyTorchRecorder), (as_it_is, in_pickle), _pytorch_seeds),
    "safetensors": Target(
        _reader(pr.SafetensorsRecorder), (as_it_is, in_header), _safetensors_seeds
    ),
}


def seeds(name: str) -> list[bytes]:
    """Return inputs to begin with: each seed by each way."""
    target = TARGETS[name]
    return [bytes([way]) + data for data in target.seeds() for way in range(len(target.ways))]


def one_input(name: str, data: bytes) -> bool:
    """Read a file made of ``data``, whose first byte says in which way; return whether it is one.

    Anything but a RecordError is a finding, and so is a record that can be read but not written.
    """
    if not data:
        return False
    target = TARGETS[name]
    file = target.ways[data[0] % len(target.ways)](data[1:])
    try:
        found = target.read(file)
    except pr.RecordError as error:
        if len(str(error)) > _LONGEST:
            raise AssertionError("a refusal that prints the file") from error
        return False
    written = _KEPT.to_bytes(found)
    again = _KEPT.from_bytes(written, device=NUMPY, dtype="stored")
    if _KEPT.to_bytes(again) != written:
        raise AssertionError("a record that changes when it is written")
    return True
