"""Names and arguments of other libraries: what is said of them runs."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import phlox_data as data
import phlox_tensor as pt
from phlox_data._elsewhere import NAMES


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file.csv").write_text("a,b\n1,2\n")
    Path("folder/cat").mkdir(parents=True)
    Image.new("L", (2, 2)).save("folder/cat/one.png")
    Path("shards").mkdir()
    with tarfile.open("shards/0.tar", "w") as shard:
        shard.add("file.csv", "a.csv")
    for part in ("train", "t10k"):
        for name in ("images-idx3", "labels-idx1"):
            content = gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 1, 5]))
            Path(f"folder/{part}-{name}-ubyte.gz").write_bytes(content)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", sorted(NAMES))
def test_what_is_said_of_a_name_runs(name: str) -> None:
    with pytest.raises(pt.UnknownNameError, match="phlox writes this otherwise") as caught:
        getattr(data, name)
    one = data.of([1, 2, 3])
    given: dict[str, Any] = {"data": data, "dataset": one, "first": one, "second": one}
    exec(str(caught.value.hint), given | {"features": np.ones((2, 3)), "labels": np.ones(2)})


def test_a_name_that_is_near_is_said() -> None:
    with pytest.raises(pt.UnknownNameError, match=r"hint: data\.DataLoader"):
        getattr(data, "Dataloader")  # noqa: B009 - type checkers know that there is none


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("batch_size", r"data\.DataLoader\(dataset, 64\)"),
        ("num_workers", "workers="),
        ("collate_fn", "collate="),
        ("pin_memory", "leave it out"),
        ("persistent_workers", "leave it out"),
        ("prefetch_factor", "prefetch="),
    ],
)
def test_arguments_of_others_are_told_ours(word: str, hint: str) -> None:
    given: dict[str, Any] = {word: 1}
    with pytest.raises(pt.UnknownArgumentError, match=f"hint: {hint}"):
        data.DataLoader([1, 2], 2, **given)
