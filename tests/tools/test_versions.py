"""The version check finds each kind of disagreement in a small workspace of its own."""

from pathlib import Path

import pytest

from tools.versions import problems

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
    write(tmp_path / "kernels-rs", "phlox-kernels", '"phlox-tensor~=0.3.1"', "maturin")
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
            "phlox: phlox-tensor: got any, expected >=0.3.1,<0.4 or ~=0.3.1",
        ),
        (
            "kernels-rs/pyproject.toml",
            "~=0.3.1",
            "==0.3.1",
            "phlox-kernels: phlox-tensor: got ==0.3.1, expected >=0.3.1,<0.4 or ~=0.3.1",
        ),
    ],
)
def test_a_disagreement_is_one_line(
    workspace: Path, file: str, old: str, new: str, line: str
) -> None:
    edit(workspace / file, old, new)
    assert problems(workspace) == [line]


def test_a_missing_changelog_is_named(workspace: Path) -> None:
    (workspace / "CHANGELOG.md").unlink()
    assert problems(workspace) == ["CHANGELOG.md: missing, expected a heading '## 0.3.1'"]
