"""The screen of ``phlox watch``, by a pilot: curves, keys, and what they ask of a run."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phlox._cli import main
from phlox_train.runs.control import NAME
from phlox_train.runs.lock import FolderLock
from phlox_train.show.view import views
from tests.train.loops import loop

pytest.importorskip("textual_plot", reason="an extra")

from textual.widgets import OptionList, SelectionList, Static
from textual_plot import PlotWidget

from phlox_train.show.watch import Watch, smoothed


def screen(folder: Path, body: Callable[[Any, Any], Any]) -> None:
    """Show the runs in a folder to a body that has the app and its pilot."""

    async def show() -> None:
        app = Watch([folder], views([folder]))
        async with app.run_test(size=(120, 36), notifications=True) as pilot:
            await drawn(app, pilot)
            await body(app, pilot)

    asyncio.run(show())


async def drawn(app: Any, pilot: Any) -> None:
    """Wait until the files are read and the plot is drawn."""
    await app.workers.wait_for_complete()
    await pilot.pause(0.1)


def data(app: Any) -> list[Any]:
    return [(each.x, each.y) for each in app.query_one(PlotWidget)._datasets]


def told(app: Any) -> list[str]:
    return [each.message for each in app._notifications]


@pytest.fixture
def two(tmp_path: Path) -> Path:
    loop(tmp_path / "a")
    loop(tmp_path / "b", epochs=2)
    return tmp_path


def test_curves_of_runs_lie_over_each_other(two: Path) -> None:
    async def body(app: Any, pilot: Any) -> None:
        assert app.query_one("#runs", SelectionList).option_count == 2
        assert [x.id for x in app.query_one("#curves", OptionList).options] == ["loss"]
        assert sorted(len(x) for x, _ in data(app)) == [2, 3, 8, 12]
        text = str(app.query_one("#note", Static).render())
        assert "a  train" in text
        assert "valid 2 (best 0 at 4)" in text
        await pilot.press("shift+tab", "space")  # to the list of runs, and hide the first
        await pilot.pause(0.1)
        assert sorted(len(x) for x, _ in data(app)) == [2, 8]

    screen(two, body)


def test_keys_turn_the_scale_the_axis_and_the_smoothing(two: Path) -> None:
    async def body(app: Any, pilot: Any) -> None:
        before = dict(enumerate(data(app)))
        await pilot.press("l")
        assert data(app)[0][1] == pytest.approx(np.log10(before[0][1]))
        assert "log scale" in str(app.query_one(PlotWidget).border_title)
        await pilot.press("l", "m")
        assert data(app)[0][1] == pytest.approx(smoothed(before[0][1], 0.6))
        await pilot.press("t")
        assert data(app)[0][0].max() < 60.0
        app.save_screenshot(str(two / "screen.svg"))

    screen(two, body)
    assert "seconds" in (two / "screen.svg").read_text()


def test_rows_and_runs_that_come_are_shown(two: Path) -> None:
    async def body(app: Any, pilot: Any) -> None:
        loop(two / "c", epochs=1)
        loop(two / "b")
        app._look()
        await drawn(app, pilot)
        assert app.query_one("#runs", SelectionList).option_count == 3
        assert sorted(len(x) for x, _ in data(app)) == [1, 3, 3, 4, 12, 12]

    screen(two, body)


def test_a_run_that_comes_or_goes_leaves_the_others_as_they_are(two: Path) -> None:
    async def body(app: Any, pilot: Any) -> None:
        runs = app.query_one("#runs", SelectionList)
        colors = {view.name: app._color(view) for view in app._views}
        await pilot.press("shift+tab", "space", "down")  # hide a, and go to b
        loop(two / "0", epochs=1)
        app._look()
        await drawn(app, pilot)
        assert [option.value.name for option in runs.options] == ["0", "a", "b"]
        assert {path.name for path in runs.selected} == {"0", "b"}
        assert sorted(len(x) for x, _ in data(app)) == [1, 2, 4, 8]
        after = {view.name: app._color(view) for view in app._views}
        assert {name: after[name] for name in colors} == colors
        assert len({*after.values()}) == 3
        await pilot.press("s")
        assert told(app) == ["b is done"]
        for name in ("0", "b"):
            shutil.rmtree(two / name)
        await pilot.press("s")  # before anybody looked
        app._look()
        await drawn(app, pilot)
        await pilot.press("s")
        assert told(app)[-1] == "a is done"
        assert [option.value.name for option in runs.options] == ["a"]
        assert not data(app)

    screen(two, body)


def test_a_second_press_ends_the_run_of_the_first_one_alone(two: Path) -> None:
    async def body(app: Any, pilot: Any) -> None:
        locks = [FolderLock(two / name) for name in ("a", "b")]
        await pilot.press("shift+tab", "k", "down", "k")
        assert not any((two / name / NAME).exists() for name in ("a", "b"))
        app._views.pop()  # it is gone, and the list does not say so yet
        await pilot.press("k")
        assert "b is gone" in told(app)[-1]
        for lock in locks:
            lock.close()

    screen(two, body)


def test_keys_ask_the_run_under_the_cursor(two: Path) -> None:
    async def body(app: Any, pilot: Any) -> None:
        await pilot.press("s")
        assert told(app) == ["a is done"]
        assert not (two / "a" / NAME).exists()
        lock = FolderLock(two / "a")  # as a run that goes on
        await pilot.press("s")
        assert (two / "a" / NAME).read_text() == "save"
        await pilot.press("k")
        assert (two / "a" / NAME).read_text() == "save"
        assert told(app)[-1] == "again, and a will stop after its step"
        await pilot.press("k")
        assert (two / "a" / NAME).read_text() == "stop"
        await pilot.press("e", "e")
        assert (two / "a" / NAME).read_text() == "end"
        lock.close()

    screen(two, body)


def test_a_log_that_is_damaged_is_told_and_ends_nothing(two: Path) -> None:
    async def body(app: Any, pilot: Any) -> None:
        log = two / "b" / "log.jsonl"
        whole = log.read_text()
        log.write_text(whole + "no row\n")
        app._look()
        await drawn(app, pilot)
        assert "log.jsonl is damaged" in str(app.query_one("#note", Static).render())
        log.write_text(whole)
        app._look()
        await drawn(app, pilot)
        assert "damaged" not in str(app.query_one("#note", Static).render())
        assert sorted(len(x) for x, _ in data(app)) == [2, 3, 8, 12]

    screen(two, body)


def test_no_run_and_no_library_are_clear_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["watch", str(tmp_path)]) == 2
    assert "no run is there" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "textual", None)
    assert main(["watch", str(tmp_path)]) == 2  # which no library would change
    assert "no run is there" in capsys.readouterr().err
    loop(tmp_path / "a", epochs=1)
    assert main(["watch", str(tmp_path)]) == 2
    assert 'pip install "phlox-train[watch]"' in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGSTOP")
def test_a_viewer_that_hangs_does_not_slow_a_run(tmp_path: Path) -> None:
    """One that was stopped while it had the files open."""
    loop(tmp_path / "a", epochs=1)
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from phlox_train.show.view import View\n"
        "from phlox_train.runs.lock import is_held\n"
        f"view = View(Path({str(tmp_path / 'a')!r})); view.read(); print(view.step, flush=True)\n"
        "files = [open(path, 'rb') for path in view.folder.iterdir() if path.is_file()]\n"
        "os.kill(os.getpid(), signal.SIGSTOP)\n"
    )
    path = os.pathsep.join([*sys.path, os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    viewer = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert viewer.stdout is not None
        assert viewer.stdout.readline() == "4\n"
        run, _ = loop(tmp_path / "a")
        assert (run.steps, run.reason) == (12, "done")
    finally:
        viewer.kill()
        viewer.communicate()
