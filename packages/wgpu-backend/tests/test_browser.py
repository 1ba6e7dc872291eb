"""Calls of Python in a page, of which one begins while another one waits for the GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from phlox_tensor import DeviceError
from phlox_wgpu.browser import lock as module
from phlox_wgpu.browser.lock import Lock


class Held(Exception):
    """A call is suspended until another one goes on."""


class Promise:
    """What a call waits for; another call begins meanwhile."""

    def __init__(self, meanwhile: Callable[[], Any]) -> None:
        self.meanwhile = meanwhile

    def catch(self, _: object) -> Promise:
        """What the other call waits for, to go on behind this one."""

        def held() -> None:
            raise Held

        return Promise(held)


class Page:
    """What Pyodide gives; `waits` says whether calls may wait."""

    waits = True

    def can_run_sync(self) -> bool:
        return self.waits

    def run_sync(self, promise: Promise) -> Any:
        return promise.meanwhile()


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Page:
    found = Page()
    monkeypatch.setattr(module, "ffi", lambda: found)
    return found


def test_a_call_that_waits_with_the_lock_holds_another_one_off(page: Page) -> None:
    lock = Lock()

    def other() -> None:
        with lock:
            raise AssertionError("two calls hold the lock")

    with lock, lock, pytest.raises(Held):  # its holder takes it again
        lock.wait(Promise(other))
    page.waits = False
    with lock, pytest.raises(DeviceError, match=r"another call .* waits for the GPU"):
        lock.wait(Promise(other))


def test_a_call_that_waits_without_the_lock_lets_another_one_go_on(page: Page) -> None:
    lock = Lock()

    def other() -> str:
        with lock:
            return "done"

    assert lock.wait(Promise(other)) == "done"
    with lock:
        assert lock.wait(Promise(lambda: 3)) == 3
    assert other() == "done"  # what held it off is over


def test_a_call_that_waits_without_the_lock_leaves_it_to_its_holder(page: Page) -> None:
    lock = Lock()

    def third() -> None:
        with lock:
            raise AssertionError("two calls hold the lock")

    def other() -> None:
        assert lock.wait(Promise(lambda: 3)) == 3  # as Wgpu.describe() waits
        third()

    with lock, pytest.raises(Held):
        lock.wait(Promise(other))
