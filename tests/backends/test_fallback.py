"""A replay that fails where the function does not is told and counted, never passed over."""

from __future__ import annotations

from typing import Any

import pytest

import phlox as px
from phlox_fusion import compiled as _compile
from phlox_fusion.replay import halves as _join


def _broken(*given: Any) -> Any:
    """Stands in the place of a replay."""
    del given
    raise NameError("v3")


@pytest.fixture(params=["plain", "joined"])
def x(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> px.Tensor:
    """An argument, in a process in which no replay runs to its end."""
    for module, name in ((_compile, "replay_of"), (_join, "forward_of")):
        monkeypatch.setattr(module, name, lambda *_: (_broken, ""))
    if request.param == "plain":
        return px.ones(2)
    return px.ones(2, device=px.Autodiff("numpy")).require_grad()


def test_a_replay_that_fails_alone_is_one_warning_and_a_count(x: px.Tensor) -> None:
    seen = px.Cell(0)

    def double(x: px.Tensor) -> px.Tensor:
        seen.set(seen.get() + 1)
        return x * 2

    fast = px.compile(double)
    fast(x)
    fast(x)
    assert fast.fallbacks == 0
    with pytest.warns(
        UserWarning, match=r"double.*failed, a fault of phlox.*NameError: v3"
    ) as told:
        assert fast(x).tolist() == [2.0, 2.0]
    assert told[0].filename == __file__
    for count in (1, 1, 2):  # the fourth call runs the function itself, to compare it
        assert fast.fallbacks == count
        assert fast(x).tolist() == [2.0, 2.0]
    assert seen.get() == 6
    assert px.compile(double).fallbacks == 0


def test_check_mode_refuses_a_replay_that_fails_alone(x: px.Tensor) -> None:
    fast = px.compile(lambda x: x * 2, check=True)
    fast(x)
    fast(x)
    for _ in range(2):
        with pytest.raises(
            px.DisagreementError, match="a replay failed where the function"
        ) as caught:
            fast(x)
        assert isinstance(caught.value.__cause__, NameError)


def test_an_error_of_the_function_is_no_fallback() -> None:
    fast = px.compile(lambda x, i: px.take(x, i, axis=0))
    good, bad = px.asarray([0, 2]), px.asarray([0, 9])
    for at in (good, good, good, bad, bad, good):
        if at is good:
            fast(px.ones(3), at)
        else:
            with pytest.raises(px.IndexOutOfRangeError):
                fast(px.ones(3), at)
    assert fast.fallbacks == 0
