"""`./x` itself: its list of commands, what it says when something is missing, its stamps."""

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import NoReturn

import pytest

from tools import commands, setup, shell
from tools.commands import COMMANDS, main
from tools.shell import ROOT, CommandError


def run_x(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "x"), *words]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.fixture
def launcher() -> Callable[[], object]:
    """The function that `./x` starts with."""
    spec = spec_from_loader("x", SourceFileLoader("x", str(ROOT / "x")))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[[], object] = module.main
    return function


def test_help_lists_every_command_with_a_sentence() -> None:
    done = run_x()
    assert done.returncode == 0
    for name, function in COMMANDS.items():
        assert function.__doc__
        assert f"  {name:<8} {function.__doc__.splitlines()[0]}" in done.stdout


def test_an_unknown_command_is_told_the_known_ones() -> None:
    done = run_x("tset")
    assert done.returncode == 2
    assert "got tset, expected one of setup, demo, test" in done.stdout


def test_an_unknown_argument_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lock", "--fast"]) == 1
    assert "lock: got --fast, expected no arguments\nhint: " in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--vs", "jax,torch"], ["--vs=onnxruntime"], ["--vs", "torch"]])
def test_benchmarks_beside_others_run_where_these_are(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[object] = []

    def called(program: object, *_: object) -> int:
        ran.append(program)
        return 0

    monkeypatch.setattr(setup, "setup", lambda: None)
    monkeypatch.setattr(setup, "peers", lambda: "of the peers")
    monkeypatch.setattr(commands, "call", called)
    assert main(["bench", "compile", *words]) == 0
    assert main(["bench", "compile"]) == 0
    assert ran[0] == "of the peers" != ran[1]


def test_an_old_python_without_a_newer_one_says_so(
    launcher: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 2, "final", 0))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match=r"got 3\.9\.2, expected 3\.11 or newer\nhint: "):
        launcher()


def test_an_old_python_hands_over_to_a_newer_one(
    launcher: Callable[[], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    newer = tmp_path / "python3.12"
    newer.write_text("#!/bin/sh\n")
    newer.chmod(0o755)
    started = []

    def execv(program: str, words: list[str]) -> NoReturn:
        started.append((program, words[0]))
        raise SystemExit(0)

    monkeypatch.setattr(sys, "version_info", (3, 9, 2, "final", 0))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "execv", execv)
    with pytest.raises(SystemExit):
        launcher()
    assert started == [(str(newer), str(newer))]


def test_without_cargo_setup_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(setup, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(setup, "which", lambda _name: None)
    with pytest.raises(CommandError, match=r"\[x\] cargo is missing: [^\n]*\nhint: install Rust"):
        setup.setup()


def test_a_linked_environment_is_used_as_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = tmp_path / ".venv"
    link.symlink_to(tmp_path, target_is_directory=True)
    monkeypatch.setattr(setup, "VENV", link)
    monkeypatch.setattr(setup, "bootstrap_uv", lambda: pytest.fail("installs into a link"))
    setup.setup()
    assert capsys.readouterr().out == "x: .venv is a link: using that environment as it is\n"


def test_a_failing_program_is_an_error_with_its_status() -> None:
    code = "import sys; sys.exit(7)"
    with pytest.raises(CommandError, match="exit status 7\nhint: "):
        shell.run(sys.executable, "-c", code)
    assert shell.call(sys.executable, "-c", code) == 7


def test_a_missing_program_is_an_error() -> None:
    with pytest.raises(CommandError, match="a program is missing: no-such-program"):
        shell.run("no-such-program")


def test_programs_see_our_tools_first_and_nothing_of_the_callers_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    env = shell.environment()
    assert env["PATH"].split(os.pathsep)[0] == str(shell.script("python").parent)
    assert "PYTHONPATH" not in env


def test_a_stamp_holds_until_an_input_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shell, "STAMPS", tmp_path / "stamps")
    monkeypatch.setattr(shell, "ROOT", tmp_path)
    file = tmp_path / "input"
    file.write_text("one")
    before = shell.digest([file])
    assert not shell.fresh("step", before)
    shell.stamp("step", before)
    assert shell.fresh("step", shell.digest([file]))
    file.write_text("two")
    assert not shell.fresh("step", shell.digest([file]))


def test_the_bootstrap_needs_only_the_standard_library() -> None:
    """A bare machine runs `./x help` with no site-packages at all."""
    command = [sys.executable, "-I", "-S", str(ROOT / "x"), "help"]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
