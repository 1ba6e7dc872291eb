"""`./x wheels`: wheels of every package, those of machine code for each machine that it can.

`./x wheels` builds for all targets, `./x wheels linux-arm64` for one, `./x wheels --fetch` first
fetches Debian's Rust. What cannot be built here is said with the line that changes it.
"""

from __future__ import annotations

import platform
import shutil
import time
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools import audit, debian, parts, setup, tags, targets, versions
from tools.shell import PRIVATE, ROOT, CommandError, executable, fail, read, run, say, script

DIST = ROOT / "dist"
_BUILDS = PRIVATE / "builds"
_TOOLS = ROOT / "tools"


@dataclass(frozen=True)
class Size:
    """Bytes of a wheel, and of what it installs."""

    packed: int
    unpacked: int


def size(wheel: Path) -> Size:
    """Measure a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return Size(wheel.stat().st_size, sum(each.file_size for each in archive.infolist()))


def wheels(words: list[str]) -> int:
    """Run the command; its status is 1 if a target failed, or was named and lacks its tools."""
    return 1 if build(words)[1] else 0


def build(words: list[str], left_out: tuple[str, ...] = ()) -> tuple[list[Path], list[str]]:
    """Build and audit all packages but some; the wheels, and what failed.

    A target that lacks its tools has failed if a word names it.
    """
    names = [word for word in words if word != "--fetch"]
    wanted = targets.chosen(names)
    if "--fetch" in words:
        debian.fetch_rust()
    tools = setup.own("wheels")
    sysroot = rust()
    projects = [each for each in versions.released() if each.native and each.name not in left_out]
    built = pure()
    left: dict[str, str] = {}
    failed: list[str] = []
    for name, target in wanted.items():
        try:
            how = targets.compiler(target, sysroot, debian.FOLDER)
        except CommandError as error:
            left[name] = targets.reason(error)
            failed += [name] if name in names else []
            continue
        for project in projects:
            if why := targets.left_out(project.name, name):
                left[f"{project.name} for {name}"] = why
                continue
            start = time.perf_counter()
            try:
                built.append(native(project, target, how, name, tools))
            except CommandError as error:
                say(f"{error}")
                failed.append(f"{project.name} for {name}")
            say(f"{project.name} for {name}: {time.perf_counter() - start:.0f} s")
    print_table(built)
    for name, why in left.items():
        say(f"not built: {name}: {why}")
    audit.audit(built, tools)
    if failed:
        say(f"wheels failed: {', '.join(failed)}")
    return built, failed


def here() -> str:
    """Name of the target that this machine is.

    Raises:
        CommandError: the table has no such machine.
    """
    machine = platform.machine().lower()
    name = f"{targets.system()}-{ {'aarch64': 'arm64', 'amd64': 'x86_64'}.get(machine, machine) }"
    if name not in targets.TARGETS:
        raise fail(f"no target is this machine: {name}", "./x setup")
    return name


def pure() -> list[Path]:
    """Build every package without machine code into dist/."""
    uv = setup.bootstrap_uv()
    DIST.mkdir(exist_ok=True)
    found = [project for project in versions.projects() if not project.native]
    return [_pure(uv, project) for project in found]


def _pure(uv: Path, project: versions.Project) -> Path:
    out = _BUILDS / project.name
    shutil.rmtree(out, ignore_errors=True)
    run(uv, "build", "--quiet", "--wheel", "--out-dir", out, project.folder)
    return _only(out, "py3-none-any")


def native(
    project: versions.Project,
    target: targets.Target,
    how: targets.Compiler,
    name: str,
    tools: Path,
) -> Path:
    """Build a package of machine code for one target into dist/.

    Raises:
        CommandError: it does not compile, the wheel has another name than the table says, or
            Python could not import it.
    """
    out = _BUILDS / f"{name}-{project.name}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for library in target.linked:
        (out / library).write_bytes(b"!<arch>\n")  # an archive without members
    cargo = f"CARGO_TARGET_{target.triple.upper().replace('-', '_')}"
    flags = [*target.settings.get(f"{cargo}_RUSTFLAGS", "").split(), *_unnamed()]
    settings = {
        "CARGO_TARGET_DIR": str(_BUILDS / f"{name}-target"),
        **target.settings,
        **how.settings,
        # Of all variables with flags Cargo reads this one alone, whatever the caller has set.
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags),
    }
    if target.linker:
        line = f"exec {script('python', tools)} {_TOOLS / target.linker}"
        settings[f"{cargo}_LINKER"] = str(executable(out / "linker", line))
    words = ["--release", "--quiet", *([] if target.linker else ["--zig"])]
    words += ["--target", target.triple, *target.options]
    listed = out / parts.SBOM
    words += ["--out", str(out), "--compression-level", "9", *how.options]
    words += ["--sbom-include", str(listed)]
    linked = [f"-L{out}"] if target.linked else []
    linked += [str(_dotted(project, target, out, tools))] if target.dotted else []
    words += ["--", *(word for each in linked for word in ("-C", f"link-arg={each}"))]
    say(f"building {project.name} for {name}; minutes the first time")
    crates = parts.crates(project, target.triple)
    listed.write_text(parts.sbom(crates))
    licenses = project.folder / parts.LICENSES
    licenses.write_text(parts.licenses([*crates[1:], *parts.library(rust())]))
    try:
        maturin = script("maturin", tools)
        run(maturin, "build", *words, cwd=project.folder, venv=tools, extra=settings)
    finally:
        licenses.unlink(missing_ok=True)
    return _only(out, target.tag, target.first)


def _unnamed() -> list[str]:
    """Flags by which messages of a panic name no folder of this machine."""
    folders = audit.builder().items()
    return [f"--remap-path-prefix={folder}={name}" for folder, name in folders]


def rust() -> Path:
    """Folder of the installed Rust."""
    return Path(read("rustc", "--print", "sysroot"))


_DOTTED = """\
void dotted(void) __asm__("PyInit_{module}._native");
void dotted(void) {{}}
__asm__(".section .drectve,\\"yni\\"\\n.ascii \\" -export:PyInit__native\\"\\n");
"""


def _dotted(project: versions.Project, target: targets.Target, out: Path, tools: Path) -> Path:
    """Compile what maturin has exported, a name with a dot, and export the one Python calls."""
    source, compiled = out / "dotted.c", out / "dotted.o"
    source.write_text(_DOTTED.format(module=project.module))
    zig = (script("python", tools), "-m", "ziglang", "cc")
    run(*zig, "-target", target.triple.replace("-pc", ""), "-c", source, "-o", compiled, venv=tools)
    return compiled


def _only(out: Path, tag: str, first: str = "") -> Path:
    """Move the one wheel of a build into dist/, in the place of older ones of its kind."""
    (wheel,) = out.glob("*.whl")
    if first:
        wheel = tags.retag(wheel, first, tag)
    if tag not in wheel.name:
        raise fail(f"a wheel has another tag: got {wheel.name}, expected {tag}", "./x wheels")
    project = wheel.name.split("-")[0]
    for older in DIST.glob(f"{project}-*{tag}*.whl"):
        older.unlink()
    return Path(shutil.move(wheel, DIST / wheel.name))


def print_table(files: Iterable[Path]) -> None:
    """Print what each wheel weighs."""
    rows = sorted((file.name, size(file)) for file in files)
    wide = max(len(name) for name, _ in rows)
    print(f"\n{'wheel':<{wide}} {'packed':>10} {'unpacked':>10}")
    for name, bytes_ in rows:
        packed, unpacked = (f"{part / 1000:,.0f} kB" for part in (bytes_.packed, bytes_.unpacked))
        print(f"{name:<{wide}} {packed:>10} {unpacked:>10}")
    print(flush=True)
