"""Prove that the scaffold works: add an op to a copy of the checkout, build it, test it.

The op runs its conformance checks on three backends and its first and second derivatives against
central differences. The checkout itself is not touched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.new_op import ROOT, NewOp, add, parse

OP = NewOp(
    name="scaffolded_softsign",
    doc="Softsign: ``x / (1 + |x|)``, elementwise.",
    numpy="x / (1 + np.abs(x))",
    rust="x / (1.0 + x.abs())",
    wgsl="{x} / (1.0 + abs({x}))",
    gradient="g / (1 + x.abs()).square()",
    domain=(0.1, 3.0),
    ulp=4,
    expand=None,
)
FORMULA = NewOp(
    name="scaffolded_formula",
    doc="``x / (1 + x²)``, elementwise.",
    numpy="x",
    rust="x",
    wgsl="{x}",
    gradient="g",
    domain=(-3.0, 3.0),
    ulp=8,
    expand="x / (1 + x * x)",
)
ENERGY = parse(
    [
        "scaffolded_energy",
        "--reduction",
        "--doc=Sum of squares along the axes: ``Σ x²``.",
        "--domain=0.5,1.5",
        "--ulp=16",
    ]
)
PROGRAM = """
import phlox as px
from phlox_tensor.testing import conformance

names = ["scaffolded_softsign", "scaffolded_formula", "scaffolded_energy"]
for device in (px.Numpy(), px.Cpu(), px.Wgpu()):
    count = conformance(device, names)
    entries = [device.entry(name) is not None for name in names]
    assert entries[:2] == [True, False], entries
    print(f"{device!r}: {count} checks passed")
for device in (px.Numpy(float="float64"), px.Cpu(float="float64")):
    with px.use_device(device):
        for name in names:
            x = px.random.uniform((5,), 0.5, 2.0)
            px.gradcheck(lambda x: getattr(x, name)().sum(), (x,), order=2)
    print(f"{device!r}: first and second derivatives agree with central differences")
gpu = px.Wgpu()
x = px.random.uniform((5,), 0.5, 2.0, device=gpu)
for name in names:
    f = lambda x: getattr(x, name)().sum()
    second = px.grad(lambda x: px.grad(f)(x).sum())
    want = second(x.to_device("cpu"))
    assert px.allclose(second(x), want, rtol=1e-4, atol=1e-5)
print(f"{gpu!r}: first and second derivatives agree with Cpu()")
"""


def _copy(folder: Path) -> None:
    """The files that git knows or would know, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        source, target = ROOT / name, folder / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def _build(folder: Path) -> None:
    """Compile the kernels of the copy and put the library where its Python side looks.

    Unoptimised, in a folder of its own: what is proved is that the rows fit together, and other
    builds need not wait.
    """
    target = ROOT / "target" / "new-op"
    environment = {
        **os.environ,
        "CARGO_INCREMENTAL": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "CARGO_PROFILE_DEV_OPT_LEVEL": "0",
        "CARGO_TARGET_DIR": str(target),
    }
    command = ["cargo", "build", "--quiet", "--lib", "-p", "phlox-kernels", "--features", "python"]
    subprocess.run(command, cwd=folder, check=True, env=environment)
    (library,) = (
        p for p in (target / "debug").glob("*phlox_kernels*") if p.suffix in (".so", ".dylib")
    )
    shutil.copy2(library, folder / "kernels-rs/python/phlox_kernels/_native.abi3.so")


def _environment(folder: Path) -> dict[str, str]:
    sources = [
        folder / "src",
        folder / "kernels-rs/python",
        *sorted((folder / "packages").glob("*/src")),
    ]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sources))}


def main() -> int:
    """Run the whole path and return the exit status."""
    with tempfile.TemporaryDirectory(prefix="phlox-new-op-") as name:
        folder = Path(name)
        _copy(folder)
        for op in (OP, FORMULA, ENERGY):
            for path in add(op, folder):
                print(f"{op.name}: edited {path}")
        environment = _environment(folder)
        generate = [sys.executable, "tools/gen.py"]
        subprocess.run(generate, cwd=folder, check=True, env=environment)
        subprocess.run([*generate, "--check"], cwd=folder, check=True, env=environment)
        _build(folder)
        return subprocess.run(
            [sys.executable, "-c", PROGRAM], cwd=folder, check=False, env=environment
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
