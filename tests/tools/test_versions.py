"""The version check finds each kind of disagreement in a small workspace of its own."""

import os
from pathlib import Path

import pytest

from tools.shell import CommandError
from tools.versions import changed, problems, read_project, versions

PROJECT = """[project]
name = "{name}"
version = "{version}"
dependencies = [{requires}]
[build-system]
build-backend = "{backend}"
"""


def write(folder: Path, name: str, requires: str = "", backend: str = "uv_build") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = PROJECT.format(name=name, version="0.3.1", requires=requires, backend=backend)
    (folder / "pyproject.toml").write_text(text)
    (folder / "CHANGELOG.md").write_text(f"# Changelog of {name}\n\n## 0.3.1\n\n## 0.3.0\n")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Three packages that agree."""
    write(tmp_path / "kernels-rs", "phlox-kernels", '"phlox-tensor>=0.3.1,<0.4"', "maturin")
    (tmp_path / "kernels-rs" / "Cargo.toml").write_text('[package]\nversion = "0.3.1"\n')
    write(tmp_path / "packages" / "tensor", "phlox-tensor", '"numpy>=2"')
    write(tmp_path, "phlox", '"phlox-kernels==0.3.1", "phlox-tensor >=0.3.1, <0.4"')
    return tmp_path


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_agreement_is_silent(workspace: Path) -> None:
    assert problems(workspace) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "line"),
    [
        (
            "packages/tensor/CHANGELOG.md",
            "## 0.3.1\n\n",
            "",
            "packages/tensor/CHANGELOG.md: newest heading: got 0.3.0, expected 0.3.1",
        ),
        (
            "kernels-rs/Cargo.toml",
            "0.3.1",
            "0.3.0",
            "kernels-rs/Cargo.toml: version: got 0.3.0, expected 0.3.1",
        ),
        (
            "pyproject.toml",
            "phlox-kernels==0.3.1",
            "phlox-kernels>=0.3",
            "phlox: phlox-kernels: got >=0.3, expected ==0.3.1",
        ),
        (
            "pyproject.toml",
            "phlox-tensor >=0.3.1, <0.4",
            "phlox-tensor",
            "phlox: phlox-tensor: got any, expected >=0.3.1,<0.4",
        ),
        (
            "kernels-rs/pyproject.toml",
            ">=0.3.1,<0.4",
            "==0.3.1",
            "phlox-kernels: phlox-tensor: got ==0.3.1, expected >=0.3.1,<0.4",
        ),
    ],
)
def test_a_disagreement_is_one_line(
    workspace: Path, file: str, old: str, new: str, line: str
) -> None:
    edit(workspace / file, old, new)
    assert problems(workspace) == [line]


def test_an_engine_beside_a_package_goes_with_the_others(workspace: Path) -> None:
    folder = workspace / "packages/gpu/engine"
    write(folder, "phlox-gpu-engine", '"phlox-gpu==0.3.1"', "maturin")
    (folder / "Cargo.toml").write_text('[package]\nversion = "0.3.1"\n')
    locked = '[[package]]\nname = "phlox-gpu-engine"\nversion = "0.3.1"\n'
    (folder / "Cargo.lock").write_text(locked)
    edit(workspace / "pyproject.toml", '"phlox-tensor >=0.3.1, <0.4"', '"phlox-tensor>=0.3.1,<0.4"')
    write(folder.parent, "phlox-gpu")
    file = folder.parent / "pyproject.toml"
    extra = '[project.optional-dependencies]\nnative = ["phlox-gpu-engine=={}"]\n[build-system]'
    edit(file, "[build-system]", extra.format("0.3.1"))
    edit(folder / "pyproject.toml", "==0.3.1", ">=0.3.1,<0.4")
    got = "phlox-gpu-engine: phlox-gpu: got >=0.3.1,<0.4, expected ==0.3.1"
    assert problems(workspace) == [got]
    edit(folder / "pyproject.toml", ">=0.3.1,<0.4", "==0.3.1")
    assert versions(["0.4.0"], workspace) == 0
    assert (folder / "Cargo.lock").read_text() == locked.replace("0.3.1", "0.4.0")
    assert extra.format("0.4.0") in file.read_text()
    assert '"phlox-gpu==0.4.0"' in (folder / "pyproject.toml").read_text()


def test_all_that_a_wheel_is_made_of_counts_for_its_age(workspace: Path) -> None:
    kernels = read_project(workspace / "kernels-rs/pyproject.toml")
    at = 0
    names = ["Cargo.toml", "Cargo.lock", "kernels-rs/src/a/b.rs"]
    names += [f"tools/{name}.py" for name in ("wheels", "side_module", "tags", "targets", "parts")]
    for at, name in enumerate(names, 4_000_000_000):
        file = workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        assert changed(kernels, workspace) < at
        os.utime(file, (at, at))
        assert changed(kernels, workspace) == at
    built = workspace / "kernels-rs/python/_native.abi3.so"
    built.parent.mkdir()
    built.touch()
    os.utime(built, (at + 1, at + 1))
    assert changed(kernels, workspace) == at


def test_a_missing_changelog_is_named(workspace: Path) -> None:
    (workspace / "CHANGELOG.md").unlink()
    assert problems(workspace) == ["CHANGELOG.md: missing, expected a heading '## 0.3.1'"]


def test_sources_state_the_version_of_their_package(workspace: Path) -> None:
    file = workspace / "packages/tensor/src/phlox_tensor/_version.py"
    file.parent.mkdir(parents=True)
    file.write_text('VERSION: Final = "0.3.0"\n')
    where = file.relative_to(workspace)
    assert problems(workspace) == [f"{where}: VERSION: Final: got 0.3.0, expected 0.3.1"]


def test_a_new_version_is_written_everywhere(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = workspace / "src/phlox/__init__.py"
    file.parent.mkdir(parents=True)
    file.write_text('__version__ = "0.3.1"\n')
    edit(workspace / "pyproject.toml", '"phlox-tensor >=0.3.1, <0.4"', '"phlox-tensor>=0.3.1,<0.4"')
    edit(workspace / "pyproject.toml", '==0.3.1"', "==0.3.1; sys_platform != 'emscripten'\"")
    assert versions(["0.4.0"], workspace) == 0
    assert "phlox-kernels        0.4.0" in capsys.readouterr().out
    assert file.read_text() == '__version__ = "0.4.0"\n'
    assert (
        '"phlox-kernels==0.4.0; sys_platform != \'emscripten\'", "phlox-tensor>=0.4.0,<0.5"'
        in (workspace / "pyproject.toml").read_text()
    )
    assert "## 0.4.0\n\n## 0.3.1" in (workspace / "CHANGELOG.md").read_text()
    assert versions([], workspace) == 0
    with pytest.raises(
        CommandError, match=r"got v1, expected nothing or a version such as 0\.3\.0"
    ):
        versions(["v1"], workspace)
