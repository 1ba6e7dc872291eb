"""`./x wheels`: its table of targets, what it says of one that it cannot build, its files."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tools import side_module, versions, wheels
from tools.commands import main
from tools.shell import CommandError, fail
from tools.targets import TARGETS, Compiler, chosen, compiler, reason
from tools.versions import Project

MAC = TARGETS["macos-arm64"]


def library(root: Path) -> None:
    (root / "lib" / "rustlib" / MAC.triple / "lib").mkdir(parents=True)


def test_every_target_has_a_triple_and_a_tag_of_its_own() -> None:
    assert {"linux-arm64", "linux-x86_64", "macos-arm64", "windows-x86_64"} <= set(TARGETS)
    for column in ("triple", "tag"):
        assert len({getattr(target, column) for target in TARGETS.values()}) == len(TARGETS)
    for name, target in TARGETS.items():
        processor = name.partition("-")[2].replace("arm64", "aarch64")
        assert target.triple.startswith(processor)


def test_an_unknown_target_is_told_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wheels", "linux-riscv"]) == 1
    assert "wheels: got linux-riscv, expected linux-x86_64, linux-arm64" in capsys.readouterr().err
    assert chosen([]) == dict(TARGETS)


def test_a_target_without_its_library_is_left_out_with_the_line_that_brings_it(
    tmp_path: Path,
) -> None:
    with pytest.raises(CommandError) as caught:
        compiler(MAC, tmp_path, tmp_path)
    assert reason(caught.value) == (
        "Rust's library for aarch64-apple-darwin is missing "
        "hint: rustup target add aarch64-apple-darwin  (on Debian also: ./x wheels --fetch)"
    )


def test_a_compiler_is_taken_where_it_has_the_library_or_its_sources(tmp_path: Path) -> None:
    fetched = tmp_path / "fetched"
    fetched.mkdir()
    (fetched / "rustc").touch()
    from_sources = compiler(MAC, tmp_path, fetched)
    assert from_sources.settings["RUSTC"] == str(fetched / "rustc")
    assert from_sources.options == ("-Z", "build-std=std,panic_unwind")
    library(fetched / "root" / "usr")
    assert compiler(MAC, tmp_path, fetched).options == ()
    library(tmp_path)
    assert compiler(MAC, tmp_path, fetched).settings == {}


def test_a_wheel_takes_the_place_of_the_older_one_of_its_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dist, out = tmp_path / "dist", tmp_path / "out"
    dist.mkdir()
    out.mkdir()
    monkeypatch.setattr(wheels, "DIST", dist)
    for kept in ("phlox_nn-0.1.0-py3-none-any.whl", "phlox_kernels-0.1.0-cp311-abi3-win_amd64.whl"):
        (dist / kept).touch()
    (dist / f"phlox_kernels-0.1.0-cp311-abi3-{MAC.tag}.whl").touch()
    new = out / f"phlox_kernels-0.2.0-cp311-abi3-{MAC.tag}.whl"
    with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("code", bytes(100_000))
    there = wheels._only(out, MAC.tag)
    assert sorted(dist.glob("*kernels*")) == [
        dist / "phlox_kernels-0.1.0-cp311-abi3-win_amd64.whl",
        there,
    ]
    assert wheels.size(there).packed < 1000 < wheels.size(there).unpacked == 100_000
    new.touch()
    with pytest.raises(CommandError, match=r"got phlox_kernels-0\.2\.0.*, expected win_amd64"):
        wheels._only(out, "win_amd64")


def test_a_name_with_a_dot_that_maturin_exports_is_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(wheels, "_BUILDS", tmp_path)
    monkeypatch.setattr(wheels, "run", lambda *words, **_: ran.append([str(w) for w in words]))
    monkeypatch.setattr(wheels, "_only", lambda out, _: out)
    monkeypatch.setattr(wheels, "_need_entry", lambda _: None)
    kernels = next(each for each in versions.released() if each.name == "phlox-kernels")
    out = wheels.native(kernels, TARGETS["windows-x86_64"], Compiler({}), "windows", tmp_path)
    compiled, built = ran
    source = (out / "dotted.c").read_text()
    assert '__asm__("PyInit_phlox_kernels._native")' in source
    assert '.ascii \\" -export:PyInit__native\\"' in source
    assert compiled[-3:] == [str(out / "dotted.c"), "-o", str(out / "dotted.o")]
    assert built[-4:] == ["-C", f"link-arg=-L{out}", "-C", f"link-arg={out / 'dotted.o'}"]
    assert (out / "libssp.a").is_file()
    ran.clear()
    wheels.native(kernels, MAC, Compiler({}), "macos", tmp_path)
    assert len(ran) == 1
    assert "link-arg" not in " ".join(ran[0])


def test_a_wheel_that_python_cannot_import_is_refused(tmp_path: Path) -> None:
    for exported in ("PyInit__native", "PyInit_phlox_kernels._native"):
        with zipfile.ZipFile(tmp_path / exported, "w") as archive:
            archive.writestr("phlox_kernels/_native.pyd", f"MZ\0{exported}\0")
            archive.writestr("phlox_kernels/_native.pyi", "")
    wheels._need_entry(tmp_path / "PyInit__native")
    with pytest.raises(CommandError, match=r"_native\.pyd has no PyInit__native to import it by"):
        wheels._need_entry(tmp_path / "PyInit_phlox_kernels._native")


def test_every_native_package_is_built_but_where_its_system_alone_links_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, str]] = []

    def native(project: Project, _target: object, _how: object, name: str, _tools: object) -> Path:
        asked.append((project.name, name))
        if name.startswith("windows"):
            raise fail("it does not link", "./x wheels")
        return tmp_path

    monkeypatch.setattr(wheels, "system", lambda: "linux")
    monkeypatch.setattr(wheels, "native", native)
    monkeypatch.setattr(wheels, "pure", list)
    for name in ("print_table", "audit"):
        monkeypatch.setattr(wheels, name, lambda *_: None)
    monkeypatch.setattr("tools.setup.own", lambda _: tmp_path)
    monkeypatch.setattr(wheels, "read", lambda *_: "")
    monkeypatch.setattr("tools.targets.compiler", lambda *_: None)
    names = ["linux-x86_64", "macos-arm64", "windows-x86_64"]
    assert wheels.wheels(names) == 1
    both = [(package, name) for name in names for package in ("phlox-kernels", "phlox-wgpu-engine")]
    assert asked == [pair for pair in both if pair != ("phlox-wgpu-engine", "macos-arm64")]
    said = capsys.readouterr().out
    assert "not built: phlox-wgpu-engine for macos-arm64: it links Apple's Metal" in said
    failed = "phlox-kernels for windows-x86_64, phlox-wgpu-engine for windows-x86_64"
    assert f"wheels failed: {failed}" in said
    asked.clear()
    assert wheels.build(["linux-x86_64"], left_out=("phlox-wgpu-engine",))[1] == []
    assert asked == both[:1]

    def lacking(*_: object) -> Compiler:
        raise fail("Rust's library is missing", "rustup target add")

    monkeypatch.setattr("tools.targets.compiler", lacking)
    assert wheels.wheels(["linux-x86_64"]) == 1
    assert wheels.wheels([]) == 0  # what none named is left out


def test_what_emcc_is_told_becomes_what_the_linker_of_webassembly_is_told(tmp_path: Path) -> None:
    listed = tmp_path / "args"
    listed.write_text('"a.o"\n-lc\nlibstd.rlib\n-sSIDE_MODULE=2\n')
    words = side_module.arguments([f"@{listed}", "-o", "out.wasm", "-L", "lib", "-Wl,--fatal"])
    assert words[-4:] == ["-o", "out.wasm", "a.o", "libstd.rlib"]
    assert "--export=PyInit__native" in words
    assert not {"-lc", "-sSIDE_MODULE=2", "-L", "lib"} & {*words}
