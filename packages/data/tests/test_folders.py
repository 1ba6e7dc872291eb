"""Folders: several labels, masks beside pictures, COCO, documents, tokens."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import phlox_data as data
import phlox_tensor as pt
from phlox_data import augment


def picture(path: Path, pixels: Any) -> Any:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(pixels, np.uint8)).save(path)
    return pixels


def test_pictures_may_have_several_labels(tmp_path: Path) -> None:
    for name in ("a.png", "deep/b.png", "c.png"):
        picture(tmp_path / name, np.ones((2, 3)))
    labels = {"deep/b.png": ["cat", "dog"], "a.png": [], "c.png": ["ant"]}
    found = data.images(tmp_path, labels=labels, mode="L")
    assert found.classes == ("ant", "cat", "dog")
    batch = data.DataLoader(found, 3).at(0, 0)
    assert batch["label"].tolist() == [[0, 1, 1], [0, 0, 0], [1, 0, 0]]
    assert batch["label"].dtype == np.float32
    with pytest.raises(data.DataError, match=r"labels of no pictures: got x\.png, expected files"):
        data.images(tmp_path, labels={"x.png": ["a"]})
    with pytest.raises(data.DataError, match=r"got a\.png: 'cat', expected a list of labels"):
        data.images(tmp_path, labels={"a.png": "cat"})


def test_drafts_are_nearly_the_same(tmp_path: Path) -> None:
    small = np.random.default_rng(0).integers(0, 256, (6, 8, 3))
    whole = Image.fromarray(small.astype(np.uint8)).resize((320, 240), Image.Resampling.BICUBIC)
    (tmp_path / "a").mkdir()
    whole.save(tmp_path / "a" / "1.jpg")
    slow, fast = (data.images(tmp_path, size=(30, 40), draft=d)[0]["image"] for d in (False, True))
    assert slow.shape == fast.shape == (3, 30, 40)
    assert 0 < np.abs(slow.astype(int) - fast).mean() < 4
    with pytest.raises(pt.ArgumentError, match="a draft needs a size"):
        data.images(tmp_path, draft=True)


def test_masks_of_one_bit_are_0_and_1(tmp_path: Path) -> None:
    shape = np.array([[True, False], [False, True]])
    picture(tmp_path / "images" / "a.png", np.ones((2, 2)))
    (tmp_path / "masks").mkdir()
    Image.fromarray(shape).save(tmp_path / "masks" / "a.png")
    for size in (None, (2, 2)):
        (pair,) = data.segmentation(tmp_path / "images", tmp_path / "masks", size=size)
        assert pair["mask"].dtype == np.uint8
        assert pair["mask"].tolist() == shape.astype(int).tolist()


def test_masks_go_with_their_pictures(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    masks = {}
    for name in ("a", "deep/b"):
        picture(tmp_path / "images" / f"{name}.jpg", rng.integers(0, 256, (8, 12, 3)))
        masks[name] = picture(tmp_path / "masks" / f"{name}.png", rng.integers(0, 5, (8, 12)))
    pairs = data.segmentation(tmp_path / "images", tmp_path / "masks")
    assert [pair["mask"].tolist() for pair in pairs] == [m.tolist() for m in masks.values()]
    assert pairs[0]["image"].shape == (3, 8, 12)
    small = data.segmentation(tmp_path / "images", tmp_path / "masks", size=(4, 6))[1]
    assert small["image"].shape[1:] == small["mask"].shape == (4, 6)
    assert {*np.unique(small["mask"])} <= {0, 1, 2, 3, 4}
    cut = pairs.map(augment.RandomCrop(5)).item(1, epoch=3)
    assert cut["image"].shape[1:] == cut["mask"].shape == (5, 5)
    picture(tmp_path / "images" / "c.png", np.ones((2, 3)))
    with pytest.raises(data.DataError, match="do not go together: got c, expected as many"):
        data.segmentation(tmp_path / "images", tmp_path / "masks")
    picture(tmp_path / "masks" / "c.png", np.ones((3, 3)))
    rows = data.segmentation(tmp_path / "images", tmp_path / "masks")
    with pytest.raises(data.DataError, match=r"has another size: got \(3, 3\), expected \(2, 3\)"):
        rows[1]
    picture(tmp_path / "masks" / "c.png", np.ones((2, 3, 3)))
    with pytest.raises(data.DataError, match=r"c\.png is no mask: got RGB"):
        rows[1]
    (tmp_path / "masks" / "c.png").write_bytes(b"nothing")
    with pytest.raises(data.DataError, match=r"c\.png is no whole picture"):
        rows[1]


def test_masks_of_palettes_are_places_in_them(tmp_path: Path) -> None:
    gray = np.array([[0, 1], [2, 1]], np.uint8)
    picture(tmp_path / "images" / "a.png", gray)
    made = Image.frombytes("P", (2, 2), gray.tobytes())
    made.putpalette([9, 9, 9, 0, 255, 0, 255, 0, 0])
    (tmp_path / "masks").mkdir()
    made.save(tmp_path / "masks" / "a.png")
    pair = data.segmentation(tmp_path / "images", tmp_path / "masks", mode="L")[0]
    assert pair["mask"].tolist() == pair["image"][0].tolist() == gray.tolist()


# COCO


def written(folder: Path, **changes: Any) -> Path:
    picture(folder / "a.png", np.zeros((20, 30, 3)))
    picture(folder / "b.png", np.zeros((6, 5, 3)))
    told: dict[str, Any] = {
        "images": [
            {"id": 7, "file_name": "a.png", "height": 20, "width": 30},
            {"id": 9, "file_name": "b.png", "height": 6, "width": 5},
        ],
        "categories": [{"id": 44, "name": "dog"}, {"id": 3, "name": "cat"}],
        "annotations": [
            {
                "image_id": 7,
                "category_id": 44,
                "bbox": [1, 2, 10, 5],
                "area": 40.5,
                "id": 1,
                "segmentation": [[2, 3, 12, 3, 12, 9, 2, 9]],
            },
            {
                "image_id": 7,
                "category_id": 3,
                "bbox": [0.5, 0, 3, 4],
                "iscrowd": 1,
                "id": 2,
                "segmentation": {"size": [20, 30], "counts": [5, 10, 585]},
            },
        ],
    }
    (folder / "told.json").write_text(json.dumps(told | changes))
    return folder / "told.json"


def test_objects_of_coco_are_items(tmp_path: Path) -> None:
    found = data.coco(written(tmp_path), tmp_path, masks=True)
    assert found.classes == ("cat", "dog")
    first, second = found
    assert first["boxes"].tolist() == [[1, 2, 11, 7], [0.5, 0, 3.5, 4]]
    assert [found.classes[label] for label in first["labels"]] == ["dog", "cat"]
    assert (first["areas"].tolist(), first["crowds"].tolist()) == ([40.5, 0], [False, True])
    assert first["masks"].shape == (2, 20, 30)
    assert first["masks"][1].T.ravel().nonzero()[0].tolist() == [*range(5, 15)]
    assert (second["boxes"].shape, second["masks"].shape) == ((0, 4), (0, 6, 5))
    assert [int(item["id"]) for item in found] == [7, 9]
    moved = augment.SanitizeBoundingBoxes()(augment.Resize((40, 60))(first))
    assert moved["boxes"][0].tolist() == [2, 4, 22, 14]
    with data.DataLoader(found, 2, collate=list) as loader:
        assert [len(item["labels"]) for item in next(iter(loader))] == [2, 0]


def test_masks_are_those_of_pycocotools(tmp_path: Path) -> None:
    mask: Any = pytest.importorskip("pycocotools.mask", reason="the other side of the test")
    rng = np.random.default_rng(0)
    path = written(tmp_path)
    told = json.loads(path.read_text())
    for _ in range(20):
        wanted = (rng.random((20, 30)) < rng.random()).astype(np.uint8)
        packed = mask.encode(np.asfortranarray(wanted))
        shape = {"size": packed["size"], "counts": packed["counts"].decode()}
        told["annotations"][1]["segmentation"] = shape
        points = (rng.random((6, 2)) * [30, 20]).ravel().tolist()
        told["annotations"][0]["segmentation"] = [points]
        path.write_text(json.dumps(told))
        masks = data.coco(path, tmp_path, masks=True)[0]["masks"]
        assert masks[1].tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"categories": []}, "KeyError: 44"),
        ({"images": 3}, "is no such file"),
        ({"annotations": [{"image_id": 1, "category_id": 3, "bbox": [0, 0, 1, 1]}]}, "KeyError: 1"),
        ({"annotations": [{"image_id": 7, "category_id": 3}]}, "KeyError: 'bbox'"),
        ({"images": [{"id": 7, "file_name": "../a.png"}]}, "outside of the folder: got ../a.png"),
    ],
)
def test_annotations_that_do_not_fit_are_refused(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(data.DataError, match=said):
        data.coco(written(tmp_path, **changes), tmp_path)


def test_pictures_and_masks_of_another_size_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    found = data.coco(path, tmp_path, masks=True)
    picture(tmp_path / "a.png", np.zeros((19, 30, 3)))
    with pytest.raises(data.DataError, match=r"a\.png has another size: got 19×30"):
        found[0]
    told = json.loads(written(tmp_path).read_text())
    told["annotations"][1]["segmentation"]["counts"] = [5, 10]
    path.write_text(json.dumps(told))
    with pytest.raises(data.DataError, match=r"a mask of .*a\.png does not fit: got 15 pixels"):
        data.coco(path, tmp_path, masks=True)[0]
    path.write_text("{")
    with pytest.raises(data.DataError, match="is no such file"):
        data.coco(path, tmp_path)


# Documents and tokens


def test_documents_are_whole_files(tmp_path: Path) -> None:
    for name, text in (("neg/2.txt", "bad\nfilm"), ("neg/1.txt", "é"), ("pos/1.txt", "")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = data.documents(tmp_path)
    assert found.classes == ("neg", "pos")
    batch = data.DataLoader(found, 3, workers=2)
    (only,) = batch
    assert only["text"] == ["é", "bad\nfilm", ""]
    assert only["label"].tolist() == [0, 0, 1]
    (tmp_path / "neg" / "1.txt").write_bytes(b"\xff")
    with pytest.raises(data.DataError, match=r"1\.txt is no UTF-8"):
        found[0]
    (tmp_path / "new").mkdir()
    with pytest.raises(data.DataError, match="the class 'new' has no files"):
        data.documents(tmp_path)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int64"])
@pytest.mark.parametrize("numpy", [False, True])
def test_tokens_are_windows_of_a_file(dtype: Any, numpy: bool, tmp_path: Path) -> None:
    numbers = np.arange(103).astype(dtype)
    file = tmp_path / ("a.npy" if numpy else "a.bin")
    if numpy:
        np.save(file, numbers)
    else:
        numbers.tofile(file)
    found = data.tokens(file, 10, step=7, dtype="uint16" if numpy else dtype)
    assert len(found) == 14
    wanted = [numbers[i * 7 : i * 7 + 10].tolist() for i in range(14)]
    assert [window.tolist() for window in found] == wanted
    loader = data.DataLoader(pickle.loads(pickle.dumps(found)), 4, shuffle=True)
    rows = [row for batch in loader for row in batch.tolist()]
    assert sorted(rows) == wanted
    assert loader.at(0, 0).dtype == np.int64
    assert len(data.tokens(file, 10, dtype=dtype)) == 10


def test_files_of_other_things_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"abc")
    with pytest.raises(data.DataError, match=r"a\.bin is no file of tokens"):
        data.tokens(tmp_path / "a.bin", 1)
    (tmp_path / "a.bin").write_bytes(b"abcd")
    with pytest.raises(data.DataError, match="shorter than a window: got 2 tokens, expected 3"):
        data.tokens(tmp_path / "a.bin", 3)
    (tmp_path / "a.bin").write_bytes(b"")
    with pytest.raises(data.DataError, match="no file of tokens"):
        data.tokens(tmp_path / "a.bin", 3)
    np.save(tmp_path / "b.npy", np.eye(3))
    with pytest.raises(data.DataError, match=r"holds no tokens: got float64 \(3, 3\)"):
        data.tokens(tmp_path / "b.npy", 1)
    with pytest.raises(pt.ArgumentError, match="length is no such number"):
        data.tokens(tmp_path / "a.bin", 0)


@pytest.mark.parametrize("size", [4, (0, 4), (4.0, 4), (4,)])
def test_a_size_that_is_none_is_refused_before_the_first_picture(size: Any, tmp_path: Path) -> None:
    with pytest.raises(pt.ArgumentError, match=r"no such size: .* expected \(height, width\)"):
        data.images(tmp_path, size=size)
