"""Which dtypes a file holds and which ones a device gets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_record as pr
import phlox_tensor as pt

FLOATS = (pt.bfloat16, pt.float16, pt.float32, pt.float64)


@pytest.mark.parametrize(
    ("precision", "stored"),
    [
        (pr.BFloat16Precision, pt.bfloat16),
        (pr.DoublePrecision, pt.float64),
        (pr.FullPrecision, pt.float32),
        (pr.HalfPrecision, pt.float16),
    ],
    ids=repr,
)
def test_floats_are_stored_in_the_precision_and_ints_as_they_are(
    precision: pr.PrecisionSettings, stored: pt.DType, kind: type[pr.Recorder]
) -> None:
    tree: Any = {name: pt.asarray(np.ones(2, dtype.numpy)) for name, dtype in pt.DTYPES.items()}
    recorder = kind(precision)
    found = recorder.from_bytes(recorder.to_bytes(tree), like=tree, dtype="stored")
    for name, dtype in pt.DTYPES.items():
        assert found[name].dtype is (stored if dtype.kind == "Float" else dtype), name
    found = recorder.from_bytes(recorder.to_bytes(tree), like=tree)
    for name, dtype in pt.DTYPES.items():
        assert found[name].dtype is (pt.float32 if dtype.kind == "Float" else dtype), name


def test_without_a_precision_every_bit_and_type_is_kept(
    kind: type[pr.Recorder], tmp_path: Path
) -> None:
    tree: Any = {
        name: pt.asarray((np.arange(3) / 3).astype(dtype.numpy))
        for name, dtype in pt.DTYPES.items()
    }
    recorders = [kind()] if kind.needs_like else [kind(), pr.recorder_for(f"a{kind.extension}")]
    for recorder in recorders:
        recorder.record(tree, tmp_path / "a")
        recorder.record_async(tree, tmp_path / "b").wait()
        places = [tmp_path / "a", tmp_path / "b"]
        if not kind.needs_like:
            recorder.record(tree, tmp_path / "c", max_shard_size=8)
            places.append(tmp_path / "c")
        for place in places:
            found = recorder.load(place, like=tree, dtype="stored")
            for name, tensor in found.items():
                assert tensor.dtype is tree[name].dtype, (place.name, name)
                assert tensor.numpy().tobytes() == tree[name].numpy().tobytes(), (place.name, name)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_device_or_the_caller_chooses_the_loaded_dtype(dtype: pt.DType) -> None:
    recorder = pr.NamedMsgpackRecorder(pr.HalfPrecision)
    data = recorder.to_bytes({"w": pt.asarray([0.5, -2.0])})
    by_device = recorder.from_bytes(data, device=pt.Numpy(float=dtype.name))["w"]
    by_caller = recorder.from_bytes(data, dtype=dtype)["w"]
    assert by_device.dtype is by_caller.dtype is dtype
    assert by_device.device is pt.Numpy(float=dtype.name)
    assert by_device.tolist() == by_caller.tolist() == [0.5, -2.0]


@pytest.mark.parametrize("wrong", [pt.int32, "int8", pt.bool_])
def test_only_float_types_can_be_asked_for(wrong: Any) -> None:
    data = pr.JsonRecorder().to_bytes({"w": pt.asarray([1.0])})
    with pytest.raises(pt.ArgumentError, match="float type"):
        pr.JsonRecorder().from_bytes(data, dtype=wrong)


def test_overflow_names_the_tensor_and_a_wider_precision() -> None:
    tree: Any = {"model": {"head": pr.ParamEntry("id", pt.asarray([1.0, 70000.0]))}}
    with pytest.raises(pr.RecordError) as caught:
        pr.NamedMsgpackRecorder(pr.HalfPrecision).to_bytes(tree)
    error = caught.value
    assert "model.head does not fit float16" in error.what
    assert error.got == 70000.0
    assert "65504" in str(error.expected)
    assert "BFloat16Precision" in (error.hint or "")


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        (65520.0, pt.float32, pr.HalfPrecision),
        (3.4e38, pt.float32, pr.BFloat16Precision),
        (1e39, pt.float64, pr.FullPrecision),
        (3.39e38, pt.bfloat16, pr.HalfPrecision),
    ],
)
def test_a_finite_value_never_becomes_infinite(
    value: float, source: pt.DType, target: pr.PrecisionSettings
) -> None:
    tensor = pt.asarray(np.full(300_000, 1, source.numpy))
    array = tensor.numpy().copy()
    array[-1] = value
    with pytest.raises(pr.RecordError, match="does not fit"):
        pr.NamedMsgpackRecorder(target).to_bytes({"w": pt.asarray(array)})


def test_what_fits_rounds_and_infinities_pass() -> None:
    values = [65519.0, float("inf"), float("-inf"), float("nan"), 1e-30]
    recorder = pr.NamedMsgpackRecorder(pr.HalfPrecision)
    found = recorder.from_bytes(recorder.to_bytes({"w": pt.asarray(values)}))["w"].numpy()
    assert np.array_equal(found, [65504, np.inf, -np.inf, np.nan, 0], equal_nan=True)


def test_overflow_when_loading_names_the_tensor() -> None:
    recorder = pr.NamedMsgpackRecorder(pr.DoublePrecision)
    data = recorder.to_bytes({"w": [pt.asarray(np.array([1e300]))]})
    with pytest.raises(pr.RecordError, match=r"\[load\] w\.0: the tensor does not fit float32"):
        recorder.from_bytes(data)
    assert recorder.from_bytes(data, dtype="stored")["w"][0].tolist() == [1e300]


def test_settings_of_ones_own() -> None:
    mine = pr.PrecisionSettings("mine", pt.float64)
    data = pr.JsonRecorder(mine).to_bytes({"w": pt.asarray([1.0])})
    assert b'"precision": "mine"' in data
    assert b'"float64"' in data


def test_ints_on_a_device_without_their_type(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = pt.Numpy(int="int32")
    monkeypatch.setattr(narrow, "dtypes", frozenset({pt.float32, pt.int32, pt.bool_}))
    recorder = pr.NamedMsgpackRecorder()
    data = recorder.to_bytes({"n": pt.asarray(np.array([1, -2], np.int64))})
    found = recorder.from_bytes(data, device=narrow)["n"]
    assert found.dtype is pt.int32
    assert found.tolist() == [1, -2]
    data = recorder.to_bytes({"n": pt.asarray(np.array([1, 2**31], np.int64))})
    with pytest.raises(pr.RecordError, match="n: the tensor does not fit int32: got 2147483648"):
        recorder.from_bytes(data, device=narrow)
    with pytest.raises(pt.DTypeError):
        recorder.from_bytes(data, device=narrow, dtype="stored")


def test_big_endian_machines_store_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    from phlox_record import _precision

    for dtype in pt.DTYPES.values():
        array = np.ones(3, dtype.numpy)
        same = _precision.little_endian(array)
        assert same is array
        monkeypatch.setattr(sys, "byteorder", "big")
        swapped = _precision.little_endian(array)
        back = _precision.little_endian(swapped)
        monkeypatch.undo()
        size = dtype.itemsize
        reverse = array.view(np.uint8).reshape(3, size)[:, ::-1]
        assert swapped.view(np.uint8).tobytes() == reverse.tobytes()
        assert back.view(np.uint8).tobytes() == array.tobytes()


def test_patterns_choose_a_precision_by_path(kind: type[pr.Recorder]) -> None:
    tree: Any = {
        "body": {"weight": pt.asarray([1.0]), "norm": {"weight": pt.asarray([1.0])}},
        "head": {"weight": pt.asarray([1.0])},
        "steps": pt.asarray([1]),
    }
    settings = pr.HalfPrecision.where(
        {"*.norm.*": pr.FullPrecision, "head.*": pr.KeepPrecision, "body.*": pr.BFloat16Precision}
    )
    recorder = kind(settings)
    found = recorder.from_bytes(recorder.to_bytes(tree), like=tree, dtype="stored")
    assert found["body"]["norm"]["weight"].dtype is pt.float32
    assert found["body"]["weight"].dtype is pt.bfloat16
    assert found["head"]["weight"].dtype is pt.float32
    assert found["steps"].dtype is pt.int64
    assert settings.name.startswith("half, full at *.norm.*")


def test_loading_has_a_precision_of_its_own(kind: type[pr.Recorder]) -> None:
    tree: Any = {"a": pt.asarray([0.5]), "b": pt.asarray([0.25])}
    data = kind(pr.HalfPrecision).to_bytes(tree)
    wanted = pr.DoublePrecision.where({"b": pr.BFloat16Precision})
    found = kind().from_bytes(data, like=tree, dtype=wanted)
    assert (found["a"].dtype, found["b"].dtype) == (pt.float64, pt.bfloat16)
    assert (found["a"].tolist(), found["b"].tolist()) == ([0.5], [0.25])


def test_overflow_is_refused_unless_asked_for(kind: type[pr.Recorder]) -> None:
    tree: Any = {"w": pt.asarray([70000.0, -1e30, 1.0])}
    with pytest.raises(pr.RecordError, match="does not fit float16"):
        kind(pr.HalfPrecision).to_bytes(tree)
    data = kind(pr.HalfPrecision.allow_overflow()).to_bytes(tree)
    assert kind().from_bytes(data, like=tree)["w"].tolist() == [np.inf, -np.inf, 1.0]


def test_the_loss_of_a_precision_is_what_numpy_computes() -> None:
    values = np.random.default_rng(0).standard_normal(100_000).astype("f4")
    values[:3] = [1e5, 1e-9, np.nan]
    tree: Any = {"a": {"w": pt.asarray(values)}, "n": pt.asarray([1])}
    (loss,) = pr.precision_loss(tree, pr.HalfPrecision)
    kept = values[3:]
    expected = np.abs(kept.astype("f8") - kept.astype("f2").astype("f8")).max()
    assert (loss.path, loss.before, loss.after) == ("a.w", pt.float32, pt.float16)
    assert (loss.largest_error, loss.infinite) == (expected, 1)
    assert loss.zero == 1 + int((kept.astype("f2") == 0).sum())
    assert pr.precision_loss(tree, pr.FullPrecision) == []
    assert pr.precision_loss(tree, pr.DoublePrecision)[0].largest_error == 0
