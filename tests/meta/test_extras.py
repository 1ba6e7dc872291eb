"""Parts that `pip install phlox` alone does not bring say which extra does."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError

import pytest

from phlox import _doctor
from phlox._extras import EXTRAS, of_extra
from phlox_tensor.needed import MissingPackageError

OWN = [names[0] for names in EXTRAS.values()]
ALONE = f"import sys\nsys.modules |= dict.fromkeys({OWN!r})\n"


def alone(code: str) -> subprocess.CompletedProcess[str]:
    """Run a program where only what `phlox` itself needs is installed."""
    command = [sys.executable, "-c", ALONE + code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["Wgpu", "data", "distributed", "onnx", "text", "train"])
def test_a_part_that_is_missing_names_its_extra(name: str) -> None:
    done = alone(f"import phlox as px\npx.{name}")
    assert (
        f"[{name.lower()}] a package is not installed: got no phlox_{name.lower()}" in done.stderr
    )
    assert f'\nhint: pip install "phlox[{name.lower()}]"' in done.stderr


def test_without_its_package_the_processor_says_what_to_install() -> None:
    without = "import sys\nsys.modules['phlox_kernels'] = None\nimport phlox as px\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{without}print('Cpu' in dir(px), 'Wgpu' in dir(px))\npx.Cpu"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "False True\n", done.stderr
    assert "[cpu] a package is not installed: got no phlox_kernels" in done.stderr
    assert done.stderr.endswith('hint: pip install "phlox-kernels"\n')


def test_a_star_takes_what_is_there() -> None:
    done = alone("from phlox import *\nprint(nn.Linear, 'train' in globals(), 'Wgpu' in globals())")
    assert done.stdout.endswith("False False\n"), done.stderr


@pytest.mark.parametrize(
    ("word", "extra"),
    [("chat", "text"), ("metrics", "train"), ("runs", "train"), ("data", "data"), ("onnx", "onnx")],
)
def test_a_command_that_is_missing_names_its_extra(word: str, extra: str) -> None:
    done = alone(f"from phlox._cli import main\nsys.exit(main([{word!r}]))")
    assert done.returncode == 2
    assert done.stderr.endswith(f'hint: pip install "phlox[{extra}]"\n')
    assert "Traceback" not in done.stderr


def test_doctor_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(_doctor, "version", version)
    lines = dict(line.split(maxsplit=1) for line in _doctor._versions().splitlines())
    assert lines["phlox-wgpu"] == 'not installed; hint: pip install "phlox[wgpu]"'
    assert lines["phlox-nn"] == 'not installed; hint: pip install "phlox-nn"'


def test_another_missing_module_stays_its_own_error() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module") as caught, of_extra("data"):
        import no_such_module  # type: ignore[import-not-found]  # noqa: F401
    assert not isinstance(caught.value, MissingPackageError)
