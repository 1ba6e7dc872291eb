"""The meta-package: it finds every name, and loads a package only when a name of it is used."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import phlox


def loaded_by(program: str) -> set[str]:
    """Top-level modules that a program has loaded when it ends."""
    code = f"{program}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    return set(subprocess.check_output([sys.executable, "-c", code], text=True).split())


def test_importing_phlox_loads_nothing_else() -> None:
    ours = {name for name in loaded_by("import phlox") if name.startswith("phlox")}
    assert ours == {"phlox"}
    assert "numpy" not in loaded_by("import phlox")


def test_a_tensor_loads_only_the_tensor_layer() -> None:
    loaded = loaded_by("import phlox\nphlox.ones(3, device=phlox.Numpy())")
    assert "phlox_tensor" in loaded
    assert not loaded & {"phlox_nn", "phlox_optim", "phlox_wgpu", "wgpu"}


@pytest.mark.parametrize("name", ["Autodiff", "Cpu", "Numpy", "Tensor", "Wgpu", "data", "nn"])
def test_names_of_every_package_are_found(name: str) -> None:
    assert name in dir(phlox)
    assert getattr(phlox, name) is getattr(phlox, name)


def test_a_submodule_exports_what_its_package_does() -> None:
    code = (
        "from phlox.nn import Module\nfrom phlox.record import Recorder\n"
        "import phlox.data, phlox.optim"
    )
    assert {"phlox_data", "phlox_nn", "phlox_optim", "phlox_record"} <= loaded_by(code)
    assert "phlox_tensor" in loaded_by("from phlox.random import Generator, normal")


SPACES = ["capture", "fft", "linalg", "ops", "random", "tree"]


@pytest.mark.parametrize("name", SPACES)
def test_an_imported_namespace_is_the_one_that_the_package_has(name: str) -> None:
    unknown = f"phlox.{name}.no_such_name"
    code = (
        f"import phlox.{name}, phlox_tensor.{name}\n"
        f"from phlox.{name} import *\n"
        f"assert phlox.{name} is phlox_tensor.{name}\n"
        f"try: {unknown}\n"
        f"except AttributeError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "no_such_name" in done.stdout


def test_names_of_a_namespace_are_imported_and_keep_their_hints() -> None:
    code = (
        "from phlox.linalg import inv\nfrom phlox.ops import add\nimport phlox.random\n"
        "import phlox as px\n"
        "try: px.random.rand(3)\n"
        "except px.UnknownNameError as error: print(inv, add, error.hint)"
    )
    out = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert "px.random.uniform((2, 3))" in out


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"\[no_such_name\] no such name in phlox"):
        _ = phlox.no_such_name  # type: ignore[attr-defined]


def test_modules_of_other_packages_are_no_names() -> None:
    """`px.device` was a module of the fusing backend, which no name of PyTorch led past."""
    with pytest.raises(AttributeError, match=r'hint: px\.as_device\("cpu"\)'):
        _ = phlox.device  # type: ignore[attr-defined]
    modules = {name for name in dir(phlox) if isinstance(getattr(phlox, name), ModuleType)}
    assert {"fft", "linalg", "nn", "optim"} < modules
    files = {file.stem for file in Path(phlox.__file__).parent.glob("*.py")}
    assert modules <= files


def test_a_star_import_takes_every_name() -> None:
    code = (
        "from phlox import *\n"
        "import phlox\n"
        "missing = {n for n in dir(phlox) if n[0] != '_'} - set(globals())\n"
        "assert not missing, missing\n"
        "print(Cpu(), Autodiff, vmap, nn.Linear, optim, zeros, Wgpu)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Cpu() ")


@pytest.mark.parametrize(
    "name", ["data", "distributed", "nn", "onnx", "optim", "record", "testing", "text", "train"]
)
def test_nothing_is_imported_below_what_shows_a_package(name: str) -> None:
    assert not hasattr(getattr(phlox, name), "__path__")
