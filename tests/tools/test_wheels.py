"""`./x wheels`: its table of targets, what it says of one that it cannot build, its files."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

import pytest

from tools import audit, parts, side_module, tags, targets, versions, wheels
from tools.commands import main
from tools.shell import ROOT, CommandError, fail
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
    monkeypatch.setattr(wheels, "_only", lambda out, *_: out)
    monkeypatch.setattr(parts, "library", lambda _: [])
    monkeypatch.setattr(parts, "LICENSES", str(tmp_path / parts.LICENSES))
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


def test_a_build_has_the_flags_of_its_target_and_names_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[dict[str, str]] = []
    monkeypatch.setattr(wheels, "_BUILDS", tmp_path)
    monkeypatch.setattr(wheels, "run", lambda *_, extra, **__: told.append(extra))
    monkeypatch.setattr(wheels, "_only", lambda out, *_: out)
    monkeypatch.setattr(parts, "library", lambda _: [])
    monkeypatch.setattr(parts, "LICENSES", str(tmp_path / parts.LICENSES))
    kernels = next(each for each in versions.released() if each.name == "phlox-kernels")
    wheels.native(kernels, TARGETS["pyodide"], Compiler({}), "pyodide", tmp_path)
    flags = told[0]["CARGO_ENCODED_RUSTFLAGS"].split("\x1f")
    assert flags[:2] == ["-C", "relocation-model=pic"]
    assert f"--remap-path-prefix={ROOT}=phlox" in flags


def test_a_wheel_with_another_tag_says_so_inside_too(tmp_path: Path) -> None:
    old, new = TARGETS["pyodide"].first, TARGETS["pyodide"].tag
    assert new.startswith("pyodide_2024_0")  # what Pyodide 0.27 installs
    wheel = tmp_path / f"phlox_kernels-1-cp311-abi3-{old}.whl"
    said, info = f"Tag: cp311-abi3-{old}\n", "phlox_kernels-1.dist-info"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("phlox_kernels/_native.abi3.so", b"\0asm")
        archive.writestr(f"{info}/WHEEL", said)
        archive.writestr(f"{info}/RECORD", f"{info}/WHEEL,sha256=old,5\n{info}/RECORD,,\n")
    with pytest.raises(CommandError, match="expected manylinux"):
        tags.retag(wheel, "manylinux", new)
    made = tags.retag(wheel, old, new)
    assert [*tmp_path.iterdir()] == [made]
    assert made.name == f"phlox_kernels-1-cp311-abi3-{new}.whl"
    with zipfile.ZipFile(made) as archive:
        assert archive.read("phlox_kernels/_native.abi3.so") == b"\0asm"
        written = archive.read(f"{info}/WHEEL")
        record = archive.read(f"{info}/RECORD").decode()
    assert written.decode() == said.replace(old, new)
    total = base64.urlsafe_b64encode(hashlib.sha256(written).digest()).decode().rstrip("=")
    line = f"{info}/WHEEL,sha256={total},{len(written)}"
    assert record == f"{line}\n{info}/RECORD,,\n"


def made(place: Path, **files: bytes | str) -> Path:
    with zipfile.ZipFile(place, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"package/{name.replace('__', '.')}", text)
    return place


def test_a_wheel_exports_what_python_calls_and_nothing_besides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = made(tmp_path / "phlox_kernels-1", _native__pyd=b"MZ", _native__pyi="")
    for exported, wrong in (
        ("PyInit__native", ""),
        ("PyInit__native PyInit_phlox_kernels._native", ""),
        ("", "exports nothing, expected PyInit__native"),
        ("PyInit_phlox_kernels._native", "exports PyInit_phlox_kernels._native, expected"),
        ("PyInit__native memcpy", "exports memcpy, expected PyInit__native alone"),
        ("PyInit__native PyInit_other._native", r"exports PyInit_other\._native, expected"),
    ):
        monkeypatch.setattr(audit, "read", lambda *_, told=exported, **__: told)
        if wrong:
            with pytest.raises(CommandError, match=wrong):
                audit.need_entry(code, tmp_path)
        else:
            audit.need_entry(code, tmp_path)
    code = made(tmp_path / "macosx_11_0_arm64", _native__so=b"")
    monkeypatch.setattr(audit, "read", lambda *_, **__: "PyInit__native memcpy")
    audit.need_entry(code, tmp_path)
    monkeypatch.setattr(audit, "read", lambda *_, **__: "memcpy")
    with pytest.raises(CommandError, match="exports memcpy"):
        audit.need_entry(code, tmp_path)
    audit.need_entry(made(tmp_path / "web", _native__so=b"\0asm PyInit__native"), tmp_path)
    with pytest.raises(CommandError, match="exports nothing"):
        audit.need_entry(made(tmp_path / "web", _native__so=b"\0asm"), tmp_path)


@pytest.mark.parametrize(
    ("tag", "asked", "more"),
    [
        ("manylinux2014_aarch64", "libc.so.6\nld-linux-aarch64.so.1", "libssl.so.3"),
        ("macosx_11_0_arm64", "/usr/lib/libSystem.B.dylib", "/usr/local/lib/libssl.dylib"),
        ("win_amd64", "KERNEL32.dll\npython3.dll", "python311.dll"),
        ("win_amd64", "api-ms-win-crt-math-l1-1-0.dll", "libgcc_s_seh-1.dll"),
    ],
)
def test_a_wheel_asks_for_what_each_system_of_its_kind_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tag: str, asked: str, more: str
) -> None:
    code = made(tmp_path / f"phlox_kernels-1-cp311-abi3-{tag}.whl", _native__so=b"code")
    monkeypatch.setattr(audit, "read", lambda *_, **__: asked)
    audit.need_system(code, tmp_path)
    monkeypatch.setattr(audit, "read", lambda *_, **__: f"{asked}\n{more}")
    with pytest.raises(CommandError, match=f"{tag}.whl asks for {more}, expected"):
        audit.need_system(code, tmp_path)


def test_a_wheel_has_the_licenses_of_all_that_is_linked(tmp_path: Path) -> None:
    kernels = next(each for each in versions.released() if each.name == "phlox-kernels")
    own, *others = parts.crates(kernels, MAC.triple)
    assert str(own) == f"phlox-kernels {kernels.version}"
    assert {"libc", "pyo3", "pyo3-ffi"} <= {each.name for each in others}
    assert not {"pyo3-macros", "pyo3-build-config"} & {each.name for each in others}
    assert all(each.texts for each in others)
    library = [*parts.library(wheels.rust())]
    text, listed = parts.licenses([*others, *library]), parts.sbom([own, *others])
    assert text.count("PyO3 Project and Contributors") > 0
    assert str(ROOT) not in listed
    files = {"crates__cyclonedx__json": listed, "LICENSE-third-party__txt": text}
    audit.need_licenses(made(tmp_path / "whole", **files))
    for old, new, lacking in (
        ("pyo3 ", "other ", r"no license of pyo3 \d"),
        ("Rust's library: ", "", "no license of Rust's library"),
    ):
        files["LICENSE-third-party__txt"] = text.replace(old, new)
        with pytest.raises(CommandError, match=f"lacking: {lacking}"):
            audit.need_licenses(made(tmp_path / "lacking", **files))
    with pytest.raises(CommandError, match=r"bare has no crates\.cyclonedx\.json"):
        audit.need_licenses(made(tmp_path / "bare", _native__so=b""))


def test_licenses_of_the_library_stand_once(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="licenses of Rust's library are missing"):
        list(parts.library(tmp_path))
    debian = tmp_path / "share" / "doc" / "libstd-rust-dev" / "copyright"
    debian.parent.mkdir(parents=True)
    debian.write_text("Files: library/*\n")
    (own,) = parts.library(tmp_path)
    assert parts.licenses([own]).count("Rust's library: MIT") == 1
    assert own.texts == (debian.read_text(),)
    folder = tmp_path / "share" / "doc" / "rust"
    folder.mkdir(parents=True)
    section = "<h3>- {}-1.0</h3><b>License:</b> MIT<pre>\nfree &amp; open\n</pre>"
    text = "<p>Of all.</p>" + section.format("a-b") + section.format("c")
    (folder / "COPYRIGHT-library.html").write_text(text)
    said = parts.licenses(parts.library(tmp_path))
    assert "a-b 1.0: MIT\nc 1.0: MIT\n" in said
    assert said.count("free & open") == 1
    assert "a-b 1.0, c 1.0\n" in said


def test_a_wheel_that_says_where_it_was_built_is_refused(tmp_path: Path) -> None:
    code = made(tmp_path / "code", _native__so=b"value/srv/one/phlox/src/lib.rs\0")
    audit.need_no_paths(code, [Path("/srv/two")])
    with pytest.raises(CommandError, match=r"_native\.so holds the path /srv/one"):
        audit.need_no_paths(code, [Path("/srv/two"), Path("/srv/one")])


def test_every_native_package_is_built_but_where_its_system_alone_links_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, str]] = []

    def native(project: Project, _target: object, _how: object, name: str, _tools: object) -> Path:
        asked.append((project.name, name))
        if name.startswith("windows"):
            raise fail("it does not link", "./x wheels")
        return tmp_path

    monkeypatch.setattr(targets, "system", lambda: "linux")
    monkeypatch.setattr(wheels, "native", native)
    monkeypatch.setattr(wheels, "pure", list)
    monkeypatch.setattr(wheels, "print_table", lambda _: None)
    monkeypatch.setattr(audit, "audit", lambda *_: None)
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
