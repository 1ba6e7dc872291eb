"""Files that PyTorch wrote: `attacks/make_pytorch.py` made them; the values are beside them."""

from __future__ import annotations

import io
import json
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_record as pr
import phlox_tensor as pt

FILES = Path(__file__).parent / "files"
VALUES: dict[str, Any] = json.loads((FILES / "state.json").read_text())


def test_every_tensor_of_a_state_dict_is_what_pytorch_says() -> None:
    tree = pr.PyTorchRecorder().load(FILES / "state.pt", dtype="stored")
    flat = dict(pt.tree.leaves_with_paths(tree))
    assert {*flat, "exp_avg"} == set(VALUES)
    dtypes = {"brain": pt.bfloat16, "double": pt.float64, "half": pt.float16, "ints": pt.int64}
    dtypes |= {"bytes": pt.uint8, "mask": pt.bool_}
    for name, tensor in flat.items():
        assert tensor.dtype is dtypes.get(name, pt.float32), name
        assert tensor.tolist() == VALUES[name], name
    assert flat["empty"].shape == (0, 3)


def test_a_file_from_before_zip_files_holds_the_same() -> None:
    new, old = (
        dict(pt.tree.leaves_with_paths(pr.PyTorchRecorder().load(FILES / name, dtype="stored")))
        for name in ("state.pt", "old.pt")
    )
    assert old.keys() == new.keys()
    for name, tensor in old.items():
        assert (tensor.dtype, tensor.shape) == (new[name].dtype, new[name].shape), name
        if not name.startswith(("linear", "tied")):  # trained before the old file was written
            assert tensor.tolist() == new[name].tolist(), name
    moved = np.abs(old["linear.weight"].numpy() - new["linear.weight"].numpy())
    assert np.allclose(moved, 0.1, rtol=1e-5)  # by one step of Adam


OLD = (FILES / "old.pt").read_bytes()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (OLD[:-1], "is cut short"),
        (OLD[:60], "ends early"),
        (OLD + b"x", "bytes behind the storages"),
        (OLD.replace(b"little_endian", b"little_endiam"), "big-endian"),
        (OLD.replace(b"M\xe9\x03", b"M\xe8\x03", 1), "an unknown form"),
        (OLD.replace(b"ctorch\nFloatStorage", b"ctorch\nWildsStorage"), "storages"),
    ],
)
def test_a_damaged_file_from_before_zip_files_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(pr.RecordError, match=says):
        pr.PyTorchRecorder().from_bytes(data)


@pytest.mark.parametrize("name", ["kinds.pt", "kinds_old.pt"])
def test_all_that_weights_only_allows_is_read(name: str) -> None:
    tree = pr.PyTorchRecorder().open(FILES / name)
    values = json.loads((FILES / "kinds.json").read_text())
    for key, expected in values.items():
        dtype = key if key.startswith("uint") else "float32"
        assert tree[key].dtype.name == dtype, key
        assert tree[key].numpy().tolist() == expected, key
        assert tree[key].layout == "pytorch"
    assert values["neg"] == [-2.0, 4.0]
    found = {key: value for key, value in tree.items() if key not in (*values, "unread")}
    assert found == {
        "schedule": {"2": 1, "5": 2},
        "device": "cuda:1",
        "set": [3],
        "frozen": [4],
        "bytes": b"abc\xff",
        "empty": b"",
        "array": b"abc",
        "complex": "(1+2j)",
        "size": [2, 3],
        "dtype": "torch.float8_e4m3fn",
        "layout": "torch.sparse_coo",
        "default": {"a": [1]},
        "ordered": {"a": 1},
        "keys": {"(1, 'a')": 1, "torch.float16": 2, "3": 4},
        "long": -(2**62),
    }
    assert pr.inspect(FILES / name).layout == "pytorch"


UNREAD = {
    "complex": ("complex64", (2,), "view_as_real"),
    "conj": ("complex64", (2,), "view_as_real"),
    "float8": ("float8_e4m3fn", (4, 3), r"x\.float\(\)"),
    "function": ("builtins.getattr|torch._C._nn.gelu", (), "all else"),
    "layer": ("torch.nn.modules.linear.Linear", (), "state_dict"),
    "long": ("integer of 71 bits", (), "all else"),
    "meta": ("_rebuild_meta_tensor_no_storage", (), "all else"),
    "numpy": ("numpy._core.multiarray._reconstruct", (), "as_tensor"),
    "options": ("argparse.Namespace", (), "all else"),
    "path": ("pathlib.PosixPath", (), "all else"),
    "quantized": ("_rebuild_qtensor", (), "dequantize"),
    "sparse": ("_rebuild_sparse_tensor", (), "to_dense"),
    "storage": ("storage without a tensor", (), "all else"),
}


@pytest.mark.parametrize("name", ["kinds.pt", "kinds_old.pt"])
@pytest.mark.parametrize("key", UNREAD)
def test_what_a_record_cannot_hold_is_refused_when_it_is_read(
    name: str, key: str, tmp_path: Path
) -> None:
    says, shape, hint = UNREAD[key]
    entries = pr.PyTorchRecorder().open(FILES / name)["unread"]
    assert entries.keys() == UNREAD.keys()
    assert entries[key].shape == shape
    with pytest.raises(pr.RecordError, match=says) as caught:
        entries[key].numpy()
    assert re.search(hint, caught.value.hint or "")
    with pytest.raises(pr.RecordError, match=f"{key}.*({says})"):
        pr.materialize({key: entries[key]})
    with pytest.raises(pr.RecordError, match=says):
        pr.JsonRecorder().record({"a": entries[key]}, tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_dicts_and_numbers_comes_back() -> None:
    tree = pr.recorder_for("whole.pt").load(FILES / "whole.pt")
    assert tree["epoch"] == 3
    assert (tree["shape"], tree["dtype"]) == ([2, 3], "torch.float16")
    assert tree["model"]["weight"].shape == (2, 3)
    moments = tree["optimizer"]["state"]["0"]
    assert moments["exp_avg"].tolist() == VALUES["exp_avg"]
    assert tree["optimizer"]["param_groups"][0]["lr"] == 0.1


def test_names_with_dots_become_a_tree() -> None:
    tree = pr.PyTorchRecorder().load(FILES / "parameters.pth")
    assert tree["0"]["weight"].shape == (2, 3)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("evil.pt", "builtins.print"),
        ("module.pt", "torch.nn.modules.linear.Linear"),
    ],
)
def test_what_would_run_code_is_refused_by_name(
    name: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(pr.RecordError, match=says):
        pr.PyTorchRecorder().load(FILES / name)
    assert capsys.readouterr().out == ""


def test_only_the_tensor_that_is_asked_for_is_read() -> None:
    data = bytearray((FILES / "state.pt").read_bytes())
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        info = archive.getinfo("state/data/2")  # the storage of a tensor that is not `linear`
    at = data.index(b"FB", info.header_offset + 30 + len(info.filename))
    data[at + 70] ^= 1
    tree = pr.PyTorchRecorder().from_bytes
    with pytest.raises(pr.RecordError, match="damaged data of state/data/"):
        tree(bytes(data))


def _archive(value: bytes, **members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a/data.pkl", value)
        for name, data in members.items():
            archive.writestr(f"a/data/{name}", data)
    return out.getvalue()


def _tensor(size: Any, stride: Any, *, offset: int = 0, count: int = 4, key: str = "x0") -> bytes:
    """The pickle of a tensor, written opcode by opcode."""

    def plain(value: Any) -> bytes:
        return pickle.dumps(value, 2)[2:-1]

    storage = b"(" + plain("storage") + b"ctorch\nFloatStorage\n" + plain(key) + plain("cpu")
    storage += plain(count) + b"tQ"
    call = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + plain(offset) + plain(size)
    return b"\x80\x02" + call + plain(stride) + b"\x89N" + b"tR."


FLOATS = np.arange(4, dtype="<f4").tobytes()


def test_a_tensor_written_by_hand_is_read() -> None:
    data = _archive(_tensor((2, 2), (1, 2)), x0=FLOATS)
    assert pr.PyTorchRecorder().from_bytes(data).tolist() == [[0, 2], [1, 3]]


HOSTILE: list[tuple[bytes, str]] = [
    (_archive(_tensor((5,), (1,)), x0=FLOATS), "behind its storage"),
    (_archive(_tensor((2,), (1,), offset=3), x0=FLOATS), "behind its storage"),
    (_archive(_tensor((2,), (-1,), offset=3), x0=FLOATS), "strides"),
    (_archive(_tensor((2, 2), (1,)), x0=FLOATS), "strides"),
    (_archive(_tensor((2**20, 2**20), (0, 0)), x0=FLOATS), "repeats its elements"),
    (_archive(_tensor((2,), (1,), count=9), x0=FLOATS), "wrong size"),
    (_archive(_tensor((2,), (1,), key="../x"), x0=FLOATS), "not in the file"),
    (_archive(_tensor((True,), (1,)), x0=FLOATS), "shape"),
    (_archive(pickle.dumps(print)), "builtins.print"),
    (_archive(b"\x80\x02ccollections\nCounter\n]\x85R."), "Counter"),
    (_archive(b"\x80\x02c__builtin__\ncomplex\nU\x011\x85R."), "complex number"),
    (_archive(b"\x80\x02c__builtin__\nset\nK\x07\x85R."), "a set"),
    (_archive(b"\x80\x02c_codecs\nencode\nX\x02\x00\x00\x00\xc4\x80U\x06latin1\x86R."), "bytes"),
    (_archive(b"\x80\x02ctorch\ndevice\n]\x85R."), "a device"),
    (_archive(b"\x80\x02ctorch\nSize\nK\x07\x85R."), "a size"),
    (_archive(b"\x80\x04\x96" + b"\xff" * 8 + b"."), "ends early"),
    (_archive(b"\x80\x04\x8f\x90."), "takes more"),
    (_archive(b"\x80\x02}B\x01\x01\0\0" + b"a" * 257 + b"Ns."), "too long"),
    (_archive(b"\x80\x02}(" + b"N" * 9 + b"tNs."), "too long"),
    (_archive(b"\x80\x02}cos\nsystem\n)R]s."), "no plain value"),
    (_archive(b"\x80\x02]cos\nsystem\n)R}ba."), "os.system"),  # inside of a list
    (_archive(b"\x80\x02" + b"]q\x00h\x00a."), "too deep"),  # a list that holds itself
    (_archive(b"\x80\x02" + b"(" * 1000), "ends early"),
    (_archive(b"\x80\x02B\xff\xff\xff\xff."), "ends early"),
    (_archive(b"\x80\x04\x8e" + b"\xff" * 8 + b"."), "ends early"),
    (_archive(b"\x80\x02Nr\xff\xff\xff\xff."), ""),  # a memo index costs nothing
    (_archive(b"\x80\x02\x8a\xff" + b"\x01" * 255 + b"."), "integer of 2033 bits"),
    (_archive(b"\x80\x02\x8b\xff\xff\xff\xff."), "out of range"),
    (_archive(b"\x80\x02cos\nsystem\n(U\x04trueT\x00\x00\x00\x00tR."), "os.system"),
    (_archive(b"\x80\x02}]N s."), "opcode"),
    (_archive(b"."), "takes more"),
    (b"PK\x03\x04" + bytes(60), "cut short"),
]


@pytest.mark.parametrize(("data", "says"), HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_pickles(data: bytes, says: str) -> None:
    if not says:
        assert pr.PyTorchRecorder().from_bytes(data) is None
        return
    with pytest.raises(pr.RecordError, match=says):
        pr.PyTorchRecorder().from_bytes(data)


def test_lists_that_double_are_counted_not_built() -> None:
    """Thirty lists, each twice in the next: they stand for 2**30 values."""
    bomb = b"\x80\x02(]q\x00" + b"".join(
        b"]q" + bytes([n]) + b"(h" + bytes([n - 1]) + b"h" + bytes([n - 1]) + b"e"
        for n in range(1, 31)
    )
    recorder = pr.PyTorchRecorder(limits=pr.Limits(nodes=100_000))
    with pytest.raises(pr.RecordError, match="too many values"):
        recorder.from_bytes(_archive(bomb + b"l."))


def _doubling(times: int) -> bytes:
    """Lists of which each stands twice in the next."""
    return b"]q\x00" + b"".join(
        b"0(h" + bytes([n - 1]) + b"h" + bytes([n - 1]) + b"lq" + bytes([n])
        for n in range(1, times + 1)
    )


COPIES = {
    "bytes": b"c_codecs\nencode\nh\x00U\x06latin1\x86R",
    "dict": b"ccollections\nOrderedDict\nh\x01\x85R",
    "set": b"c__builtin__\nset\nh\x01\x85R",
}


@pytest.mark.parametrize("what", COPIES)
def test_a_pickle_that_asks_for_copies_again_and_again_is_refused(what: str) -> None:
    text = b"X" + (10_000).to_bytes(4, "little") + b"a" * 10_000 + b"q\x000"
    pairs = b"".join(b"U\x04" + b"%04d" % n + b"N\x86" for n in range(1000))
    head = b"\x80\x02" + text + b"(" + pairs + b"lq\x010("
    recorder = pr.PyTorchRecorder(limits=pr.Limits(header_bytes=4 << 20, nodes=100_000))
    assert len(recorder.from_bytes(_archive(head + COPIES[what] * 3 + b"l."))) == 3
    with pytest.raises(pr.RecordError, match=r"too many (copies|values)"):
        recorder.from_bytes(_archive(head + COPIES[what] * 3000 + b"l."))


def test_what_is_shown_of_lists_that_double_is_brief() -> None:
    for call in (
        b"ctorch\ndevice\n",
        b"ccollections\nCounter\n",
        b"ctorch._utils\n_rebuild_tensor_v2\n",
    ):
        data = b"\x80\x02" + _doubling(60) + b"0" + call + b"h\x3c\x85R."
        with pytest.raises(pr.RecordError, match="is wrong") as caught:
            pr.PyTorchRecorder().from_bytes(_archive(data))
        assert len(str(caught.value)) < 500


def test_files_of_pytorch_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(pr.RecordError, match=r"(?s)read, not written.*SafetensorsRecorder"):
        pr.PyTorchRecorder().record({"a": 1}, tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_every_truncation_and_changed_byte_is_refused_or_harmless() -> None:
    data = (FILES / "parameters.pth").read_bytes()
    recorder = pr.PyTorchRecorder()

    def values(data: bytes | bytearray) -> dict[str, Any]:
        tree = recorder.from_bytes(data)
        return {path: leaf.tolist() for path, leaf in pt.tree.leaves_with_paths(tree)}

    good = values(data)
    for length in range(len(data)):
        with pytest.raises(pr.RecordError):
            recorder.from_bytes(data[:length])
    changed = bytearray(data)
    refused = 0
    for at in range(len(data)):
        changed[at] ^= 0xFF
        try:
            assert values(changed) == good, at  # a byte that means nothing here: padding, a date
        except pr.RecordError:
            refused += 1
        changed[at] ^= 0xFF
    assert refused > 500
