"""What the page asks of Python, asked here."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from examples.browser import folder
from examples.browser.page.digits import BATCH, Session

SEEN = 8


def test_the_page_takes_the_newest_wheel_of_the_kernels_for_browsers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "_ROOT", tmp_path)
    sources = 900.0
    monkeypatch.setattr(folder, "changed", lambda *_: sources)
    assert folder.kernels() is None
    (tmp_path / "dist").mkdir()
    for age, name in enumerate(
        [
            "phlox_kernels-2-cp311-abi3-pyemscripten_wasm32.whl",
            "phlox_kernels-1-cp311-abi3-pyodide_wasm32.whl",
            "phlox_kernels-3-cp311-abi3-manylinux2014_x86_64.whl",
        ]
    ):
        file = tmp_path / "dist" / name
        file.touch()
        os.utime(file, (1000 - age, 1000 - age))
    found = folder.kernels()
    assert found is not None
    assert found.name.startswith("phlox_kernels-2")
    sources = 1001.0
    assert folder.kernels() is None  # it is older than they are


def test_a_folder_with_other_files_is_not_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unpacked(*_: object) -> Path:
        raise folder.DataError("begun")

    monkeypatch.setattr(folder, "unpacked", unpacked)
    kept = tmp_path / "work.txt"
    kept.touch()
    for out in (tmp_path, kept):
        with pytest.raises(folder.DataError, match=r"\[browser\] .* is not made anew: got a f"):
            folder.make(out)
        assert kept.is_file()
    own, empty = tmp_path / "own", tmp_path / "empty"
    (own / "pyodide").mkdir(parents=True)
    (own / "pyodide/pyodide-lock.json").touch()
    empty.mkdir()
    for out in (own, empty, tmp_path / "none"):
        with pytest.raises(folder.DataError, match="begun"):
            folder.make(out)


def session(place: Path) -> Session:
    """A session on digits that are stripes, at a height that is their number."""
    labels = np.arange(4 * BATCH, dtype=np.uint8) % 10
    images = np.zeros((len(labels), 28, 28), np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[2 * label + 3 : 2 * label + 5] = 255
    path = place / "digits.npz"
    few, known = images[:SEEN], labels[:SEEN]
    np.savez(path, images=images, labels=labels, test_images=few, test_labels=known)
    return Session("cpu", str(path))


def test_it_learns_and_a_record_brings_what_was_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own = session(tmp_path)
    losses = [own.train(5)[1] for _ in range(4)]
    assert losses[-1] < losses[0] / 2, losses
    assert own.steps == 20
    assert own.accuracy() == 1
    pixels, digit = own.sample()
    assert len(pixels) == 784

    class Drawn:
        """What JavaScript hands over."""

        def to_py(self) -> memoryview:
            """Return the pixels."""
            return memoryview(pixels)

    shares = own.drawn(Drawn())
    assert shares.index(max(shares)) == digit
    (tmp_path / "kept.mpk").write_bytes(own.save())
    other = session(tmp_path)
    assert other.drawn(Drawn()) != shares
    other.load("kept.mpk")
    np.testing.assert_allclose(other.drawn(Drawn()), shares, atol=0.01)  # floats of 16 bits
