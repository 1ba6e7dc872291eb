"""`./x release --dry-run`: its list goes on after a failure, and runs what the README shows."""

from __future__ import annotations

from pathlib import Path

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
    monkeypatch.setattr(release, "_pythons", lambda: {"3.12": Path("python3.12")})
    monkeypatch.setattr(release, "_on_another", lambda program, _: ran.append(program.name))
    monkeypatch.setattr(release, "_program", lambda *words: ran.append(str(words[3])))
    assert release.release(["--dry-run"]) == 1
    assert ran == ["versions", "install", "-c", "-m", "-c", "-m", "python3.12"]
    assert "release: wheels are built and audited failed" in capsys.readouterr().out


def test_a_python_that_only_says_what_to_install_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, status in (("python9.1", 0), ("python9.2", 127)):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {status}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(release, "PYTHONS", ("9.1", "9.2", "9.3"))
    assert release._pythons() == {"9.1": tmp_path / "python9.1"}
    said = capsys.readouterr().out
    assert said.count("not run: Python") == 2
    assert "9.2: no python9.2 in PATH" in said


def test_what_phlox_needs_of_others_is_found_through_ours() -> None:
    assert release._needs("phlox") == {"ml-dtypes", "msgpack", "numpy"}
    assert release._needs("phlox-tensor") == {"numpy"}
