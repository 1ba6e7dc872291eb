"""Makes the PyTorch files in tests/files, evil ones among them: python make_pytorch.py FOLDER."""

from __future__ import annotations

import argparse
import json
import sys
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy
import torch  # pyright: ignore[reportMissingImports] - in .x/peers


class Evil:
    """Runs something when it is unpickled as usual."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return print, ("executed",)


def main(folder: str) -> None:
    """Write every file."""
    place = Path(folder)
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 2)
    grid = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    state = {
        "linear.weight": layer.weight.detach(),
        "linear.bias": layer.bias.detach(),
        "tied.weight": layer.weight.detach(),
        "transposed": grid.T,
        "part": grid[1:, 1:3],
        "half": grid.half(),
        "brain": grid.bfloat16(),
        "double": grid.double(),
        "ints": torch.arange(-2, 3),
        "bytes": torch.arange(3, dtype=torch.uint8),
        "mask": torch.tensor([True, False]),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
    }
    torch.save(state, place / "state.pt")
    arrays = {name: value.float().numpy().tolist() for name, value in state.items()}
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    whole = {"model": layer.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
    torch.save({**whole, "shape": torch.Size([2, 3]), "dtype": torch.float16}, place / "whole.pt")
    torch.save(torch.nn.Sequential(layer).state_dict(), place / "parameters.pth")
    torch.save({"weight": layer.weight, "evil": Evil()}, place / "evil.pt")
    torch.save(layer, place / "module.pt")
    torch.save(state, place / "old.pt", _use_new_zipfile_serialization=False)
    moments = optimizer.state_dict()["state"][0]
    arrays["exp_avg"] = moments["exp_avg"].numpy().tolist()
    (place / "state.json").write_text(json.dumps(arrays))
    of_all_kinds(place)


def of_all_kinds(place: Path) -> None:
    """Write what ``weights_only`` of PyTorch 2.15 allows, and what a record cannot hold."""
    vector = torch.tensor([1 + 2j, 3 - 4j])
    other = vector.clone()
    tagged = torch.nn.Parameter(torch.arange(3.0))
    tagged.tag = "x"  # pyright: ignore[reportAttributeAccessIssue] - Python lets it
    tensors = {
        "neg": vector.conj().imag,
        "neg_part": vector.conj().imag[1:],
        "real": vector.conj().real,
        "uint16": torch.tensor([0, 1, 2**16 - 1], dtype=torch.uint16),
        "uint32": torch.tensor([[0, 1], [2, 2**32 - 1]], dtype=torch.uint32)[:, 1],
        "uint64": torch.tensor([0, 1, 2**64 - 1], dtype=torch.uint64),
        "buffer": torch.nn.Buffer(torch.arange(3.0)),
        "tagged": tagged,
    }
    steps = torch.optim.lr_scheduler.MultiStepLR(torch.optim.SGD([tagged]), [2, 5, 5])
    plain = {
        "schedule": steps.state_dict()["milestones"],
        "device": torch.device("cuda:1"),
        "set": {3},
        "frozen": frozenset([4]),
        "bytes": b"abc\xff",
        "empty": b"",
        "array": bytearray(b"abc"),
        "complex": 1 + 2j,
        "size": torch.Size([2, 3]),
        "dtype": torch.float8_e4m3fn,
        "layout": torch.sparse_coo,
        "default": defaultdict(list, {"a": [1]}),
        "ordered": OrderedDict(a=1),
        "keys": {(1, "a"): 1, torch.float16: 2, 3: 4},
        "long": -(2**62),
    }
    unread = {
        "complex": other,
        "conj": other.conj(),
        "float8": torch.ones(4, 3).to(torch.float8_e4m3fn),
        "quantized": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
        "sparse": torch.eye(2).to_sparse(),
        "meta": torch.ones(2, device="meta"),
        "storage": torch.ones(2).untyped_storage(),
        "numpy": numpy.ones(2),
        "options": argparse.Namespace(rate=0.1),
        "layer": torch.nn.Linear(2, 2),
        "function": torch.nn.functional.gelu,
        "long": 2**70,
        "path": Path("a"),
    }
    # The older form keeps the source of classes, and where it lies on this machine.
    serialization: Any = torch.serialization
    serialization.get_source_lines_and_file = lambda kind: (["class Linear:"], 1, "linear.py")
    for name, old in (("kinds.pt", False), ("kinds_old.pt", True)):
        whole = {**tensors, **plain, "unread": unread}
        torch.save(whole, place / name, _use_new_zipfile_serialization=not old)
    values = {name: value.detach().tolist() for name, value in tensors.items()}
    (place / "kinds.json").write_text(json.dumps(values))


if __name__ == "__main__":
    main(sys.argv[1])
