"""Packages that only some programs need; without one, an error has the line that installs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ._errors.classes import PhloxError


class MissingPackageError(PhloxError, ModuleNotFoundError):
    """A package is not installed that only some programs need."""


@contextmanager
def needing(
    op: str, install: str, *modules: str, error: type[PhloxError] = MissingPackageError
) -> Iterator[None]:
    """Imports inside say what to install where one of these top-level modules is not there.

    Args:
        op: what needs them, as the error names it.
        install: what pip installs, such as ``phlox-data[arrow]``.
        modules: others that are not there are errors of their own.
        error: what is raised; a ``MissingPackageError`` too.
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        name = (missing.name or "").partition(".")[0]
        if name not in modules or find_spec(name):
            raise
        hint = f'pip install "{install}"'
        raise error(op, "a package is not installed", got=f"no {name}", hint=hint) from None


def needed(op: str, install: str, module: str) -> Any:
    """Return a module that ``pip install`` of something brings.

    Raises:
        MissingPackageError: where it is not installed, with the line that installs it.
    """
    with needing(op, install, module.partition(".")[0]):
        return import_module(module)
