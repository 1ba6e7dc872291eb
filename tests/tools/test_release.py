"""`./x release --dry-run`: its list goes on after a failure, and runs what the README shows."""

from __future__ import annotations

import pytest

from tools import release
from tools.shell import CommandError, fail


def test_nothing_but_the_dry_run_is_there() -> None:
    with pytest.raises(CommandError, match=r"got nothing, expected --dry-run\nhint: \./x release"):
        release.release([])
    with pytest.raises(CommandError, match="got --upload"):
        release.release(["--upload"])


def test_the_example_of_the_readme_is_run() -> None:
    code = release.quick_start()
    assert "import phlox as px" in code
    assert "assert float(loss_of(model)) < 1e-2" in code
    compile(code, "README.md", "exec")


def test_every_line_is_tried_and_failures_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def refuse(*_: object) -> None:
        raise fail("no wheel", "./x wheels")

    monkeypatch.setattr(release, "_agree", lambda: ran.append("versions"))
    monkeypatch.setattr(release, "_wheels", refuse)
    monkeypatch.setattr(release, "_install", lambda *_: ran.append("install"))
    monkeypatch.setattr(release, "_program", lambda *words: ran.append(str(words[3])))
    assert release.release(["--dry-run"]) == 1
    assert ran == ["versions", "install", "-c", "-m", "-c", "-m"]
    assert "release: wheels are built and audited failed" in capsys.readouterr().out
