"""What autotuning may choose has the bits of the ops, whichever it chooses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import phlox as px
from phlox import Cpu
from phlox_fusion import _tuning
from phlox_tensor.capture import Instr, Program
from tests.backends.test_fused import CHAINS, run_beside_ops


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which choices are stored, and the mode in which they are made."""
    folder = tmp_path_factory.mktemp("tuned")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        patch.setenv("PHLOX_AUTOTUNE", "on")
        yield folder
    _tuning._store.cache_clear()


@settings(max_examples=30, deadline=None)
@given(**CHAINS)
@pytest.mark.usefixtures("tuned")
def test_the_largest_programs_have_the_bits_of_their_ops(
    steps: Any, shapes: Any, layout: str, seed: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_tuning, "_fastest", lambda *given: "whole")
        _tuning._store.cache_clear()
        for got, wanted in run_beside_ops(Cpu(), steps, shapes, layout, seed):
            assert _bits(got) == _bits(wanted)


def _bits(array: np.ndarray[Any, Any]) -> bytes:
    """The bytes of an array; a NaN is one whatever its sign, as between layouts of one op."""
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type("nan"), array)
    return array.tobytes()


def test_what_is_measured_is_stored_and_changes_no_bit(tuned: Path) -> None:
    device = Cpu()
    x = px.asarray(np.random.default_rng(2).normal(size=(64, 96)).astype("f4"), device=device)

    def normed(x: px.Tensor[Any]) -> px.Tensor[Any]:
        d = x - x.mean(axis=-1, keepdims=True)
        return d / (d.square().mean(axis=-1, keepdims=True) + 1e-5).sqrt()

    _tuning._store.cache_clear()
    before = sum(len(path.read_text()) for path in tuned.rglob("*.jsonl"))
    wanted = normed(x).numpy().tobytes()
    for _ in range(2):  # measured, and read again
        fast = px.compile(normed)
        for _ in range(4):
            assert fast(x).numpy().tobytes() == wanted
        assert (fast.versions, fast.fallbacks) == (1, 0)
        _tuning._store.cache_clear()
    if device.kernel(Program(("float32",), (), (Instr("exp", (0,), "float32"),), (1,))) is None:
        pytest.skip("no code for this machine: programs run op by op")
    after = sum(len(path.read_text()) for path in tuned.rglob("*.jsonl"))
    assert after > before
