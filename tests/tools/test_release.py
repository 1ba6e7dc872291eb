"""`./x release --dry-run`: its list goes on after a failure, and runs what the README shows."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tools import audit, release, setup, targets, versions, wheels
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


def test_the_upload_names_what_was_built_and_no_old_wheel_of_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    version = next(each.version for each in versions.released() if each.name == "phlox-kernels")
    audited: list[str] = []

    def add(tag: str, age: float, version: str = version) -> Path:
        file = tmp_path / f"phlox_kernels-{version}-cp311-abi3-{tag}.whl"
        file.touch()
        at = time.time() - age
        os.utime(file, (at, at))
        return file

    for step in ("_agree", "_install", "_program"):
        monkeypatch.setattr(release, step, lambda *_: None)
    monkeypatch.setattr(release, "_pythons", dict)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(wheels, "DIST", tmp_path)
    monkeypatch.setattr(wheels, "here", lambda: "linux-x86_64")
    monkeypatch.setattr(targets, "system", lambda: "linux")
    monkeypatch.setattr(setup, "own", lambda _: tmp_path)
    monkeypatch.setattr(audit, "audit", lambda files, _: audited.extend(map(str, files)))
    monkeypatch.setattr(versions, "changed", lambda _: time.time() - 3600)
    monkeypatch.setattr(release, "quick_start", str)
    own = add("manylinux2014_x86_64", 0)
    monkeypatch.setattr(wheels, "build", lambda _: ([own], []))
    windows = add("win_amd64", 60)
    add("manylinux2014_aarch64", 7200)
    add("macosx_11_0_arm64", 0, "0.0.1")
    web = add("pyodide_2024_0_wasm32", 60)
    assert release.release(["--dry-run"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == f"x: all of it holds: twine upload {own.name} {windows.name}"
    assert audited == [str(windows), str(web)]
    assert f"x: not to upload: {web.name}: {targets.TARGETS['pyodide'].apart}" in said
    absent = [line for line in said if "absent: phlox-kernels for " in line]
    assert len(absent) == 3
    assert "linux-arm64: older than its sources: ./x wheels linux-arm64" in absent[0]
    assert "macos-arm64: not built: ./x wheels macos-arm64" in absent[1]
    engines = [line for line in said if "absent: phlox-wgpu-engine for macos-" in line]
    assert len(engines) == 2
    assert all("on a Mac" in line for line in engines)
    monkeypatch.setattr(targets, "system", lambda: "macos")
    monkeypatch.setattr(wheels, "here", lambda: "macos-arm64")
    file = add("macosx_10_12_x86_64", 0)
    engine = file.rename(tmp_path / file.name.replace("kernels", "wgpu_engine"))
    assert engine in release._elsewhere()


def test_a_wheel_of_another_machine_is_no_wheel_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheels, "here", lambda: "linux-x86_64")
    windows = tmp_path / "phlox_kernels-0.2.0-cp311-abi3-win_amd64.whl"
    monkeypatch.setattr(wheels, "build", lambda _: ([windows], []))
    with pytest.raises(CommandError, match="the wheels were not built"):
        release._wheels([])


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
    assert release.needs("phlox") == {"ml-dtypes", "msgpack", "numpy"}
    assert release.needs("phlox-tensor") == {"numpy"}
