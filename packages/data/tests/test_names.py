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
from phlox_data.augment import _NAMES as AUGMENTED

pa: Any = pytest.importorskip("pyarrow", reason="an extra of the package")
pq: Any = pytest.importorskip("pyarrow.parquet", reason="an extra of the package")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file.csv").write_text("a,b\n1,2\n")
    Path("folder/cat").mkdir(parents=True)
    Image.new("L", (2, 2)).save("folder/cat/one.png")
    Path("shards").mkdir()
    with tarfile.open("shards/0.tar", "w") as shard:
        shard.add("file.csv", "a.csv")
    Path("texts/cat").mkdir(parents=True)
    Path("texts/cat/1.txt").write_text("a cat")
    Path("file.json").write_text('{"images": [], "annotations": [], "categories": []}')
    Path("tables").mkdir()
    table = pa.table({"x": [1]})
    pq.write_table(table, "tables/file.parquet")
    with pa.ipc.new_file("tables/0.arrow", table.schema) as made:
        made.write_table(table)
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
    given["loader"] = data.DataLoader(one, 2)
    exec(str(caught.value.hint), given | {"features": np.ones((2, 3)), "labels": np.ones(2)})


@pytest.mark.parametrize("name", sorted(AUGMENTED))
def test_what_is_said_of_a_name_of_torchvision_runs(name: str) -> None:
    with pytest.raises(pt.UnknownNameError, match="phlox writes this otherwise") as caught:
        getattr(data.augment, name)
    exec(str(caught.value.hint), {"data": data, "augment": data.augment, "dataset": data.of([1])})


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
