"""Files that take their place when they are whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import onnx

# Larger files keep their weights beside them; protobuf ends at 2 GiB.
EXTERNAL: Final = 1 << 30


@contextmanager
def written(model: onnx.ModelProto, target: Path) -> Iterator[Path]:
    """Write a model beside its place, let the block look at it, and put it there if that passes.

    A link at the place stays, and the file that it names is replaced; one in the place of the
    weights is replaced itself.
    """
    place = target.resolve() if target.is_symlink() else target
    large = sum(t.ByteSize() for t in model.graph.initializer) > EXTERNAL
    with tempfile.TemporaryDirectory(prefix=".phlox-", suffix=".tmp", dir=place.parent) as folder:
        fresh = Path(folder) / place.name
        data = f"{place.name}.data"
        beside: dict[str, Any] = {"save_as_external_data": True, "location": data}
        onnx.save_model(model, str(fresh), **(beside if large else {}))
        yield fresh
        if large:  # without the old model, nobody reads it with the new weights
            place.unlink(missing_ok=True)
            os.replace(Path(folder) / data, place.with_name(data))
        if place.exists() and not place.is_file():  # a device or a pipe stays what it is
            place.write_bytes(fresh.read_bytes())
        else:
            os.replace(fresh, place)
