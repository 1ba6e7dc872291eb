"""Arguments of wrong types to what packages export: errors of phlox, that say what to type."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest

import phlox as px
import phlox_autodiff
import phlox_data
import phlox_distributed
import phlox_fusion
import phlox_optim
import phlox_record
import phlox_text
import phlox_train
from phlox import nn, optim
from phlox_autodiff import Autodiff
from phlox_tensor import Backend, PhloxError, Tensor
from phlox_tensor.arguments import RAW

X = px.ones((2, 3), device="numpy")
LAYER = nn.Linear(3, 2, device=Autodiff("numpy"))
WRONG: list[Any] = [None, "text", 2.5, 10**30, object(), {"a": 1}, b"x", np.ones(3), "\0", [X]]
SPACES = [
    phlox_autodiff,
    phlox_data,
    phlox_distributed,
    phlox_fusion,
    phlox_optim,
    phlox_record,
    phlox_text,
    phlox_train,
]
# What Python itself says, and says well.
SAID = (
    "missing",
    "positional argument",
    "abstract class",
    "Protocols",
    "takes no arguments",
)
# Made by passes and drawings alone, from what nobody else has.
# Rules is a dict with types, and has no constructor of its own.
INNER = {"Gradients", "Graph", "Rules", "Saving"}


def functions(space: ModuleType) -> list[Any]:
    found: dict[str, Callable[..., Any]] = {}
    for name in dir(space):
        member = getattr(space, name)
        own = getattr(member, "__module__", "").partition(".")[0] == space.__name__
        if name.startswith("_") or not own or not callable(member) or name in INNER:
            continue
        if not isinstance(member, type):
            found[name] = member
        elif not issubclass(member, Backend | BaseException):
            found[name] = member
            for method, function in inspect.getmembers(member, inspect.ismethod):
                if not method.startswith("_"):
                    found[f"{name}.{method}"] = function  # a classmethod
    return [pytest.param(f, id=f"{space.__name__}.{n}") for n, f in sorted(found.items())]


def needed(function: Callable[..., Any]) -> int:
    parameters = inspect.signature(function).parameters.values()
    return sum(p.default is p.empty and p.kind < p.VAR_POSITIONAL for p in parameters)


def raised(function: Callable[..., Any], given: list[Any]) -> Exception | None:
    try:
        function(*given)
    except (PhloxError, *RAW, OSError) as error:
        return error
    return None


def is_said(error: BaseException) -> bool:
    """Whether an error is one of phlox, or of Python about the call itself."""
    if isinstance(error, PhloxError | OSError) or str(error).startswith("["):
        return True
    return isinstance(error, TypeError) and any(word in str(error) for word in SAID)


@pytest.mark.filterwarnings("ignore:.*the block was never entered:RuntimeWarning")
@pytest.mark.parametrize("function", [f for space in SPACES for f in functions(space)])
def test_nothing_public_fails_in_words_of_python(
    function: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for wrong in WRONG:
        for rest in (X, LAYER, wrong):
            for place in range(max(needed(function), 1)):
                given = [wrong if i == place else rest for i in range(max(needed(function), 1))]
                error = raised(function, given)
                assert error is None or is_said(error), (function, given, error)


OPTIMIZER = optim.AdamConfig().init()
TABLE: list[tuple[str, Callable[[], Any], str]] = [
    ("a device that is none", lambda: Tensor([1, 2], "cpu"), r"hint: px.asarray\("),  # type: ignore[arg-type]
    ("a loss without prediction", lambda: nn.MseLoss()(None, X), "expected Tensor"),  # type: ignore[arg-type]
    ("a layer on an array", lambda: nn.Conv2d(1, 1, (3, 3))(np.ones(3)), "expected a Tensor"),  # type: ignore[arg-type]
    ("a kernel of a class", lambda: px.kernel(dict), "a function of elements"),  # type: ignore[arg-type]
    ("a rule that is none", lambda: optim.OptimizerAdaptor("adam"), "hint: optim.Adam"),  # type: ignore[arg-type]
    ("a schedule that is none", lambda: optim.Scheduler(0.1), "init\\(\\)"),  # type: ignore[arg-type]
    ("a tensor for entries", lambda: phlox_record.Keyed(X), "hint: px.record.Keyed"),  # type: ignore[arg-type]
    ("an entry of a list", lambda: phlox_record.TensorEntry.from_numpy([1]), "array"),  # type: ignore[arg-type]
    ("a config without init", lambda: optim.ClipByNorm(1.0).init(), "describes no module"),
    ("a path with NUL", lambda: optim.AdamConfig().save("\0"), "NUL"),
    ("updates of no module", lambda: nn.Updates().apply({}), "not a module"),  # type: ignore[type-var]
    ("a shape beyond memory", lambda: px.zeros((10**12, 10**12)), "too many elements"),
    ("a size beyond 64 bits", lambda: X.tile((10**30,)), "too many elements"),
    ("no graph", px.graph, "hint: px.graph"),
]


@pytest.mark.parametrize(("run", "text"), [pytest.param(c, m, id=i) for i, c, m in TABLE])
def test_the_error_says_what_to_type(run: Callable[[], Any], text: str) -> None:
    with pytest.raises(PhloxError, match=text):
        run()


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_integers_beyond_64_bits_stand_beside_floats(device: str) -> None:
    x, number = px.ones(2, device=device), cast("Tensor", 10**30)
    assert (x + 10**30).tolist() == pytest.approx([1e30, 1e30])
    assert (x < 10**30).tolist() == [True, True]
    assert px.elu(number).item() == pytest.approx(1e30)


def test_errors_in_modules_of_users_stay_as_they_are() -> None:
    class Odd(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Odd()("text")  # type: ignore[arg-type]
