"""Loaders: an epoch of arrays, and one of pictures, decoded, cut out and flipped by two workers.

Both sides run the same function for a picture. PyTorch's workers are processes that stay from epoch
to epoch, ours are threads, and processes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.case import Case, Run
from phlox import data

COUNT, BATCH = 60_000, 64
PICTURES, SIZE, CUT = 512, (500, 375), 224


def cases(*, with_torch: bool) -> Iterator[Case]:
    """Yield the benchmarks of the group; pictures are there as long as it is iterated."""
    images = np.random.default_rng(0).integers(0, 256, (COUNT, 28, 28)).astype(np.uint8)
    labels = np.arange(COUNT)
    rows = data.arrays(image=images, label=labels)
    for shuffle in (False, True):
        ours = data.DataLoader(rows, BATCH, shuffle=shuffle)
        other = _torch_arrays(images, labels, shuffle=shuffle) if with_torch else None
        name = f"60,000 arrays of 28x28{', shuffled' if shuffle else ''}"
        yield Case(name, _epoch(ours), other, times=10.0)
    with tempfile.TemporaryDirectory(prefix="phlox-bench-") as folder:
        files = _pictures(Path(folder))
        other = _torch_pictures(files) if with_torch else None
        for kind, workers, times in (("threads", 2, 1.05), ("processes", data.Processes(2), 1.2)):
            pictures = data.of(files).map(_cut)
            with data.DataLoader(pictures, BATCH, shuffle=True, workers=workers) as loader:
                yield Case(f"{PICTURES} pictures, two {kind}", _epoch(loader), other, times=times)


def _epoch(loader: Iterable[Any]) -> Run:
    return lambda: sum(1 for _ in loader)


def _pictures(folder: Path) -> list[Path]:
    """Files of smooth noise, which decode at the pace of photographs."""
    rng = np.random.default_rng(0)
    files = []
    for number in range(PICTURES):
        small = Image.fromarray(rng.integers(0, 256, (24, 32, 3)).astype(np.uint8))
        files.append(folder / f"{number}.jpg")
        small.resize(SIZE, Image.Resampling.BICUBIC).save(files[-1], quality=90)
    return files


def _cut(file: Path, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """A part of a picture at a random place, flipped half of the time."""
    with Image.open(file) as opened:
        left, top = (int(rng.integers(0, size - CUT + 1)) for size in opened.size)
        cut = opened.convert("RGB").crop((left, top, left + CUT, top + CUT))
    if rng.random() < 0.5:
        cut = cut.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return np.array(cut)


def _torch_arrays(images: Any, labels: Any, *, shuffle: bool) -> Run:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons
    from torch.utils.data import (  # noqa: PLC0415 # pyright: ignore[reportMissingImports]
        DataLoader,
        TensorDataset,
    )

    rows = TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))
    return _epoch(DataLoader(rows, BATCH, shuffle=shuffle))


class _Pictures:
    """The same pictures as PyTorch wants them."""

    def __init__(self, files: list[Path]) -> None:
        self._files = files

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> Any:
        return _cut(self._files[index], np.random.default_rng())


def _torch_pictures(files: list[Path]) -> Run:
    from torch.utils.data import (  # noqa: PLC0415 # pyright: ignore[reportMissingImports]
        DataLoader,
    )

    rows: Any = _Pictures(files)
    return _epoch(DataLoader(rows, BATCH, shuffle=True, num_workers=2, persistent_workers=True))
