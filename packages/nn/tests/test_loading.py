"""Loading records that do not fit at once: reports, parts, other names, other layouts, versions."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import phlox_nn as nn
import phlox_record as pr
import phlox_tensor as pt
from phlox_nn.loading import foreign
from phlox_nn.loading import report as of_report
from phlox_tensor import RecordError, tree

FILES = Path(__file__).parent / "files"


class Net(nn.Module):
    body: nn.Linear
    head: nn.Linear


def net(width: int = 3) -> Net:
    return Net(nn.Linear(2, width), nn.Linear(width, 2))


def values(module: nn.Module) -> dict[str, Any]:
    return {path: param.value.tolist() for path, param in module.params().items()}


def test_a_report_says_what_would_happen() -> None:
    record: Any = net(4).into_record()
    record["tail"] = record.pop("head")
    report = net().load_report(record)
    assert report.applied == ()
    assert report.missing == ("head.bias", "head.weight")
    assert report.unused == ("tail.bias", "tail.weight")
    assert report.wrong_shape == (("body.weight", (2, 4), (2, 3)), ("body.bias", (4,), (3,)))
    assert not report.complete
    assert "wrong shape: body.weight: (2, 4), expected (2, 3)" in str(report)
    assert net().load_report(net().into_record()).complete


def test_a_missing_name_is_shown_beside_what_was_meant() -> None:
    record: Any = net().into_record()
    record["heads"] = record.pop("head")
    report = net().load_report(record)
    assert report.similar == {"head.bias": "heads.bias", "head.weight": "heads.weight"}
    with pytest.raises(RecordError, match=r"did you mean heads.bias for head.bias"):
        net().load_record(record)


def test_a_part_is_loaded_when_that_is_asked_for() -> None:
    model, other = net(), net()
    record: Any = other.into_record()
    del record["head"]
    record["more"] = {"weight": pt.ones(1)}
    with pytest.raises(RecordError, match=r"missing head.bias, head.weight, unknown more.weight"):
        model.load_record(record)
    loaded = model.load_record(record, partial=True)
    assert values(loaded.body) == values(other.body)
    assert values(loaded.head) == values(model.head)
    assert loaded.head.weight is model.head.weight


def test_a_part_never_hides_another_shape_or_a_record_that_does_not_fit_at_all() -> None:
    record: Any = net(4).into_record()
    with pytest.raises(RecordError, match=r"shapes differ: body\.weight, "):
        net().load_record(record, partial=True)
    with pytest.raises(RecordError, match="nothing in the record fits"):
        net().load_record({"other": record}, partial=True)


def test_all_shapes_that_differ_are_named_and_left_out_by_the_hint() -> None:
    record, model = net(4).into_record(), net()
    with pytest.raises(
        RecordError, match=r"shapes differ: body\.weight, body\.bias, head\.weight"
    ) as caught:
        model.load_record(record)
    found = re.search(r"remap=(.*)$", str(caught.value))
    assert found is not None
    loaded = model.load_record(record, partial=True, remap=ast.literal_eval(found[1]))
    assert values(loaded.body) == values(model.body)
    assert values(loaded.head) != values(model.head)


def test_names_change_by_patterns() -> None:
    other = net()
    record: Any = {
        "model": {"encoder": other.body.into_record(), "decoder": {}},
        "extra": pt.ones(1),
    }
    record["model"]["decoder"]["out"] = other.head.into_record()
    remap = {
        r"^model\.": "",
        r"^encoder\.(\w+)$": r"body.\1",
        r"^decoder\.out\.": "head.",
        "extra": None,
    }
    assert values(net().load_record(record, remap=remap)) == values(other)
    with pytest.raises(RecordError, match="a pattern fits no name"):
        net().load_record(record, remap={"^modle": ""})
    with pytest.raises(RecordError, match="no pattern"):
        net().load_record(record, remap={"(": ""})
    with pytest.raises(RecordError, match="two entries get one name"):
        net().load_record(record, remap={r".*weight$": "w"})


def test_a_tied_parameter_is_one_entry_and_one_parameter_again(tmp_path: Path) -> None:
    shared = nn.Linear(2, 2)
    model = Net(shared, shared)
    record = model.into_record()
    assert record["body"]["weight"] is record["head"]["weight"]  # type: ignore[index, call-overload]
    for kind in (pr.NamedMsgpackRecorder, pr.SafetensorsRecorder, pr.JsonRecorder):
        path = model.save_file(tmp_path / f"tied{kind.extension}")
        loaded = Net(*[nn.Linear(2, 2)] * 2).load_file(path)
        assert loaded.body.weight is loaded.head.weight
        assert loaded.num_params() == 6


def test_a_tied_parameter_needs_one_of_its_names() -> None:
    """Other programs drop the second name of what is shared."""
    shared = nn.Linear(2, 2)
    record: Any = Net(shared, shared).into_record()
    del record["head"]
    loaded = Net(*[nn.Linear(2, 2)] * 2).load_record(record)
    assert values(loaded.head) == values(shared)


def test_tensors_without_ids_load_under_fresh_ones() -> None:
    record: Any = {"weight": pt.ones((2, 3)), "bias": pt.zeros(3)}
    one, other = (nn.LinearConfig(2, 3).init_with(record) for _ in range(2))
    assert one.weight.value.tolist() == [[1.0] * 3] * 2
    assert one.weight.id != other.weight.id


def test_a_module_made_from_a_record_draws_no_random_number() -> None:
    record: Any = net().into_record()["body"]
    pt.random.seed(7)
    model = nn.LinearConfig(2, 3).init_with(record)
    assert pt.random.generator().state() == (7, 0)
    assert model.weight.id == record["weight"].id


class Sum(nn.Module):
    """Its two weights were one until version 2, and had another name until version 3."""

    a: nn.Param
    second: nn.Param

    record_version = 3
    migrations: ClassVar[Any] = {
        1: lambda e: {"a": half(e["both"], 0), "b": half(e["both"], 1)},
        2: lambda e: {("second" if k == "b" else k): v for k, v in e.items()},
    }


def half(entry: Any, index: int) -> Any:
    array = entry.tensor.numpy()[index]
    return pr.TensorEntry.from_numpy(array)


def sums() -> Any:
    return Outer([Sum(nn.Param(pt.zeros(2)), nn.Param(pt.zeros(2)))])


class Outer(nn.Module):
    parts: list[Sum]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_files_of_every_version_load(version: int) -> None:
    loaded = sums().load_file(FILES / f"sum-{version}.json")
    assert values(loaded) == {"parts.0.a": [1.0, 2.0], "parts.0.second": [3.0, 4.0]}


def test_a_record_says_its_version() -> None:
    record: Any = sums().into_record()
    assert record["parts"]["0"]["(version)"] == 3
    assert "(version)" not in record
    assert values(sums().load_record(record)) == values(sums())


def test_versions_without_a_way_are_refused() -> None:
    record: Any = sums().into_record()
    record["parts"]["0"]["(version)"] = 4
    with pytest.raises(RecordError, match=r"newer than the module.*version 4"):
        sums().load_record(record)

    class Later(Sum):
        record_version = 5

    later = Outer([Later(nn.Param(pt.zeros(2)), nn.Param(pt.zeros(2)))])
    record["parts"]["0"]["(version)"] = 3
    with pytest.raises(RecordError, match="no migration of Later starts from its version 3"):
        later.load_record(record)


@pytest.mark.parametrize(
    ("migration", "says"),
    [
        (
            lambda e: {"a": e["bothh"]},
            r"Broken from version 3 failed.*KeyError: 'bothh'.*second",
        ),
        (lambda e: None, "Broken from version 3 gave no entries.*NoneType"),
    ],
)
def test_migrations_that_fail_are_named(migration: Any, says: str) -> None:
    class Broken(Sum):
        record_version = 4
        migrations: ClassVar[Any] = {3: migration}

    broken = Outer([Broken(nn.Param(pt.zeros(2)), nn.Param(pt.zeros(2)))])
    with pytest.raises(RecordError, match=says):
        broken.load_record(sums().into_record())


def test_layers_of_pytorch_load_and_are_written() -> None:
    """`files/layers.pt` and what it gave for ones, from PyTorch: Linear, BatchNorm1d, LayerNorm."""

    class Layers(nn.Module):
        linear: nn.Linear
        norm: nn.BatchNorm
        last: nn.LayerNorm

        def forward(self, x: Any) -> Any:
            return self.last(self.norm(self.linear(x)))

    model = Layers(nn.Linear(3, 2), nn.BatchNorm(2), nn.LayerNorm(2))
    model = model.load_file(FILES / "layers.pt", layout="pytorch").with_training(False)
    expected = np.array(FILES.joinpath("layers.txt").read_text().split(), "f4").reshape(2, 2)
    got = model(pt.asarray(np.arange(6, dtype="f4").reshape(2, 3))).numpy()
    assert np.allclose(got, expected, rtol=1e-5, atol=1e-6)
    state = pr.PyTorchRecorder().load(FILES / "layers.pt")
    written: Any = model.into_record(layout="pytorch")
    assert np.array_equal(
        written["linear"]["weight"].tensor.numpy(), state["linear"]["weight"].numpy()
    )
    loaded = model.load_record(written, layout="pytorch")
    assert values(loaded) == values(model)


class Bodies(nn.Module):
    body: nn.Sequential
    layers: nn.Sequential  # which PyTorch calls so too

    def forward(self, x: Any) -> Any:
        return self.layers(self.body(x))


def test_a_sequential_of_pytorch_loads_by_its_numbers_and_is_written() -> None:
    """`files/sequential.pt` and what it gave for 0 to 5, from PyTorch."""
    inner = nn.Sequential(nn.LayerNorm(2), nn.Linear(2, 2))
    body = nn.Sequential(nn.Linear(3, 2), nn.Activation("relu"), inner)
    fresh = nn.Sequential(Bodies(body, nn.Sequential(nn.Linear(2, 2))), nn.Linear(2, 2))
    model = fresh.load_file(FILES / "sequential.pt", layout="pytorch")
    expected = np.array(FILES.joinpath("sequential.txt").read_text().split(), "f4").reshape(2, 2)
    got = model(pt.asarray(np.arange(6, dtype="f4").reshape(2, 3))).numpy()
    assert np.allclose(got, expected, rtol=1e-5, atol=1e-6)
    state = pr.PyTorchRecorder().open(FILES / "sequential.pt")
    written: Any = model.into_record(layout="pytorch")
    places = [
        dict(tree.leaves_with_paths(r, (pr.ParamEntry, pr.TensorEntry))) for r in (written, state)
    ]
    assert set(places[0]) == set(places[1])
    assert values(fresh.load_record(written, layout="pytorch")) == values(model)


def test_a_sequential_by_our_names_in_their_layout_loads_too() -> None:
    model = nn.Sequential(nn.Linear(3, 2))
    (linear,) = model.layers
    assert isinstance(linear, nn.Linear)
    record: Any = {"layers": {"0": linear.into_record(layout="pytorch")}}
    assert values(model.load_record(record, layout="pytorch")) == values(model)


class Attentions(nn.Module):
    encoder: nn.TransformerEncoder
    decoder: nn.TransformerDecoder
    cross: nn.MultiHeadAttention


def attentions() -> Attentions:
    encoder = nn.TransformerEncoderLayerConfig(4, 2, 6, 0.0)
    decoder = nn.TransformerDecoderLayerConfig(4, 2, 6, 0.0)
    return Attentions(
        nn.TransformerEncoder(encoder, 1),
        nn.TransformerDecoder(decoder, 1),
        nn.MultiHeadAttention(4, 2, d_key=3, d_value=5),
    )


def test_attention_of_pytorch_loads_and_is_written() -> None:
    """`files/attention.pt` and what it gave, from PyTorch: one layer each of TransformerEncoder and
    TransformerDecoder, whose three maps are one there, and MultiheadAttention with kdim and vdim.
    """
    model = attentions().load_file(FILES / "attention.pt", layout="pytorch").with_training(False)
    x, keys, entries = (
        pt.asarray(np.arange(n * m, dtype="f4").reshape(1, n, m) / scale)
        for n, m, scale in ((3, 4, 8), (2, 3, 4), (2, 5, 4))
    )
    memory = model.encoder(x)
    got = [memory, model.decoder(x, memory), model.cross(x, keys, entries)]
    lines = FILES.joinpath("attention.txt").read_text().splitlines()
    for line, tensor in zip(lines, got, strict=True):
        expected = np.array(line.split(), "f4").reshape(1, 3, 4)
        assert np.allclose(tensor.numpy(), expected, rtol=1e-5, atol=1e-5)
    state = pr.PyTorchRecorder().load(FILES / "attention.pt")
    written: Any = pr.NamedMsgpackRecorder().from_bytes(
        pr.NamedMsgpackRecorder().to_bytes(model.into_record(layout="pytorch"))
    )
    assert arrays(written) == arrays(state)
    assert values(attentions().load_record(written, layout="pytorch")) == values(model)


def arrays(tree: Any) -> dict[str, Any]:
    pairs = pt.tree.leaves_with_paths(tree, pr.ParamEntry)
    entries: dict[str, Any] = {p: getattr(entry, "tensor", entry) for p, entry in pairs}
    return {path: tensor.tolist() for path, tensor in entries.items()}


def test_attention_that_pytorch_does_not_have_keeps_its_maps() -> None:
    shared = nn.MultiHeadAttention(4, 2, n_heads_kv=1)
    written: Any = shared.into_record(layout="pytorch")
    assert set(written) == {"query", "key", "value", "out_proj"}
    assert values(shared.load_record(written, layout="pytorch")) == values(shared)


def test_a_fused_weight_of_a_wrong_shape_is_refused() -> None:
    written: Any = nn.MultiHeadAttention(4, 2).into_record(layout="pytorch")
    assert set(written) == {"in_proj_weight", "in_proj_bias", "out_proj"}
    with pytest.raises(RecordError, match=r"shapes differ: query\.weight"):
        nn.MultiHeadAttention(6, 2).load_record(written, layout="pytorch")
    written["in_proj_weight"] = pt.ones((7, 4))
    with pytest.raises(RecordError, match="unknown in_proj_weight"):
        nn.MultiHeadAttention(4, 2).load_record(written, layout="pytorch")


@pytest.mark.parametrize(("layer", "gates"), [(nn.Rnn, 1), (nn.Gru, 3), (nn.Lstm, 4)])
@pytest.mark.parametrize("both", [False, True])
def test_recurrent_layers_of_pytorch_load_and_are_written(
    layer: Any, gates: int, both: bool
) -> None:
    """The names are those of ``torch.nn.LSTM``: two layers, perhaps in both directions."""
    model = nn.Sequential(layer(5, 3, 2, bidirectional=both))
    written: Any = model.into_record(layout="pytorch")
    wide = 6 if both else 3
    sizes = {"l0": 5, "l0_reverse": 5, "l1": wide, "l1_reverse": wide}
    want = {
        f"{kind}_{part}_{at}": (gates * 3, *((size if part == "ih" else 3,) * (kind == "weight")))
        for at, size in sizes.items()
        for kind in ("weight", "bias")
        for part in ("ih", "hh")
        if both or "reverse" not in at
    }
    assert {name: entry.tensor.shape for name, entry in written["0"].items()} == want
    weight = model.path("layers.0.layers.0.weight_input").value.numpy()
    assert (written["0"]["weight_ih_l0"].tensor.numpy() == weight.T).all()
    fresh = nn.Sequential(layer(5, 3, 2, bidirectional=both))
    assert values(fresh.load_record(written, layout="pytorch")) == values(model)


def test_arrays_of_others_are_entries_as_tensors_are() -> None:
    weights = {
        "0.weight": np.arange(6, dtype=np.float32).reshape(3, 2),
        "0.bias": np.zeros(3, dtype=np.float32),
    }
    model = nn.Sequential(nn.Linear(2, 3))
    loaded = model.load_record(weights, layout="pytorch")
    np.testing.assert_array_equal(
        loaded.path("layers.0.weight").value.numpy(), weights["0.weight"].T
    )


def test_only_some_of_many_missing_names_are_compared_letter_by_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[Any] = []

    def counted(*args: Any) -> list[str]:
        calls.append(args)
        return []

    monkeypatch.setattr(of_report, "get_close_matches", counted)
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(40)))
    others = {f"part{i}.weight": pt.ones((2, 2)) for i in range(40)}
    with pytest.raises(RecordError):
        model.load_record(others)
    assert 0 < len(calls) <= 16


def test_two_arrays_for_one_parameter_are_refused_unless_they_are_equal() -> None:
    one = nn.Linear(2, 2, bias=False)
    model = net(2).replace(body=one, head=one)
    apart = nn.Linear(2, 2, bias=False).replace(weight=one.weight)
    for tied in (model, model.replace(head=apart)):
        first = np.asarray([[1.0, np.nan], [3.0, 4.0]])
        record: Any = {"body": {"weight": first}, "head": {"weight": first.copy()}}
        assert tied.load_record(record, layout="phlox").head.weight.value.tolist()[1] == [3.0, 4.0]
        record["head"]["weight"] = first + 1
        with pytest.raises(RecordError, match="shares a parameter that is two") as caught:
            tied.load_record(record, layout="phlox")
        found = re.search(r"remap=({.*?})", str(caught.value))
        assert found is not None
        loaded = tied.load_record(record, remap=ast.literal_eval(found[1]), layout="phlox")
        assert loaded.head.weight.value.tolist()[1] == [3.0, 4.0]


def test_a_layout_looks_at_each_entry_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of modules: it was once for each of them."""
    looked, moved = [0], foreign._moved

    def counted(*paths: str) -> str:
        looked[0] += 1
        return moved(*paths)

    def steps(layers: int) -> int:
        attention = [nn.MultiHeadAttention(4, 2) for _ in range(layers)]
        model = nn.Sequential(*attention).to_device(pt.Numpy())
        record = model.into_record(layout="pytorch")
        looked[0] = 0
        again = model.load_record(record, layout="pytorch").into_record(layout="pytorch")
        assert list(again) == list(record)
        return looked[0]

    monkeypatch.setattr(foreign, "_moved", counted)
    assert steps(20) < 12 * steps(2)
