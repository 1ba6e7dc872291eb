"""Objects whose errors translate names of other libraries into ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Never

from .._errors.unknown_name import unknown_name


class Named:
    """Base of objects that say what an attribute is here that another library has."""

    _elsewhere: ClassVar[Mapping[str, str]]  # such names, and what to type
    _owner: ClassVar[str]  # what hints call such an object

    if not TYPE_CHECKING:  # checkers would take any name for one that exists

        def __getattr__(self, name: str) -> Never:
            """Say what is meant."""
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            known = (each for each in dir(self) if each[0] != "_")
            raise unknown_name(name, self._owner, self._elsewhere, known)
