"""`./x test --browser`: what pages tell decides, and nothing is hidden."""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from tools import browser
from tools.shell import ROOT

END = {"event": "end"}


@pytest.mark.parametrize(
    ("told", "passed"),
    [
        ([{"event": "step", "loss": 2.0}, END], True),
        ([{"event": "conformance", "checks": 9, "failed": 0}, END], True),
        ([{"event": "conformance", "checks": 9, "failed": 1}, END], False),
        ([{"event": "conformance", "checks": 0, "failed": 0}, END], False),
        (
            [{"event": "trained", "accuracy": 0.88}, {"event": "loaded", "accuracy": 0.879}, END],
            True,
        ),
        ([{"event": "trained", "accuracy": 0.1}, {"event": "loaded", "accuracy": 0.1}, END], False),
        (
            [{"event": "trained", "accuracy": 0.88}, {"event": "loaded", "accuracy": 0.1}, END],
            False,
        ),
        ([{"event": "trained", "accuracy": False}, END], False),
        ([{"event": "check failed", "check": "add"}, END], False),
        ([{"event": "failed", "error": "no such file"}], False),
    ],
)
def test_a_page_passes_that_tells_of_no_failure(
    told: list[browser.Told], passed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    found: queue.Queue[browser.Told] = queue.Queue()
    for what in told:
        found.put(dict(what))
    assert browser.listen(found, lambda: True) == passed
    assert told[0]["event"] in capsys.readouterr().out


def test_a_page_that_says_nothing_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "POLL", 0.01)
    monkeypatch.setattr(browser, "SILENCE", 0.01)
    assert not browser.listen(queue.Queue(), lambda: True)


def test_a_browser_that_dies_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(browser, "POLL", 0.01)
    assert not browser.listen(queue.Queue(), lambda: False)
    assert "the browser ended" in capsys.readouterr().out


def test_a_word_that_names_no_page_is_told_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert browser.main(["gpu"]) == 1
    assert "got gpu, expected part of: conformance on Numpy, " in capsys.readouterr().err
    assert [*browser.chosen(["GPU"])] == ["kernels of the GPU", "the page on the GPU"]


def test_what_was_asked_for_and_cannot_run_has_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(browser, "which", lambda _: None)
    assert browser.main([]) == 1
    said = "[x] browser: no Chromium is installed\nhint: apt-get install chromium\n"
    assert capsys.readouterr().err == said


def test_a_browser_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "PATIENCE", 0.1)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    deaf += "print(1, flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()  # it hears no more
    browser.end(process)
    assert process.returncode == -signal.SIGKILL
    process.stdout.close()


def test_every_page_is_there_and_names_no_other_address() -> None:
    folders = (ROOT / "tests/browser/page", ROOT / "examples/browser/page")
    files = {file.name: file for folder in folders for file in folder.iterdir()}
    assert {urlsplit(address).path for address in browser.PAGES.values()} <= files.keys()
    texts = {name: file.read_text() for name, file in files.items() if file.is_file()}
    assert not [name for name, text in texts.items() if "http://" in text or "https://" in text]
