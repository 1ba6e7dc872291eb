"""GGUF files, their blocks bit by bit as the `gguf` package has them."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_record as pr
import phlox_tensor as pt
from phlox_record import _cli as cli
from phlox_record._gguf_blocks import BLOCKS, Blocks, narrowed, widened

SUMS = Path(__file__).with_name("gguf_blocks.json")  # of that package, by tools/fixtures/gguf.py
READ = {code: form for code, form in BLOCKS.items() if form.widen is not None}
WRITTEN = {code: form for code, form in BLOCKS.items() if form.narrow is not None}


def raw_blocks(code: int, count: int = 200) -> Any:
    """Random bytes, of which some scales are infinite or no number."""
    rng = np.random.default_rng(code)
    return rng.integers(0, 256, (count, BLOCKS[code].nbytes), dtype=np.uint8)


def numbers(code: int, count: int = 200) -> Any:
    """Numbers of many sizes; a block of zeros."""
    rng = np.random.default_rng(code)
    wide = 2.0 ** rng.integers(-9, 9, (count, 1))
    drawn = rng.integers(-999, 1000, (count, BLOCKS[code].size)) / 64 * wide
    drawn[3] = 0
    return drawn.astype(np.float32)


def sums(
    widen: Callable[[int, Any], Any], narrow: Callable[[int, Any], Any]
) -> dict[str, dict[str, int]]:
    """Checksums of what blocks become, and of what numbers become, by the form."""

    def of(array: Any) -> int:
        bits = np.where(np.isnan(array), 0, array) if array.dtype.kind == "f" else array
        return zlib.crc32(np.ascontiguousarray(bits).tobytes())

    found: dict[str, dict[str, int]] = {}
    for code, form in READ.items():
        if form.name != "Q8_K":  # which that package does not read
            found[form.name] = {"widened": of(widen(code, raw_blocks(code)).reshape(-1))}
    for code, form in WRITTEN.items():
        found[form.name]["narrowed"] = of(narrow(code, numbers(code)))
    return found


def test_blocks_are_those_of_the_gguf_package() -> None:
    found = sums(
        lambda code, raw: widened(raw, BLOCKS[code]), lambda code, x: narrowed(x, BLOCKS[code])
    )
    assert found == json.loads(SUMS.read_text())


def test_the_gguf_package_here_agrees() -> None:
    quants: Any = pytest.importorskip("gguf.quants", reason="gguf comes with ./x test --long")
    kinds: Any = pytest.importorskip("gguf.constants")
    for code, form in BLOCKS.items():
        kind = kinds.GGMLQuantizationType(code)
        assert (kind.name, *kinds.GGML_QUANT_SIZES[kind]) == (form.name, form.size, form.nbytes)
    with np.errstate(all="ignore"):
        assert sums(
            lambda code, raw: quants.dequantize(raw, kinds.GGMLQuantizationType(code)),
            lambda code, x: quants.quantize(x, kinds.GGMLQuantizationType(code)),
        ) == json.loads(SUMS.read_text())


def test_q8_k_is_a_scale_and_whole_numbers() -> None:
    whole = np.arange(-128, 128, dtype=np.int8)
    raw = np.frombuffer(struct.pack("<f", 0.5) + whole.tobytes() + bytes(32), np.uint8)
    assert np.array_equal(widened(raw, BLOCKS[15]), whole.astype(np.float32) / 2)


@pytest.mark.parametrize("form", WRITTEN.values(), ids=lambda form: form.name)
def test_what_is_written_in_blocks_is_near_what_was_there(form: Blocks, tmp_path: Path) -> None:
    x = np.random.default_rng(1).standard_normal((6, 2 * form.size)).astype(np.float32)
    tree: Any = {"blk": {"0": {"w": pt.asarray(x)}}, "norm": pt.asarray(x[0])}
    recorder = pr.GgufRecorder(blocks={"*": form.name.lower()})
    path = recorder.record(tree, tmp_path / "a")
    opened = recorder.open(path)
    entry = opened["blk"]["0"]["w"]
    assert (entry.stored.name, entry.stored.nbytes) == (form.name, 12 * form.nbytes)
    assert len(entry.stored.read()) == entry.stored.nbytes
    steps = {"8": 127, "5": 15, "4": 7}[form.name[1]]
    assert np.abs(entry.numpy() - x).max() < np.abs(x).max() / steps
    assert np.array_equal(opened["norm"].numpy(), x[0])


def test_trees_values_and_types_come_back(tmp_path: Path) -> None:
    arrays = {
        name: (np.random.default_rng(0).standard_normal((2, 3)) * 9).astype(name)
        for name in ("float16", "float32", "float64", "int16", "int32", "int64", "int8")
    }
    tree: Any = {"a": [pt.asarray(x) for x in arrays.values()], "n": 3, "b": pr.Keyed({"x": None})}
    header: dict[str, Any] = {
        "general.architecture": "llama",
        "tokenizer.ggml.tokens": ["<s>", "größe", ""],
        "tokenizer.ggml.scores": [0.0, -1.5],
        "tokenizer.ggml.token_type": [1, -3, 2**31],
        "flags": [True, False],
        "none": [],
        "llama.rope.freq_base": 1e4,
        "wide": [1e300, 0.1],
        "on": True,
        "large": 2**40,
        "less": -(2**40),
        "block_count": 2,
    }
    recorder = pr.GgufRecorder(header=header)
    path = recorder.record(tree, tmp_path / "a", metadata={"note": "mine"})
    assert pr.gguf_metadata(path) == {**header, "note": "mine"}
    found = recorder.load(path, dtype="stored")
    assert (found["n"], found["b"]) == (3, {"x": None})
    for tensor, array in zip(found["a"], arrays.values(), strict=True):
        assert tensor.dtype.numpy == array.dtype
        assert np.array_equal(tensor.numpy(), array)
    info = pr.inspect(path)
    assert info.recorder is pr.GgufRecorder
    assert info.metadata["tokenizer.ggml.tokens"] == "3 texts"
    assert pr.recorder_for(path).extension == ".gguf"


def test_lists_of_integers_have_the_type_that_llama_cpp_reads_kinds_of_tokens_in(
    tmp_path: Path,
) -> None:
    raw = pr.GgufRecorder(header={"kinds": [3, 1]}).record({}, tmp_path / "a").read_bytes()
    assert raw[raw.index(b"kinds") :][5:].startswith(struct.pack("<IIQii", 9, 5, 2, 3, 1))


def test_what_the_format_has_no_place_for_is_named() -> None:
    x = pt.asarray(np.ones((2, 33), "f4"))
    rows: list[tuple[pr.GgufRecorder, Any, str]] = [
        (pr.GgufRecorder(), {"a": pt.asarray([True])}, "a is of a type .*: got bool"),
        (pr.GgufRecorder(), {"a": pt.asarray(np.ones((1,) * 5))}, "too many axes: got 5"),
        (pr.GgufRecorder(blocks={"*": "Q8_0"}), {"a": x}, "does not come apart.*got rows of 33"),
        (pr.GgufRecorder(header={"a": None}), {}, "no place for a: got None"),
        (pr.GgufRecorder(header={"a": [1, "b"]}), {}, "no place for a"),
        (pr.GgufRecorder(header={"phlox.tree": "b"}), {}, "that of the format: got phlox.tree"),
        (
            pr.GgufRecorder(blocks={"*": "Q4_0"}),
            {"a": pt.asarray(np.full((1, 32), np.inf, "f4"))},
            "do not hold",
        ),
    ]
    for recorder, tree, says in rows:
        with pytest.raises(pr.RecordError, match=says):
            recorder.to_bytes(tree)
    with pytest.raises(pr.RecordError, match="a form that is not written, of 'b': got 'Q4_K'"):
        pr.GgufRecorder(blocks={"b": "Q4_K"})


def test_show_says_forms_and_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree: Any = {"w": pt.asarray(np.ones((4, 32), "f4"))}
    recorder = pr.GgufRecorder(blocks={"w": "Q8_0"}, header={"general.name": "small"})
    path = recorder.record(tree, tmp_path / "a")
    assert cli.main(["show", str(path), "--stats"]) == 0
    out = capsys.readouterr().out
    assert "w  float32 [4, 32]  136 B as Q8_0" in out
    assert "general.name: small" in out


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def file(
    values: list[bytes] | None = None,
    rows: list[bytes] | None = None,
    data: bytes = bytes(32),
    *,
    head: bytes | None = None,
) -> bytes:
    """A file of another program; without arguments a valid one with a tensor of two floats."""
    values = [text("a") + struct.pack("<II", 4, 7)] if values is None else values
    rows = [row()] if rows is None else rows
    start = struct.pack("<4sIQQ", b"GGUF", 3, len(rows), len(values)) if head is None else head
    whole = start + b"".join(values) + b"".join(rows)
    return whole + bytes(-len(whole) % 32) + data


def row(
    name: str = "w", shape: tuple[int, ...] = (2,), code: int = 0, start: int = 0, axes: int = -1
) -> bytes:
    sizes = struct.pack(f"<{len(shape)}Q", *shape)
    count = struct.pack("<I", len(shape) if axes < 0 else axes)
    return text(name) + count + sizes + struct.pack("<IQ", code, start)


def value(kind: int, raw: bytes, key: str = "a") -> bytes:
    return text(key) + struct.pack("<I", kind) + raw


MANY = 2**60
HOSTILE: list[tuple[bytes, str]] = [
    (file(), ""),
    (file(data=bytes(8)), ""),  # the last tensor need not be filled up
    (b"", "empty"),
    (b"GGUF", "ends early"),
    (file(head=b"GGUF" + struct.pack(">IQQ", 3, 0, 0)), "big-endian"),
    (file(head=b"GGUF" + struct.pack("<IQQ", 1, 0, 0)), "version that is not read"),
    (file(head=struct.pack("<4sIQQ", b"GGUF", 3, MANY, 0)), "too many tensors"),
    (file(head=struct.pack("<4sIQQ", b"GGUF", 3, 0, MANY)), "ends early|header is too large"),
    (file(head=struct.pack("<4sIQQ", b"GGUF", 3, 90_000, 0)), "ends early"),
    (file([value(8, struct.pack("<Q", MANY))]), "ends early"),
    (file([value(8, struct.pack("<Q", 2) + b"\xc3\x28")]), "not UTF-8"),
    (file([struct.pack("<Q", 2**64 - 1)]), "ends early"),
    (file([value(13, bytes(8))]), "unknown type: got 13"),
    (file([value(7, b"\2")]), "neither 0 nor 1"),
    (file([value(9, struct.pack("<IQ", 4, MANY))]), "ends early"),
    (file([value(9, struct.pack("<IQ", 8, MANY))]), "ends early"),
    (file([value(9, struct.pack("<IQQ", 8, 1, MANY))]), "ends early"),
    (file([value(9, struct.pack("<IQ", 9, 1) + struct.pack("<IQ", 4, 0))]), "list of an unknown"),
    (file([value(9, struct.pack("<IQ", 0, 3_000_000) + bytes(3_000_000))]), "too many values"),
    (file([value(4, bytes(4)), value(4, bytes(4))]), "a stands twice in the header"),
    (file([value(4, struct.pack("<I", 0), "general.alignment")]), "alignment is wrong: got 0"),
    (file([value(4, struct.pack("<I", 48), "general.alignment")]), "alignment is wrong"),
    (file([value(4, struct.pack("<I", 2**31), "general.alignment")]), "alignment is wrong"),
    (file([value(8, text("32"), "general.alignment")]), "alignment is wrong"),
    (file([value(8, text("{}"), "phlox.tree")]), "nothing refers"),
    (file(rows=[row(), row(start=32)], data=bytes(64)), "w stands twice in the table"),
    (file(rows=[row(axes=5)]), "too many axes"),
    (file(rows=[row(axes=2**32 - 1)]), "too many axes"),
    (file(rows=[row(shape=(2**62, 2**62))]), "impossibly"),
    (file(rows=[row(shape=(2**40,))]), "ends early"),
    (file(rows=[row(code=99)]), "unknown type: got 99"),
    (file(rows=[row(code=4)]), "unknown type: got 4"),  # taken back by llama.cpp
    (file(rows=[row(shape=(33,), code=8)]), "w of Q8_0"),
    (file(rows=[row(shape=(), code=8)]), "w of Q8_0"),
    (file(rows=[row(shape=(32,), code=8)]), "ends early"),
    (file(rows=[row(shape=(256,), code=16)], data=bytes(96)), "not read.*IQ2_XXS"),
    (file(rows=[row(start=32)], data=bytes(64)), "misplaced"),
    (file(rows=[row(start=MANY)]), "misplaced"),
    (file(rows=[row("a"), row("b")], data=bytes(64)), "misplaced"),
    (file(data=bytes(7)), "ends early"),
    (file(data=bytes(33)), "behind the end"),
    (file(rows=[], data=bytes(64)), "behind the end"),
]


@pytest.mark.parametrize(("data", "says"), HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_files(data: bytes, says: str) -> None:
    if not says:
        assert pr.GgufRecorder().from_bytes(data)["w"].tolist() == [0.0, 0.0]
        return
    with pytest.raises(pr.RecordError, match=says):
        pr.GgufRecorder().from_bytes(data)


def test_a_file_that_is_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = file([value(8, text("x")), value(9, struct.pack("<IQ", 8, 1) + text("y"), "b")])
    for size in range(len(whole) - 24):  # of the last tensor's filling any part may be there
        with pytest.raises(pr.RecordError):
            pr.GgufRecorder().from_bytes(whole[:size])
    (tmp_path / "a.gguf").write_bytes(whole[:50])
    with pytest.raises(pr.RecordError, match=r"a\.gguf: the file ends early"):
        pr.gguf_metadata(tmp_path / "a.gguf")


def test_a_path_that_is_none_is_refused() -> None:
    with pytest.raises(pr.RecordError, match="the path has a NUL character"):
        pr.gguf_metadata("a\0.gguf")


@pytest.mark.parametrize("code", [9, 16, 41])
def test_a_form_that_is_not_read_spoils_only_itself(code: int) -> None:
    form = BLOCKS[code]
    filled = bytes(form.nbytes + -form.nbytes % 32)
    rows = [row("a", (form.size,), code), row("b", start=len(filled))]
    opened = pr.GgufRecorder().from_bytes
    with pytest.raises(pr.RecordError, match=form.name):
        opened(file(rows=rows, data=filled + bytes(32)))
