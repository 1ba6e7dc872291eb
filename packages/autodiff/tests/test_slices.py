"""Gradients of slices: many of one parent go into one buffer, of any order and in both modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_autodiff import _graph, _plan, _slices
from phlox_tensor import Backend, Tensor

Program = Callable[[Tensor[Any]], Tensor[Any]]


def _loop(x: Tensor[Any]) -> Tensor[Any]:
    state = x[0].zeros()
    for i in range(x.shape[0]):
        state = (state * 0.5 + x[i]).tanh()
    return state


def _windows(x: Tensor[Any]) -> Tensor[Any]:
    parts = [x[i : i + 3].sin() for i in range(x.shape[0] - 2)]
    total = parts[0]
    for part in parts[1:]:
        total = total * part
    return total


PROGRAMS: dict[str, Program] = {
    "a loop over the first axis": _loop,
    "a loop over the last axis": lambda x: _loop(x.permute_dims((1, 0))) * x[:, 2].sum(),
    "windows that overlap": _windows,
    "unstack": lambda x: sum(
        ((i + 1) * part.sin() for i, part in enumerate(pt.unstack(x, axis=1))), x[:, 0].zeros()
    ),
    "chunk": lambda x: pt.chunk(x, 2)[0] * pt.chunk(x, 2)[1].exp(),
    "split": lambda x: pt.split(x, [1, 2], axis=1)[1] * pt.split(x, [1, 2], axis=1)[0],
    "steps and reversals": lambda x: x[::2] * x[::-2] + x[1::2, ::-1] * x[:2],
    "slices beside the whole": lambda x: x * x[0] + x[1:2].exp() * x.tanh(),
    "one slice": lambda x: x[1:3, 1:].square(),
    "slices of slices": lambda x: sum((x[:3][i] * x[1:][i].exp() for i in range(3)), x[0]),
    "empty slices": lambda x: x[0] * x[2:2].sum() + x[:, :1].sum() + x[2:2].sum(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_slices_of_first_and_second_order(name: str) -> None:
    x = pt.asarray(np.random.default_rng(0).standard_normal((4, 3)))
    assert ad.gradcheck(PROGRAMS[name], x, order=2)


@pytest.mark.parametrize("name", PROGRAMS)
def test_slices_forwards_are_slices_backwards(name: str) -> None:
    random = np.random.default_rng(1)
    x, t = (pt.asarray(random.standard_normal((4, 3))) for _ in range(2))
    value, tangent = ad.jvp(PROGRAMS[name], (x,), (t,))
    weights = pt.asarray(random.standard_normal(value.shape))
    gradient = ad.grad(lambda x: (PROGRAMS[name](x) * weights).sum())(x)
    assert float((gradient * t).sum()) == pytest.approx(float((tangent * weights).sum()))


def test_the_sum_of_slices_has_derivatives_of_its_own() -> None:
    random = np.random.default_rng(2)
    parts = [pt.asarray(random.standard_normal(s)) for s in ((2, 3), (1, 3), (3, 1))]
    start, step = (0, 0, 3, 0, 0, 2), (2, 1, 1, 1, 1, 1)

    def run(*parts: Tensor[Any]) -> Tensor[Any]:
        return pt.REGISTRY["add_slices"](list(parts), (4, 3), start, step).sin()

    assert ad.gradcheck(run, tuple(parts), order=2)
    out, moved = ad.jvp(run, tuple(parts), (parts[0], None, parts[2]))
    assert out.shape == moved.shape == (4, 3)


def test_gradients_of_slices_are_those_of_padded_parts(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On every backend, against the sum that is written out."""
    array = np.random.default_rng(3).standard_normal((4, 3)).astype("float32")
    device = ad.Autodiff(backend)
    for name, program in PROGRAMS.items():
        x = pt.asarray(array, device=device).require_grad()
        found = x.grad(program(x).sum().backward())
        assert found is not None
        wide = pt.asarray(array.astype("float64"), device=ad.Autodiff("numpy")).require_grad()
        with monkeypatch.context() as patch:
            for module in (_graph, _plan):
                patch.setattr(module, "together", _naive)
            expected = wide.grad(program(wide).sum().backward())
        assert expected is not None
        np.testing.assert_allclose(
            found.numpy(), expected.numpy(), rtol=2e-4, atol=2e-5, err_msg=name
        )


def _naive(a: Any, b: Any) -> Any:
    """Each part becomes a whole tensor before it is added."""
    return _slices.whole(a) + _slices.whole(b)


SLICED: dict[str, Program] = {
    "windows": lambda x: sum((x[:, i : i + 2].sum() for i in range(x.shape[1] - 1)), x[0, 0]),
    "x[:, i]": lambda x: sum((x[:, i].sum() for i in range(x.shape[1])), x[0, 0].zeros()),
    "x[i]": lambda x: sum((row.sum() for row in x.permute_dims((1, 0))), x[0, 0].zeros()),
    "unstack": lambda x: sum((c.sum() for c in pt.unstack(x, axis=1)), x[0, 0].zeros()),
}


@pytest.mark.parametrize("name", SLICED)
def test_the_pass_over_many_slices_moves_elements_linearly(name: str) -> None:
    def elements(steps: int) -> int:
        inside = pt.Numpy(float="float64")
        counts: list[int] = []

        def counting(op: str) -> Any:
            entry = inside.entry(op)
            if entry is None or op in ("permute_dims", "reshape", "slice"):
                return entry

            def run(*args: Any) -> Any:
                out = entry(*args)
                counts.append(sum(a.size for a in (out if isinstance(out, tuple) else (out,))))
                return out

            return run

        device = _Watched(inside, counting)
        x = pt.ones((8, steps), dtype="float64", device=ad.Autodiff(device)).require_grad()
        loss = SLICED[name](x)
        counts.clear()
        gradient = x.grad(loss.backward())
        assert gradient is not None
        assert gradient.shape == x.shape
        return sum(counts)

    assert elements(200) < 2.2 * elements(100)


class _Watched(Backend):
    """NumPy with other entries."""

    name = "watched"

    def __init__(self, inside: Backend, entries: Callable[[str], Any]) -> None:
        self._inside, self._entries = inside, entries
        self.dtypes = inside.dtypes
        self.default_float = inside.default_float
        self.default_int = inside.default_int
        self.settings = (inside, id(entries))

    def entry(self, name: str) -> Any:
        return self._entries(name)

    def shape_of(self, primitive: Any, /) -> tuple[int, ...]:
        return self._inside.shape_of(primitive)

    def dtype_of(self, primitive: Any, /) -> pt.DType:
        return self._inside.dtype_of(primitive)

    def upload(self, array: Any, dtype: pt.DType, /) -> Any:
        return self._inside.upload(array, dtype)

    def read(self, primitive: Any, /) -> Any:
        return self._inside.read(primitive)


def test_a_nan_in_a_slice_is_found_backwards() -> None:
    x = pt.asarray([0.0, 1.0, 2.0], device=ad.Autodiff("numpy")).require_grad()
    with ad.detect_nan():
        loss = (x[0].sqrt() * 0.0 + x[1] + x[2]).sum()
        with pytest.raises(pt.GradientError, match="gives nan"):
            (loss + x[0].sqrt() * x[0]).sum().backward()
