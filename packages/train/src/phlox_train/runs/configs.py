"""The config of a run, as JSON has it, and where two of them differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from phlox_nn import Config
from phlox_tensor import WrongTypeError


def config_of(config: Config | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a config as a tree of plain values."""
    if config is None:
        return None
    values = config.to_dict() if isinstance(config, Config) else dict(config)
    try:
        text = json.dumps(values, allow_nan=True)
    except TypeError as error:
        raise WrongTypeError(
            "run",
            "the config does not go into a file",
            got=str(error),
            expected="a nn.Config, or a dict of plain values",
            hint='train.Run(..., config={"layers": 2})',
        ) from None
    found: dict[str, Any] = json.loads(text)
    return found


def differences(old: Any, new: Any, path: str = "") -> list[str]:
    """Return a line for each value that differs.

    >>> differences({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}, "d": 4})
    ['b.c: 2, now 3', 'd: nothing, now 4']
    """
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for key in dict.fromkeys((*old, *new)):
            place = f"{path}.{key}" if path else str(key)
            found += differences(old.get(key, "nothing"), new.get(key, "nothing"), place)
        return found
    return [] if old == new else [f"{path or 'config'}: {old}, now {new}"]
