"""Modules to records and back, in memory and through every recorder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_record as record
import phlox_tensor as pt
from phlox_record import ParamEntry
from phlox_tensor import Backend, Numpy, RecordError, TreeError

RECORDERS = [
    record.CompactMsgpackGzRecorder,
    record.CompactMsgpackRecorder,
    record.JsonGzRecorder,
    record.JsonRecorder,
    record.NamedMsgpackGzRecorder,
    record.NamedMsgpackRecorder,
]
PRECISIONS = {
    record.BFloat16Precision: 2**-8,
    record.DoublePrecision: 0.0,
    record.FullPrecision: 0.0,
    record.HalfPrecision: 2**-11,
}


class Net(nn.Module):
    body: nn.Linear
    norms: list[nn.BatchNorm]
    more: dict[str, nn.Embedding]
    drop: nn.Dropout
    label: str = "net"


def net(device: Backend | None = None, width: int = 3) -> Net:
    return Net(
        body=nn.Linear(2, width, device=device),
        norms=[nn.BatchNorm(width, device=device)],
        more={"words": nn.Embedding(4, 2, device=device)},
        drop=nn.Dropout(),
    )


def values(module: nn.Module) -> dict[str, Any]:
    return {path: param.value.numpy() for path, param in module.params().items()}


def same(a: nn.Module, b: nn.Module, relative: float = 0.0) -> None:
    assert {p: q.id for p, q in a.params().items()} == {p: q.id for p, q in b.params().items()}
    for path, array in values(a).items():
        other = b.params()[path].value.numpy()
        assert other.dtype == array.dtype
        assert np.allclose(other, array, rtol=relative, atol=0 if not relative else 1e-7)


def test_the_record_is_the_tree_of_parameters() -> None:
    made = net()
    _ = made.body.weight.value
    tree: Any = made.into_record()
    assert set(tree) == {"body", "norms", "more"}
    assert set(tree["norms"]["0"]) == {"weight", "bias", "running_mean", "running_var"}
    entry = tree["body"]["weight"]
    assert isinstance(entry, ParamEntry)
    assert entry.id == made.body.weight.id
    assert isinstance(entry.tensor, pt.Tensor)
    assert entry.tensor.primitive is made.body.weight.value.primitive
    assert not isinstance(tree["more"]["words"]["weight"].tensor, pt.Tensor)
    assert not made.more["words"].weight.is_initialized


@pytest.mark.parametrize("precision", PRECISIONS, ids=repr)
@pytest.mark.parametrize("recorder", RECORDERS, ids=lambda r: r.__name__)
def test_files_go_round(recorder: Any, precision: Any, tmp_path: Path) -> None:
    made = net()
    writer = recorder(precision)
    path = made.save_file(tmp_path / "net", writer)
    assert path.name.startswith("net.")
    loaded = net().load_file(tmp_path / "net", writer)
    same(made, loaded, PRECISIONS[precision])
    assert loaded.label == "net"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
@pytest.mark.parametrize("name", ["net", "net.safetensors", "net.npz", "net.json", "net.cmpk"])
def test_a_file_has_the_types_of_the_module(name: str, dtype: str, tmp_path: Path) -> None:
    device = Numpy(float=dtype)
    made = net(device)
    path = made.save_file(tmp_path / name)
    same(made, net(device).load_file(path))
    for tensor in pt.tree.leaves(record.inspect(path).tree, record.ParamEntry):
        assert tensor.tensor.dtype.name == dtype


def test_loading_to_a_device(tmp_path: Path, recording: Backend) -> None:
    recorder = record.NamedMsgpackRecorder()
    made = net()
    made.save_file(tmp_path / "net", recorder)
    tracked = net(recording).load_file(tmp_path / "net", recorder)
    assert tracked.devices == [recording]
    assert tracked.body.weight.value.requires_grad
    assert not tracked.norms[0].running_mean.value.requires_grad
    moved = net(recording).load_file(tmp_path / "net", recorder, device=Numpy(int="int32"))
    assert moved.devices == [Numpy(int="int32")]
    same(made, moved)


def test_parameters_keep_the_type_of_the_module() -> None:
    wide = net(Numpy(float="float64"))
    tree = wide.into_record()
    narrow = net().load_record(tree)
    assert narrow.body.weight.dtype is pt.float32
    assert wide.load_record(net().into_record()).body.weight.dtype is pt.float64


def test_loading_never_initializes() -> None:
    saved = net()
    target = net()
    loaded = target.load_record(saved.into_record())
    assert not any(p.is_initialized for p in target.params().values())
    assert all(p.is_initialized for p in loaded.params().values())


def test_shared_parameters_are_loaded_as_shared() -> None:
    class Tied(nn.Module):
        a: nn.Linear
        b: nn.Linear

    layer = nn.Linear(2, 2)
    saved = Tied(layer, layer)
    other = nn.Linear(2, 2)
    loaded = Tied(other, other).load_record(saved.into_record())
    assert loaded.a.weight is loaded.b.weight
    assert loaded.a.weight.id == layer.weight.id


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (lambda t: {}, "another module than Net: got missing body.bias, body.weight, more.words"),
        (lambda t: {**t, "head": t["body"]}, "got unknown head.bias, head.weight, expected 7"),
        (lambda t: {**t, "body": {"weight": t["body"]["weight"]}}, "missing body.bias"),
        (lambda t: net(width=5).into_record(), r"shapes differ: body.weight, .*: got \(2, 5\), "),
        (lambda t: {**t, "step": 3}, "not a record of a module at step: got int"),
        (lambda t: None, "not a record of a module at the root: got NoneType"),
        (lambda t: [t], "at the root: got list"),
        (lambda t: {**t, "body": pt.zeros(1)}, "missing body.bias, body.weight, unknown body"),
    ],
)
def test_a_record_of_another_module_is_refused(tree: Any, text: str) -> None:
    with pytest.raises(RecordError, match=text):
        net().load_record(tree(net().into_record()))


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    recorder = record.NamedMsgpackRecorder()
    path = net().save_file(tmp_path / "net", recorder)
    data = path.read_bytes()
    for damaged in (b"", data[:20], data[:-1], data + b"x", bytes(len(data))):
        path.write_bytes(damaged)
        with pytest.raises(RecordError, match=r"^\[(load|open)\] net.mpk: "):
            net().load_file(tmp_path / "net", recorder)
    with pytest.raises(FileNotFoundError):
        net().load_file(tmp_path / "nothing", recorder)
    path.write_bytes(data)
    with pytest.raises(RecordError):
        net().load_file(path, record.JsonRecorder())


def test_keys_that_no_path_tells_apart_are_refused() -> None:
    class Keys(nn.Module):
        parts: dict[Any, nn.Linear]

    layer = nn.Linear(1, 1)
    assert set(Keys({1: layer, 2: layer}).params()) == {
        "parts.1.weight", "parts.1.bias", "parts.2.weight", "parts.2.bias"
    }  # fmt: skip
    with pytest.raises(RecordError, match=r"\[into_record\] .*names"):
        Keys({"a.b": layer}).into_record()
    for use in (Keys.into_record, Keys.params, Keys.num_params, Keys.freeze):
        with pytest.raises(TreeError, match=r"two parts have one path: got parts\.1"):
            use(Keys({1: layer, "1": nn.Linear(1, 1)}))


class Buffers(nn.Module):
    """Tensors that are no parameters."""

    scale: nn.Param
    mean: pt.Tensor
    tables: list[pt.Tensor]


def buffers(number: float) -> Buffers:
    full = pt.full(2, number)
    return Buffers(nn.Param(full), full, [full.astype(pt.int64)])


def test_tensors_are_in_the_record() -> None:
    tree = buffers(3.0).into_record()
    data = record.NamedMsgpackRecorder(record.FullPrecision).to_bytes(tree)
    loaded = record.NamedMsgpackRecorder(record.FullPrecision).from_bytes(data)
    made = buffers(0.0).load_record(loaded)
    assert made.mean.tolist() == made.scale.value.tolist() == [3, 3]
    assert (made.tables[0].tolist(), made.tables[0].dtype) == ([3, 3], pt.int64)
    with pytest.raises(RecordError, match="missing mean"):
        buffers(0.0).load_record({k: v for k, v in tree.items() if k != "mean"})
    with pytest.raises(RecordError, match=r"mean is not of one kind: got ParamEntry"):
        buffers(0.0).load_record({**tree, "mean": tree["scale"]})


class Two(nn.Module):
    """Tied or not."""

    a: nn.Linear
    b: nn.Linear


def test_ties_between_module_and_record() -> None:
    one = nn.Linear(2, 2)
    tied, untied = Two(one, one), Two(nn.Linear(2, 2), nn.Linear(2, 2))
    loaded = untied.load_record(tied.into_record())
    assert len({p.id for p in loaded.param_list()}) == 4
    assert loaded.a.weight.id == one.weight.id
    assert loaded.b.weight.value.tolist() == one.weight.value.tolist()
    with pytest.raises(RecordError, match=r"two in the record: got a.weight and b.weight"):
        tied.load_record(untied.into_record())
    assert tied.load_record(tied.into_record()).a.weight.id == one.weight.id


@pytest.mark.parametrize("recorder", RECORDERS)
def test_the_same_seed_gives_the_same_file(recorder: Any) -> None:
    files = []
    for _ in range(2):
        pt.seed(11)
        files.append(recorder(record.FullPrecision).to_bytes(net().into_record()))
    assert files[0] == files[1]
    assert recorder(record.FullPrecision).to_bytes(net().into_record()) != files[0]


class Typed(nn.Module):
    count: pt.Tensor[Any]
    weight: nn.Param


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("count", np.array([1.5, 2.0], "f4")),
        ("count", np.array([3e10, 2.0], "f4")),
        ("count", np.array([np.nan, 2.0], "f4")),
        ("count", np.array([2**40, 2])),
        ("weight", np.array([1e9, 2.0], "f4")),
    ],
)
def test_numbers_that_the_module_cannot_hold_are_refused(
    name: str, array: Any, *, read: bool
) -> None:
    made = Typed(
        count=pt.asarray(np.array([1, 2], "i4")), weight=nn.Param(pt.ones(2, dtype=pt.float16))
    )
    entry: Any = pt.asarray(array) if read else record.TensorEntry.from_numpy(array)
    tree = {**made.into_record(), name: entry}
    with pytest.raises(RecordError, match=rf"{name}.* does not fit"):
        made.load_record(tree)


def test_numbers_of_another_type_that_fit_are_loaded() -> None:
    made = Typed(
        count=pt.asarray(np.array([1, 2], "i4")), weight=nn.Param(pt.ones(2, dtype=pt.float16))
    )
    tree: Any = {"count": pt.asarray([3.0, -4.0]), "weight": pt.asarray([0.1, float("inf")])}
    loaded = made.load_record(tree)
    assert loaded.count.dtype is pt.int32
    assert loaded.count.tolist() == [3, -4]
    assert loaded.weight.value.tolist() == pytest.approx([0.1, float("inf")], rel=1e-3)


def test_a_module_at_two_places_is_loaded_with_its_tensors() -> None:
    class Scaled(nn.Module):
        inner: nn.Linear
        scale: Any

    class Pair(nn.Module):
        left: Any
        right: Any

    shared = Scaled(nn.Linear(2, 2), pt.full(2, 3.0))
    record = Pair(shared, shared).into_record()
    fresh = Scaled(nn.Linear(2, 2), pt.zeros(2))
    loaded = Pair(fresh, fresh).load_record(record)
    assert loaded.left is loaded.right
    assert loaded.right.scale.tolist() == [3.0, 3.0]
    second: Any = {"right": record["right"]}
    assert Pair(fresh, fresh).load_record(second, partial=True).left.scale.tolist() == [3.0, 3.0]
