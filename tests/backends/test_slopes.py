"""The table of slopes in docs/numerics.md, run: first and second derivatives at kinks and ends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

import phlox as px
from phlox import Backend, Cpu, Numpy, Wgpu
from tests.backends.slope_calls import ELSEWHERE

PAGE: Final = Path(__file__).parents[2] / "docs/numerics.md"
_ROW: Final = re.compile(r"^\| `([^`]*)` \|" + r" ([^|]*) \|" * 7 + "$", re.MULTILINE)
# What LAPACK alone computes, other devices leave to the host.
_HOSTED: Final = ("px.linalg.det", "px.linalg.svdvals")
DEVICES: Final = {"cpu": Cpu(), "numpy": Numpy(), "numpy64": Numpy(float="float64"), "wgpu": Wgpu()}

Pair = tuple[Any, Any]  # the first derivative and the second; None where there is none


class Row(NamedTuple):
    """A row of the table: slopes and bends of ours, of PyTorch's and of JAX's."""

    function: str
    at: str
    ours: tuple[str, str]
    torch: tuple[str, str]
    jax: tuple[str, str]

    @property
    def points(self) -> list[float]:
        return [] if self.at == "none" else [float(word) for word in self.at.split()]


def _rows() -> list[Row]:
    found = []
    for name, at, *cells in _ROW.findall(PAGE.read_text(encoding="utf-8")):
        found.append(Row(name, at, *zip(cells[::2], cells[1::2], strict=True)))
    return found


ROWS: Final = _rows()
IDS: Final = [f"{row.function} at {row.at}" for row in ROWS]


def written(pair: Pair) -> tuple[str, str]:
    """Derivatives as the table shows them."""
    return _text(pair[0]), _text(pair[1])


def _text(values: Any) -> str:
    if values is None:
        return "–"
    # Rounding leaves next to nothing of what is 0; zeros have no sign in the table.
    numbers = [0.0 if abs(v) < 1e-12 else float(v) for v in np.asarray(values).ravel()]
    return " ".join(f"{v:.4g}" for v in numbers) or "none"


def OURS(function: str, points: list[float], device: Backend) -> Pair:
    x = px.asarray(points, dtype=device.default_float, device=device)
    run = eval(f"lambda x: {function}", {"px": px})

    def slope(x: Any) -> Any:
        return px.grad(lambda x: run(x).sum())(x)

    return slope(x).numpy(), px.grad(lambda x: slope(x).sum())(x).numpy()


def TORCH(function: str, points: list[float]) -> Pair:
    import torch  # pyright: ignore[reportMissingImports]

    x = torch.tensor(points, dtype=torch.float64, requires_grad=True)
    names = {"t": torch, "f": torch.nn.functional}
    y = eval(f"lambda x: {function}", names)(x).sum()
    try:
        (first,) = torch.autograd.grad(y, x, create_graph=True)
    except RuntimeError:  # at no elements
        return None, None
    try:
        (second,) = torch.autograd.grad(first.sum(), x)
    except RuntimeError:  # the slope is a constant to PyTorch
        second = None
    return first.detach().numpy(), None if second is None else second.numpy(force=True)


def JAX(function: str, points: list[float]) -> Pair:
    import jax  # pyright: ignore[reportMissingImports]
    import jax.numpy as jnp  # pyright: ignore[reportMissingImports]

    with jax.enable_x64(True):
        run = eval(f"lambda x: {function}", {"j": jnp, "jax": jax})

        def slope(x: Any) -> Any:
            return jax.grad(lambda x: run(x).sum())(x)

        x = jnp.asarray(points, dtype=jnp.float64)
        return np.asarray(slope(x)), np.asarray(jax.grad(lambda x: slope(x).sum())(x))


def test_every_function_of_the_table_is_written_for_others_too() -> None:
    assert {row.function for row in ROWS} == {*ELSEWHERE}
    assert len(ROWS) > 50


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_slopes_are_those_of_the_table(row: Row, device: Backend) -> None:
    if not isinstance(device, Cpu | Numpy) and row.function.startswith(_HOSTED):
        with pytest.raises(px.BackendUnavailableError):
            OURS(row.function, row.points, device)
        return
    for found, cell in zip(OURS(row.function, row.points, device), row.ours, strict=True):
        wanted = [] if cell == "none" else [float(word) for word in cell.split()]
        close = 1e-3 if device is not DEVICES["numpy64"] else 1e-4
        np.testing.assert_allclose(found, wanted, rtol=close, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_the_table_says_what_others_give(row: Row) -> None:
    pytest.importorskip("torch", reason="PyTorch comes with --long")
    pytest.importorskip("jax", reason="JAX comes with --long")
    torch, jax = ELSEWHERE[row.function]
    assert row.torch == (written(TORCH(torch, row.points)) if torch else ("–", "–"))
    assert row.jax == (written(JAX(jax, row.points)) if jax else ("–", "–"))
