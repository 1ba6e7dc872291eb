"""Augmentations: torchvision's pixels and boxes, its ranges, and randomness by item alone."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_data as data
import phlox_tensor as pt
from phlox_data import augment

with np.load(Path(__file__).parents[1] / "golden" / "torchvision.npz") as _file:
    GOLDEN = dict(_file)
CASES: list[str] = GOLDEN["cases"].tolist()
HIGH, WIDE = GOLDEN["image"].shape[:2]
IMAGE = GOLDEN["image"].transpose(2, 0, 1)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def call(change: Any, item: Any, seed: int = 0) -> Any:
    fixed = (augment.Resize, augment.CenterCrop, augment.Pad, augment.Normalize)
    return change(item) if isinstance(change, fixed) else change(item, rng(seed))


def made(text: str) -> Any:
    return eval(text, dict(vars(augment)))


@pytest.mark.parametrize("place", range(len(CASES)), ids=CASES)
def test_fixed_parameters_give_the_pixels_and_boxes_of_torchvision(place: int) -> None:
    found = call(made(CASES[place]), {"image": IMAGE, "boxes": GOLDEN["boxes"], "label": 3})
    wanted = GOLDEN[f"image{place}"].transpose(2, 0, 1)
    assert (found["image"].shape, found["image"].dtype) == (wanted.shape, np.uint8)
    assert np.abs(found["image"].astype(int) - wanted.astype(int)).max() <= 1
    boxes = GOLDEN.get(f"boxes{place}", GOLDEN["boxes"] + [1, 2, 1, 2])
    assert np.allclose(found["boxes"], boxes, atol=1e-3)
    assert found["label"] == 3


MOVES = [
    "Resize((13, 50), 'nearest')",
    "CenterCrop((15, 50))",
    "Pad((1, 2, 3, 4), 9, mask_fill=9)",
    "RandomHorizontalFlip(1.0)",
    "RandomVerticalFlip(1.0)",
    "RandomCrop(20, padding=4, fill=9, mask_fill=9)",
    "RandomCrop(64, pad_if_needed=True)",
    "RandomResizedCrop(20, interpolation='nearest')",
    "RandomRotation(90, expand=True)",
    "RandomAffine(30, (0.2, 0.2), (0.5, 2.0), 20, fill=5, mask_fill=5)",
    "RandomPerspective(0.5, 1.0, 'nearest')",
]


@pytest.mark.parametrize("text", MOVES)
@pytest.mark.parametrize("seed", range(5))
def test_masks_go_where_pixels_go(text: str, seed: int) -> None:
    masks = IMAGE[:2].astype(np.int64) * 1000
    given = {"image": IMAGE[:1], "mask": IMAGE[0], "masks": masks, "name": "a"}
    found = call(made(text), given, seed)
    assert found["mask"].tolist() == found["image"][0].tolist()
    both = call(made(text), IMAGE[:2].astype(np.int32), seed)
    inside = both[0] != found["masks"][0] // 1000
    assert found["masks"].dtype == np.int64
    assert (found["masks"][:, ~inside] == both[:, ~inside] * 1000).all()
    assert set(np.unique(found["masks"][0][inside])) <= {0, 5, 9}  # the border is no class ×1000


@pytest.mark.parametrize("text", [text for text in MOVES if "Crop(6" not in text])
@pytest.mark.parametrize("seed", range(5))
def test_boxes_go_where_pixels_go(text: str, seed: int) -> None:
    image = np.zeros((1, 60, 80), np.uint8)
    image[:, 20:40, 30:60] = 255
    given = {"image": image, "boxes": np.array([[30, 20, 60, 40]], np.float32)}
    found = call(made(text.replace("9", "0").replace("fill=5", "fill=0")), given, seed)
    rows, columns = np.nonzero(found["image"][0] > 127)
    left, top, right, bottom = found["boxes"][0]
    if not len(rows):
        assert (right - left) < 2 or (bottom - top) < 2
        return
    seen = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    assert np.abs(np.array([left, top, right, bottom]) - seen).max() < 2.5


EVERY = [
    *MOVES,
    "RandomCrop(16)",
    "RandomRotation(10)",
    "ColorJitter(0.4, 0.4, 0.4, 0.1)",
    "GaussianBlur(5)",
    "RandAugment()",
    "RandomAdjustSharpness(2)",
    "RandomErasing(value='random')",
    "RandomGrayscale(0.5)",
    "RandomPosterize(3)",
    "TrivialAugmentWide()",
]


@pytest.mark.parametrize("text", EVERY)
def test_an_item_is_changed_alike_by_any_worker(text: str) -> None:
    change = made(text)
    again = pickle.loads(pickle.dumps(change))
    items = data.of([IMAGE] * 12).map(change)
    one = data.DataLoader(items, 4, seed=3, collate=list)
    two = data.DataLoader(data.of([IMAGE] * 12).map(again), 4, seed=3, collate=list, workers=3)
    for first, second in zip(one, two, strict=True):
        assert [a.tobytes() for a in first] == [b.tobytes() for b in second]


@pytest.mark.parametrize("text", EVERY)
def test_what_is_given_stays_as_it_was(text: str) -> None:
    image = IMAGE.copy()
    for seed in range(4):
        call(made(text), image, seed)
    assert image.tobytes() == IMAGE.tobytes()


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 7])
def test_any_number_of_channels_is_moved(channels: int) -> None:
    image = np.repeat(IMAGE[:1], channels, axis=0)
    for text in MOVES:
        found = call(made(text), image)
        assert len(found) == channels
        assert (found[:3] == found[:1]).all()
    floats = call(augment.Resize(20), image / np.float32(255))
    assert floats.dtype == np.float32
    assert (
        abs(floats[0] * 255 - call(augment.Resize(20), IMAGE[:1])[0]).max() < 1.01
    )  # two roundings to bytes


def test_transparency_stays() -> None:
    clear = np.concatenate([IMAGE, IMAGE[:1]])
    found = augment.ColorJitter(brightness=(0.5, 0.5))(clear, rng())
    assert (found[3] == IMAGE[0]).all()
    assert (found[:3] <= IMAGE // 2 + 1).all()


def test_probabilities_are_those_that_are_given() -> None:
    pixels = np.arange(6).reshape(1, 2, 3)
    flips = [augment.RandomHorizontalFlip(0.3)(pixels, rng(seed))[0, 0, 0] for seed in range(2000)]
    assert 0.26 < np.mean(np.array(flips) == 2) < 0.34
    kinds = {augment.RandAugment(1)(IMAGE // 2 + 100, rng(seed)).tobytes() for seed in range(400)}
    assert len(kinds) == 14 + 9  # nine of the fourteen have two signs
    parts = [augment.RandomErasing(1.0)(IMAGE * 0 + 1, rng(seed)) for seed in range(500)]
    erased = [1 - part.mean() for part in parts]
    assert 0.01 < min(erased) < 0.03
    assert 0.31 < max(erased) < 0.35


def test_crops_reach_every_place() -> None:
    places = {
        int(augment.RandomCrop((1, 2))(np.arange(12).reshape(1, 3, 4), rng(s))[0, 0, 0])
        for s in range(300)
    }
    assert places == {0, 1, 2, 4, 5, 6, 8, 9, 10}


BATCH = {"image": np.stack([IMAGE] * 3 + [255 - IMAGE]), "label": np.array([0, 1, 2, 0])}


@pytest.mark.parametrize("change", [augment.MixUp(0.5, 3), augment.CutMix(1.0, 3)])
@pytest.mark.parametrize("on", [None, "numpy"])
def test_batches_are_mixed_with_their_labels(change: Any, on: str | None) -> None:
    given: dict[str, Any] = BATCH
    if on:
        given = {name: pt.asarray(value, device=on) for name, value in BATCH.items()}
    found = {name: np.asarray(value) for name, value in change(given, rng(1)).items()}
    assert [found[name].dtype for name in ("image", "label")] == ["uint8", "float32"]
    assert np.allclose(found["label"].sum(1), 1)
    share = float(found["label"][1, 1])
    assert 0 < share < 1
    assert np.allclose(found["label"][2], [0, 1 - share, share])
    assert (found["image"][1] == BATCH["image"][1]).all()  # the one before is the same picture
    mean = (found["image"][0].astype(float) - IMAGE).sum() / (255.0 - 2.0 * IMAGE).sum()
    assert abs(mean - (1 - share)) < 0.1
    floats = change((BATCH["image"] / np.float32(255), np.eye(4, dtype=np.float32)), rng(1))
    assert floats[0].dtype == np.float32


def test_normalize_is_one_for_items_and_batches() -> None:
    change = augment.Normalize((0.1, 0.2, 0.3), (0.5, 0.6, 0.7))
    one = change({"image": IMAGE})["image"]
    wanted = (IMAGE / 255 - np.reshape([0.1, 0.2, 0.3], (3, 1, 1))) / np.reshape(
        [0.5, 0.6, 0.7], (3, 1, 1)
    )
    assert one.dtype == np.float32
    assert np.allclose(one, wanted, atol=1e-6)
    many = change(pt.asarray(BATCH["image"], device="numpy"))
    assert np.allclose(np.asarray(many)[1], wanted, atol=1e-6)
    # A device without bytes has them as int32.
    wide = change(pt.asarray(BATCH["image"].astype(np.int32), device="numpy"))
    assert np.array_equal(np.asarray(wide), np.asarray(many))


def test_boxes_that_are_gone_are_dropped_with_their_labels() -> None:
    item = {
        "image": IMAGE,
        "boxes": np.array([[0, 0, 4, 4], [12, 6, 24, 16]]),
        "labels": np.array([3, 5]),
        "masks": np.stack([IMAGE[0]] * 2),
        "name": "a",
    }
    found = augment.SanitizeBoundingBoxes()(augment.CenterCrop(10)(item))
    assert found["labels"].tolist() == [5]
    assert found["boxes"].tolist() == [[4, 2, 10, 10]]
    assert (len(found["boxes"]), len(found["masks"]), found["name"]) == (1, 1, "a")
    assert found["boxes"].dtype == np.int64
    empty = augment.CenterCrop(10)({"image": IMAGE, "boxes": np.zeros((0, 4), np.float32)})
    assert empty["boxes"].shape == (0, 4)


@pytest.mark.parametrize(
    ("text", "item", "said"),
    [
        ("RandomHorizontalFlip(1.5)", IMAGE, r"p is out of range: got 1\.5, expected 0\.0 to 1\.0"),
        ("RandomCrop(0)", IMAGE, "no size: got 0"),
        ("RandomCrop(99)", IMAGE, r"too small: got 18×26, .*\nhint: augment\.RandomCrop\(99, pad"),
        ("Resize(8, 'cubic')", IMAGE, "no such interpolation: got 'cubic', expected bicubic"),
        ("RandomRotation(8, 'lanczos')", IMAGE, "no such interpolation"),
        ("Pad((1, 2, 3))", IMAGE, "no padding"),
        ("Pad(1, (1, 2))", IMAGE, "fill is of other channels: got .*expected a number, or 3"),
        ("Resize(8)", IMAGE.transpose(1, 2, 0), r"no picture.*\nhint: image\.transpose\(2, 0, 1\)"),
        ("Resize(8)", [1, 2], "no picture: got list, expected a NumPy array"),
        ("Resize(8)", {"x": IMAGE}, "the item has no image: got x"),
        ("Resize(8)", {"image": IMAGE, "mask": IMAGE[0, :9]}, "mask does not lie on the image"),
        ("Resize(8)", {"image": IMAGE, "boxes": np.zeros((2, 5))}, "no boxes"),
        ("RandomInvert()", IMAGE / 255, "no bytes: got float64, expected uint8"),
        ("RandomPosterize(0)", IMAGE, "bits is out of range"),
        ("ColorJitter(hue=0.6)", IMAGE, "hue is out of range"),
        ("GaussianBlur(4)", IMAGE, "no middle: got 4, expected odd numbers"),
        ("GaussianBlur(99)", IMAGE, "too small"),
        ("RandAugment()", {"image": IMAGE, "boxes": []}, "masks and boxes would not follow"),
        ("RandomResizedCrop(8, scale=(1.0, 0.5))", IMAGE, "scale is out of range"),
        ("MixUp()", BATCH, r"hint: augment\.MixUp\(num_classes=10\)"),
        ("CutMix(num_classes=2)", BATCH, "labels of other classes: got 0 to 2, expected 0 to 1"),
        ("MixUp(num_classes=3)", {"image": IMAGE}, "the batch has no pictures and labels"),
        ("Normalize((0.5,), (0.0,))", IMAGE, "no such numbers"),
        ("Normalize((0.5, 0.5), (0.5, 0.5))", IMAGE, r"of 2 channels: .*expected \(2, height"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, item: Any, said: str) -> None:
    with pytest.raises(pt.PhloxError, match=said):
        call(made(text), item)


@pytest.mark.parametrize(
    "shown",
    [
        "RandomGrayscale(p=0.1)",
        "RandomInvert(p=0.5)",
        "RandomPosterize(bits=4, p=0.5)",
        "RandomSolarize(threshold=128, p=0.5)",
        "RandomAdjustSharpness(sharpness_factor=2.0, p=0.5)",
    ],
)
def test_changes_of_colors_are_shown_as_they_are_made(shown: str) -> None:
    assert repr(made(shown)) == shown
