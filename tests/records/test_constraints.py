"""What records promise, each with a model of layers and on every device."""

from __future__ import annotations

import sqlite3
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Cpu, Numpy, Wgpu, nn, optim, record
from phlox.record import (
    BFloat16Precision,
    DoublePrecision,
    FullPrecision,
    HalfPrecision,
    NamedMsgpackRecorder,
)
from phlox_tensor import DTypeError, RecordError

DEVICES = {"cpu": Cpu, "numpy": Numpy, "wgpu": Wgpu}
PRECISIONS = (BFloat16Precision, DoublePrecision, FullPrecision, HalfPrecision)
# Every float of them is a number of each precision.
NUMBERS = [1.0, -2.5, 0.0, 0.15625]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("saved", PRECISIONS, ids=repr)
def test_the_precision_of_a_file_is_not_that_of_a_device(
    saved: Any, device: str, tmp_path: Path
) -> None:
    target = DEVICES[device]()
    tree = {"w": px.asarray(np.array(NUMBERS, "f4"), device=target)}
    path = NamedMsgpackRecorder(saved).record(tree, tmp_path / "a")
    assert record.inspect(path).tree["w"].dtype is saved.float_dtype
    loaded = NamedMsgpackRecorder().load(path, device=target)["w"]
    assert (loaded.dtype, loaded.tolist()) == (target.default_float, NUMBERS)
    for wanted in PRECISIONS:  # of a recorder with other settings, which say nothing here
        dtype = wanted.float_dtype
        assert dtype is not None
        if dtype in target.dtypes:
            loaded = NamedMsgpackRecorder(saved).load(path, device=target, dtype=wanted)["w"]
            assert (loaded.dtype, loaded.tolist()) == (dtype, NUMBERS)
        else:
            with pytest.raises(DTypeError, match=dtype.name):
                NamedMsgpackRecorder(saved).load(path, device=target, dtype=wanted)


class Logged(nn.Module):
    """A model that writes down what it sees."""

    layer: nn.Linear
    log: sqlite3.Connection

    def forward(self, x: Any) -> Any:
        self.log.execute("insert into calls values (?)", (x.shape[0],))
        return self.layer(x)


def test_an_open_database_is_a_field_that_survives(tmp_path: Path) -> None:
    log = sqlite3.connect(":memory:")
    log.execute("create table calls (rows integer)")
    device = Autodiff(Cpu())
    model = Logged(nn.Linear(2, 1, device=device), log)
    assert set(model.into_record()) == {"layer"}
    path = model.save_file(tmp_path / "logged")
    assert b"sqlite" not in path.read_bytes()
    other = Logged(nn.Linear(2, 1, device=device), sqlite3.connect(":memory:"))
    mine = other.log
    loaded = other.load_file(path)
    assert loaded.log is mine  # a constant: it stays what it was where the record is loaded
    assert loaded.layer.weight.value.tolist() == model.layer.weight.value.tolist()
    mine.close()
    x = px.ones((3, 2), device=device)
    optimizer = optim.SgdConfig().init()
    model = optimizer.step(0.1, model, model(x).sum().backward())
    model.valid()(px.ones((4, 2), device=device.inner))
    assert model.log is log
    assert log.execute("select rows from calls").fetchall() == [(3,), (4,)]
    log.close()


def encoder() -> nn.TransformerEncoderConfig:
    return nn.TransformerEncoderConfig(nn.TransformerEncoderLayerConfig(8, 2, 16), 2, True)


def test_a_model_made_from_a_file_draws_nothing_and_initializes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = encoder()
    path = config.init("cpu").save_file(tmp_path / "model")
    config.save(tmp_path / "config.json")
    px.random.seed(5)
    calls: list[Any] = []
    drawn: Any = vars(nn.Param)["value"].fget

    def value(self: Any) -> Any:
        if not self.is_initialized:
            calls.append(self.shape)
        return drawn(self)

    monkeypatch.setattr(nn.Param, "value", property(value))
    known = nn.TransformerEncoderConfig.load(tmp_path / "config.json")
    model = known.init_with(NamedMsgpackRecorder().open(path))
    out = model(px.ones((1, 3, 8), device="cpu"))
    assert out.shape == (1, 3, 8)
    assert calls == []
    assert px.random.generator().state() == (5, 0)
    fresh = known.init("cpu")
    assert fresh(px.ones((1, 3, 8), device="cpu")).shape == out.shape
    assert len(calls) == len(fresh.params())
    assert px.random.generator().state() != (5, 0)


def test_a_header_says_what_the_file_is(tmp_path: Path) -> None:
    path = nn.Linear(2, 1).save_file(tmp_path / "a", NamedMsgpackRecorder(HalfPrecision))
    info = record.inspect(path)
    assert info.recorder is NamedMsgpackRecorder
    assert (info.version, info.precision) == (2, "half")
    assert info.writer == f"phlox-record {version('phlox-record')}"
    newer = bytearray(path.read_bytes())
    newer[8] = 9
    path.write_bytes(newer)
    with pytest.raises(RecordError, match=r"(?s)newer phlox-record: got format 9.*pip install"):
        NamedMsgpackRecorder().load(path)
    path.write_bytes(record.JsonRecorder().to_bytes({"a": 1}))
    with pytest.raises(RecordError, match=r"another recorder: got JsonRecorder, expected Named"):
        NamedMsgpackRecorder().load(path)
