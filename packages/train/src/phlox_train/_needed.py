"""Libraries that only some need: imported where they are used, with what to install if not."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needed(module: str, package: str, what: str) -> Any:
    """Return a module that ``pip install`` of a package brings, for what is named.

    Raises:
        ModuleNotFoundError: where it is not installed, with the line that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise ModuleNotFoundError(
            f'[{what}] a package is not installed: got no {module}\nhint: pip install "{package}"',
            name=error.name,
        ) from None
