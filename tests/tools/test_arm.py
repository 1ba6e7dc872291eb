"""What crossing over to ARM lacks is told with the command that installs it."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from tools import arm, debian, setup
from tools.arm import require
from tools.check import for_arm
from tools.shell import CommandError, fail
from tools.targets import TARGETS, Compiler

TARGET = TARGETS["linux-arm64"].triple


def test_each_part_that_is_missing_is_told(tmp_path: Path) -> None:
    there: set[str] = set()

    def find(name: str) -> str | None:
        return name if name in there else None

    def told() -> str:
        with pytest.raises(CommandError) as caught:
            require(find, tmp_path, tmp_path)
        return str(caught.value)

    assert "qemu-user" in told()
    there.add("qemu-aarch64")
    assert "qemu-x86_64" in told()
    there.add("qemu-x86_64")
    assert "apt-get is missing" in told()
    there.add("apt-get")
    assert f"rustup target add {TARGET}" in told()
    (tmp_path / "lib" / "rustlib" / TARGET / "lib").mkdir(parents=True)
    assert require(find, tmp_path, tmp_path) == Compiler({})


def test_what_is_missing_fails_only_where_arm_was_asked_for_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(arm, "which", lambda _: None)
    monkeypatch.setattr(arm, "read", lambda *_: "")
    assert arm.main() == 1
    assert arm.main(asked=False) == 0
    named, whole = capsys.readouterr().err.splitlines()
    assert named == "arm: the emulator is missing: qemu-aarch64 hint: apt-get install qemu-user"
    assert whole == named.replace("arm: ", "arm: skipped: ")


def test_a_fetch_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = "update"

    def run(*words: object, **_: object) -> None:
        if failing in words:
            raise fail("a program failed", str(failing))
        if "download" in words:
            (tmp_path / "new/files/python.deb").touch()
        if "dpkg" in words:
            assert isinstance(words[-1], Path)
            (words[-1] / "usr").mkdir()

    monkeypatch.setattr(debian, "which", str)
    monkeypatch.setattr(debian, "run", run)
    with pytest.raises(CommandError):
        debian.fetch(("python3",), tmp_path)
    assert not (tmp_path / "root").exists()
    (tmp_path / "root/old").mkdir(parents=True)
    failing = "dpkg"
    with pytest.raises(CommandError):
        debian.fetch(("python3",), tmp_path)
    assert (tmp_path / "root/old").is_dir()
    failing = ""
    assert debian.fetch(("python3",), tmp_path) == tmp_path / "root"
    assert [file.name for file in tmp_path.iterdir()] == ["root"]
    assert [file.name for file in (tmp_path / "root").iterdir()] == ["usr"]


def test_check_compiles_for_arm_where_rust_can_or_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert for_arm(tmp_path) == []
    assert f"rustup target add {TARGET}" in capsys.readouterr().out
    (tmp_path / "lib" / "rustlib" / TARGET / "lib").mkdir(parents=True)
    (step,) = for_arm(tmp_path)
    assert TARGET in step.command
    assert not capsys.readouterr().out


def test_each_way_is_run_on_a_processor_that_has_it_and_on_one_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[dict[str, str], tuple[str, ...]]] = []

    def call(*words: str, venv: Path, extra: dict[str, str]) -> int:
        assert venv == tmp_path  # where Zig is
        ran.append((extra, words))
        return len(ran) % 2

    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(arm, "_FOLDER", tmp_path)
    monkeypatch.setattr(debian, "fetch", lambda *_: tmp_path)
    monkeypatch.setattr(setup, "own", lambda _: tmp_path)
    monkeypatch.setattr(arm, "_wheel", lambda _: len(ran))  # comes first
    monkeypatch.setattr(arm, "call", call)
    assert (
        arm.arm(Compiler({"RUSTC": "other"}, ("-Z", "std"))) == 1
    )  # of some runs, and the others go on
    (with_all, all_tests), (without, some_tests), (older, older_tests) = ran
    runner = next(name for name in with_all if name.endswith("_RUNNER"))
    assert "-cpu max" in with_all[runner]
    assert with_all["PHLOX_TEST_HAS"] == "bf16,dotprod"
    assert with_all["RUSTC"] == "other"
    assert "zig cc" in Path(with_all[runner.replace("RUNNER", "LINKER")]).read_text()
    assert all_tests[-1] == "--"
    assert "-cpu cortex-a72" in without[runner]
    assert without["PHLOX_TEST_HAS"] == ""
    assert "ops::contraction" in some_tests
    assert older["CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER"] == "qemu-x86_64 -cpu Haswell"
    assert older["PHLOX_TEST_HAS"] == ""
    assert "RUSTC" not in older
    assert "ops::contraction" in older_tests
    assert older_tests[older_tests.index("--skip") + 1].startswith("contraction::tests::")
