"""Whose layout a record is in, where in a file it lies: told by the file, or asked for by a hint.

`files/square.pt` and others are of PyTorch's ``Linear(3, 3)``: `tools/fixtures/checkpoints.py`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_record as pr
import phlox_tensor as pt
from phlox_tensor import RecordError

FILES = Path(__file__).parent / "files"
RECORDERS = (
    pr.JsonGzRecorder,
    pr.JsonRecorder,
    pr.NamedMsgpackGzRecorder,
    pr.NamedMsgpackRecorder,
    pr.NpzRecorder,
    pr.SafetensorsRecorder,
)


def gives_what_pytorch_gives(model: Any) -> bool:
    expected = np.array(FILES.joinpath("square.txt").read_text().split(), "f4").reshape(3, 3)
    got = model(pt.asarray(np.arange(9, dtype="f4").reshape(3, 3))).numpy()
    return bool(np.allclose(got, expected, rtol=1e-5, atol=1e-6))


def arrays() -> dict[str, Any]:
    found = pr.PyTorchRecorder().open(FILES / "square.pt")
    return {name: entry.numpy() for name, entry in found.items()}


def save_safetensors(arrays: dict[str, Any], path: Path, **metadata: str) -> None:
    """What the package of this name writes of arrays of float32."""
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    data = b""
    for name, array in arrays.items():
        end = len(data) + array.nbytes
        about = {"dtype": "F32", "shape": array.shape, "data_offsets": [len(data), end]}
        header[name], data = about, data + array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def test_a_file_of_pytorch_needs_no_word() -> None:
    model = nn.Linear(3, 3)
    assert gives_what_pytorch_gives(model.load_file(FILES / "square.pt"))
    recorder = pr.PyTorchRecorder()
    assert gives_what_pytorch_gives(model.load_record(recorder.open(FILES / "square.pt")))
    assert gives_what_pytorch_gives(model.load_record(recorder.load(FILES / "square.pt")))
    assert gives_what_pytorch_gives(model.load_record(pr.load(FILES / "square.pt")))
    assert model.load_report(recorder.open(FILES / "square.pt")).complete
    turned = model.load_file(FILES / "square.pt", layout="phlox")
    assert not gives_what_pytorch_gives(turned)
    assert np.array_equal(turned.weight.value.numpy(), arrays()["weight"])


@pytest.mark.parametrize("kind", RECORDERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("most", [None, 16])
def test_the_layout_goes_with_a_record_into_other_files(
    kind: type[pr.Recorder], most: int | None, tmp_path: Path
) -> None:
    model = nn.Linear(3, 3)
    tree = pr.load(FILES / "square.pt")
    kind().record(tree, tmp_path / "a", max_shard_size=most)
    assert gives_what_pytorch_gives(model.load_file(tmp_path / f"a{kind.extension}"))
    path = pr.convert(FILES / "square.pt", tmp_path / f"b{kind.extension}")
    assert gives_what_pytorch_gives(model.load_file(path))
    assert pr.inspect(path).layout == "pytorch"
    again = model.load_file(path)
    kind().record(again.into_record(layout="pytorch"), tmp_path / "c", max_shard_size=most)
    read = model.load_file(tmp_path / f"c{kind.extension}")
    assert gives_what_pytorch_gives(read)
    assert read.weight.id == again.weight.id


@pytest.mark.parametrize("kind", RECORDERS, ids=lambda kind: kind.__name__)
def test_our_own_files_are_ours_whatever_their_metadata_say(
    kind: type[pr.Recorder], tmp_path: Path
) -> None:
    model = nn.Linear(3, 3).load_file(FILES / "square.pt")
    path = kind().record(model.into_record(), tmp_path / "a", metadata={"format": "pt"})
    assert gives_what_pytorch_gives(nn.Linear(3, 3).load_file(path))
    assert pr.inspect(path).layout == "phlox"


def test_safetensors_of_pytorch_say_so(tmp_path: Path) -> None:
    save_safetensors(arrays(), tmp_path / "a.safetensors", format="pt")
    assert gives_what_pytorch_gives(nn.Linear(3, 3).load_file(tmp_path / "a.safetensors"))
    record = pr.SafetensorsRecorder().load(tmp_path / "a")
    assert gives_what_pytorch_gives(nn.Linear(3, 3).load_record(record))


@pytest.mark.parametrize("name", ["a.safetensors", "a.npz"])
def test_a_file_that_says_nothing_loads_where_one_layout_fits(name: str, tmp_path: Path) -> None:
    def write(**arrays: Any) -> Path:
        path = tmp_path / name
        if name.endswith("npz"):
            np.savez(path, **arrays)
        else:
            save_safetensors(arrays, path)
        return path

    path = write(**arrays())
    model = nn.Linear(3, 3)
    for load in (model.load_file, lambda path: model.load_record(pr.load(path))):
        with pytest.raises(RecordError, match="does not say in whose layout") as caught:
            load(path)
    assert caught.value.hint is not None
    assert 'layout="pytorch"' in caught.value.hint
    assert gives_what_pytorch_gives(model.load_file(path, layout="pytorch"))
    oblong = np.arange(6, dtype="f4").reshape(2, 3)
    path = write(weight=oblong, bias=np.zeros(2, "f4"))
    assert nn.Linear(3, 2).load_file(path).weight.value.tolist() == oblong.T.tolist()
    path = write(weight=oblong, bias=np.zeros(3, "f4"))
    assert nn.Linear(2, 3).load_file(path).weight.value.tolist() == oblong.tolist()
    norm: Any = nn.LayerNorm(3).load_file(write(weight=np.full(3, 2, "f4"), bias=np.ones(3, "f4")))
    assert norm.weight.value.tolist() == [2, 2, 2]


def test_entries_in_two_layouts_are_refused() -> None:
    record = pr.load(FILES / "square.pt")
    record["bias"] = pt.ones(3)
    with pytest.raises(RecordError, match="in two layouts"):
        nn.Linear(3, 3).load_record(record)


class Wrapped(nn.Module):
    body: nn.Linear


HINTS = [
    (
        lambda: nn.Linear(3, 3),
        "parallel.pth.tar",
        'path, at="state_dict", remap={r"^module\\.": ""}',
    ),
    (
        lambda: nn.Linear(3, 3),
        "lightning.ckpt",
        'path, at="state_dict", remap={r"^model\\.": ""}, partial',
    ),
    (lambda: Wrapped(nn.Linear(3, 3)), "square.pt", 'path, remap={r"^": "body."}'),
]


@pytest.mark.parametrize(("make", "name", "says"), HINTS, ids=[name for _, name, _ in HINTS])
def test_the_hint_for_a_checkpoint_loads_it(make: Any, name: str, says: str) -> None:
    model = make()
    with pytest.raises(RecordError) as caught:
        model.load_file(FILES / name)
    hint = caught.value.hint or ""
    assert says in hint
    loaded = eval(hint, {"model": model, "path": FILES / name})
    assert gives_what_pytorch_gives(getattr(loaded, "body", loaded))
    record = pr.PyTorchRecorder().open(FILES / name)
    with pytest.raises(RecordError) as caught:
        model.load_record(record)
    loaded = eval(caught.value.hint or "", {"model": model, "record": record})
    assert gives_what_pytorch_gives(getattr(loaded, "body", loaded))


def test_shapes_the_other_way_round_hint_at_the_layout() -> None:
    plain = {"weight": pt.arange(6.0).reshape(2, 3), "bias": pt.ones(2)}
    loaded = nn.Linear(3, 2).load_record(plain)
    assert loaded.weight.value.T.tolist() == plain["weight"].tolist()
    record = {name: pr.ParamEntry(name, tensor) for name, tensor in plain.items()}
    with pytest.raises(RecordError, match="shape of weight") as caught:
        nn.Linear(3, 2).load_record(record)
    assert caught.value.hint == 'model.load_record(record, layout="pytorch")'


def test_a_part_of_a_file_is_named_by_where_it_is() -> None:
    model = nn.Linear(3, 3)
    path = FILES / "parallel.pth.tar"
    assert gives_what_pytorch_gives(model.load_file(path, at="state_dict.module"))
    for wrong in ("state", "state_dict.0", "epoch.x"):
        with pytest.raises(RecordError, match=re.escape(repr(wrong))):
            model.load_file(path, at=wrong)
    moments = pr.PyTorchRecorder().open(path)["optimizer"]["state"]["0"]
    assert moments["exp_avg"].shape == (3, 3)
    with pytest.raises(RecordError, match=r"argparse\.Namespace"):
        pr.load(path)


CHANGES = {
    "astype": lambda x: x.astype("float64").astype("float32"),
    "device": lambda x: x.to_device(pt.Profile(pt.Numpy())),
    "numpy": lambda x: x.numpy(),
    "times": lambda x: x * 1.0,
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_computed_from_tensors_of_pytorch_is_not_taken_for_ours(
    change: str, tmp_path: Path
) -> None:
    read: Any = pr.load(FILES / "square.pt")
    record = {name: CHANGES[change](tensor) for name, tensor in read.items()}
    with pytest.raises(RecordError, match="does not say in whose layout"):
        nn.Linear(3, 3).load_record(record)
    assert gives_what_pytorch_gives(nn.Linear(3, 3).load_record(record, layout="pytorch"))
    if change != "numpy":
        path = pr.JsonRecorder().record(record, tmp_path / "a")
        with pytest.raises(RecordError, match="does not say in whose layout"):
            nn.Linear(3, 3).load_file(path)


def test_a_weight_that_does_not_say_is_asked_for_among_ours() -> None:
    model = nn.Linear(3, 3)
    record = {**model.into_record(), "weight": pt.asarray(arrays()["weight"])}
    with pytest.raises(RecordError, match="does not say in whose layout"):
        model.load_record(record)
    bias = {**model.into_record(), "bias": pt.asarray(arrays()["bias"])}
    assert np.array_equal(model.load_record(bias).bias.value.numpy(), arrays()["bias"])  # type: ignore[union-attr]


def test_tensors_of_two_layouts_are_not_written_into_one_file(tmp_path: Path) -> None:
    read: Any = pr.load(FILES / "square.pt")
    with pytest.raises(RecordError, match="two layouts, and a file is in one"):
        pr.JsonRecorder().record({"model": read, "more": pt.ones((3, 3))}, tmp_path / "a")
    path = pr.JsonRecorder().record({"model": read, "step": pt.ones(())}, tmp_path / "b")
    assert gives_what_pytorch_gives(nn.Linear(3, 3).load_file(path, at="model"))


def test_a_hint_for_a_part_of_a_file_names_the_file(tmp_path: Path) -> None:
    weights = {"body": nn.Linear(3, 2).into_record()}
    path = pr.JsonRecorder().record({"state": {"model": weights}}, tmp_path / "a")
    for at in ("state", "state.model"):
        with pytest.raises(RecordError) as caught:
            nn.Linear(3, 2).load_file(path, at=at)
        hint = caught.value.hint or ""
        assert hint.startswith(f'model.load_file(path, at="{at}'), hint
        assert eval(hint, {"model": nn.Linear(3, 2), "path": path}).weight.shape == (3, 2)
