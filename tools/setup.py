"""`./x setup`: a `.venv` with everything in it, from Python, cargo and a package index alone.

Each step hashes its inputs and is skipped while they have not changed.
"""

import os
import shutil
import sys
from pathlib import Path

from tools.shell import (
    PRIVATE,
    ROOT,
    STAMPS,
    VENV,
    CommandError,
    call,
    digest,
    fail,
    fresh,
    pinned,
    read,
    run,
    say,
    script,
    stamp,
    which,
)

CONSTRAINTS = ROOT / "constraints"
LOCKED = CONSTRAINTS / "dev.txt"
KERNELS = ROOT / "kernels-rs"
ENGINE = ROOT / "packages" / "wgpu-backend" / "engine"
_DRIVERS = ("libvulkan1", "mesa-vulkan-drivers")
# OpenGL does not count: its adapters lack compute limits that the backend needs.
_COUNT_ADAPTERS = """
import wgpu
print(sum(a.info["backend_type"] != "OpenGL" for a in wgpu.gpu.enumerate_adapters_sync()))
"""
_PEERS = PRIVATE / "peers"
_UV_OPTIONS = ("--quiet", "--no-config")


def packages() -> list[Path]:
    """Folders of the pure Python packages, the meta-package last."""
    found = sorted(file.parent for file in (ROOT / "packages").glob("*/pyproject.toml"))
    return [*found, ROOT]


def setup() -> None:
    """Make or bring up to date `.venv`: tools, dependencies, kernels, packages, GPU driver.

    Raises:
        CommandError: something is missing that cannot be installed from here.
    """
    if VENV.is_symlink():
        say(".venv is a link: using that environment as it is")
        return
    _need_rust()
    uv = bootstrap_uv()
    _make_venv(uv)
    install_locked(uv, "dev")
    _install_packages(uv)
    _build_kernels()
    _find_adapter()


def bootstrap_uv() -> Path:
    """Path of the pinned uv, installed into `.x/uv` by pip when the caller has another or none."""
    locked = CONSTRAINTS / "uv.txt"
    wanted = pinned(locked, "uv")
    private = script("uv", PRIVATE / "uv")
    for candidate in (private, shutil.which("uv")):
        if candidate and Path(candidate).is_file() and _version_of(candidate) == wanted:
            return Path(candidate)
    say(f"installing uv {wanted} into .x")
    shutil.rmtree(PRIVATE / "uv", ignore_errors=True)
    pip = [sys.executable, "-m", "pip"]
    try:
        read(*pip, "--version")
    except CommandError:
        hint = "python3 -m ensurepip --user  (Debian, Ubuntu: apt-get install python3-pip)"
        raise fail(f"pip is missing from {sys.executable}", hint) from None
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
    options += ["--root-user-action=ignore", "--target", str(PRIVATE / "uv")]
    run(*pip, "install", *options, "--require-hashes", "-r", locked)
    return private


def _version_of(uv: str | Path) -> str:
    """Version a uv program says it has, "" when it does not run."""
    try:
        return read(uv, "--version").split()[1]
    except CommandError:
        return ""


def _need_rust() -> None:
    if which("cargo") is None:
        raise fail(
            "cargo is missing: the CPU kernels are written in Rust",
            "install Rust 1.89 or newer: apt-get install rustup && rustup default stable",
        )
    if os.name != "nt" and not any(map(which, ("cc", "gcc", "clang"))):
        raise fail(
            "a linker is missing: Rust links with cc",
            "apt-get install gcc libc6-dev  (macOS: xcode-select --install)",
        )


def _make_venv(uv: Path) -> None:
    # Kept while it works: `./x` may well be running on its Python.
    try:
        read(script("python"), "-c", "import sys; assert sys.version_info >= (3, 11)")
        return
    except CommandError:
        pass
    say(f"making .venv with Python {sys.version.split()[0]}")
    shutil.rmtree(VENV, ignore_errors=True)
    run(uv, "venv", *_UV_OPTIONS, "--python", sys.executable, VENV)


def peers() -> Path:
    """Path of a Python that has what phlox is compared with beside all of `.venv`.

    An environment of its own: checkers of types would find PyTorch in `.venv` and say other things
    than in a fresh clone.
    """
    python = script("python", own("bench", _PEERS))
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    line = f"import site; site.addsitedir({read(script('python'), '-c', where)!r})\n"
    Path(read(python, "-c", where), "phlox.pth").write_text(line)
    return python


def own(name: str, folder: Path | None = None) -> Path:
    """Folder of an environment that holds what constraints/NAME.txt pins, and no more."""
    uv = bootstrap_uv()
    folder = folder or PRIVATE / "environments" / name
    if not script("python", folder).is_file():
        program = script("python")
        run(
            uv,
            "venv",
            *_UV_OPTIONS,
            "--python",
            program if program.is_file() else sys.executable,
            folder,
        )
        (STAMPS / name).unlink(missing_ok=True)
    install_locked(uv, name, folder)
    return folder


def install_locked(uv: Path, name: str, venv: Path = VENV) -> None:
    """Install a hashed constraints file into an environment."""
    locked = CONSTRAINTS / f"{name}.txt"
    key = digest([locked])
    if fresh(name, key):
        return
    say(f"installing constraints/{name}.txt")
    run(
        *(uv, "pip", "install", *_UV_OPTIONS, "--python", script("python", venv)),
        *("--require-hashes", "-r", locked),
    )
    stamp(name, key)


def _install_packages(uv: Path) -> None:
    """Install every pure Python package editable; their dependencies are locked already."""
    projects = [folder / "pyproject.toml" for folder in packages()]
    key = digest(projects)
    if fresh("packages", key):
        return
    say(f"installing {len(projects)} packages, editable")
    editable = [word for file in projects for word in ("--editable", str(file.parent))]
    run(uv, "pip", "install", "--quiet", "--python", script("python"), "--no-deps", *editable)
    stamp("packages", key)


def _build_kernels() -> None:
    sources = [ROOT / "Cargo.toml", ROOT / "Cargo.lock", KERNELS / "pyproject.toml"]
    sources += [KERNELS / "Cargo.toml", *(KERNELS / "src").rglob("*")]
    key = digest((file for file in sources if file.is_file()), read("cargo", "--version"))
    native = list((KERNELS / "python").glob("*/_native*"))
    if fresh("kernels", key) and any(file.suffix in {".so", ".pyd"} for file in native):
        return
    say("building kernels-rs (release); minutes the first time")
    run("maturin", "develop", "--release", "--uv", "--quiet", cwd=KERNELS)
    stamp("kernels", key)


def build_engine() -> int:
    """Build the native engine of the GPU backend, which nothing needs; its exit status."""
    return call("maturin", "develop", "--release", "--locked", "--uv", "--quiet", cwd=ENGINE)


def _find_adapter() -> None:
    """Look for a GPU adapter; where apt-get is there, install Mesa's software Vulkan for none."""
    if fresh("adapter", "found"):
        return
    if _adapters() == 0 and sys.platform == "linux":
        _install_drivers()
    if _adapters():
        stamp("adapter", "found")
    else:
        say("no GPU adapter found: Wgpu() will not work here, everything else does")
        say(f"hint: install a Vulkan driver, such as {' and '.join(_DRIVERS)}")


def _adapters() -> int:
    try:
        return int(read(script("python"), "-c", _COUNT_ADAPTERS))
    except CommandError:
        return 0


def _install_drivers() -> None:
    if shutil.which("apt-get") is None:
        return
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    apt = [*as_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    say(f"no GPU adapter found: installing {' and '.join(_DRIVERS)}")
    try:
        read(*apt, "update")
        read(*apt, "install", "-y", "--no-install-recommends", *_DRIVERS)
    except CommandError as error:
        print(error, flush=True)


def relock(uv: Path) -> None:
    """Resolve constraints/*.in again into hashed files that name no package index."""
    for name in ("uv", "dev", "bench", "llamacpp", "long", "site", "wheels"):
        say(f"resolving constraints/{name}.in")
        run(
            *(uv, "pip", "compile", *_UV_OPTIONS, "--universal", "--generate-hashes", "--upgrade"),
            *("--python-version", "3.11", "--no-emit-index-url"),
            *("--custom-compile-command", "./x lock", f"{name}.in", "-o", f"{name}.txt"),
            cwd=CONSTRAINTS,
        )
