"""Makes the PyTorch files in tests/files, evil ones among them: python make_pytorch.py FOLDER."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

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


if __name__ == "__main__":
    main(sys.argv[1])
