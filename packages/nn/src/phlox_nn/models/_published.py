"""How a published folder is described: its settings by name, and what its files are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from phlox_tensor import RecordError
from phlox_tensor.names import some

from ..loading.report import Layout
from ._parts import ModelConfig

Json = Mapping[str, Any]


class Published(NamedTuple):
    """How files of an architecture are read.

    Attributes:
        config: makes the settings of ``config.json``.
        layout: of the weights.
        prefix: what names may begin with, other than here.
        unused: pattern of names that files hold and no model needs.
        words: parts of names there, and what they are here.
    """

    config: Callable[[Json], ModelConfig]
    layout: Layout = "pytorch"
    prefix: str = ""
    unused: str = r"rotary_emb\.inv_freq$"
    words: Mapping[str, str] = MappingProxyType({})


def need(given: Json, name: str) -> Any:
    """Return a setting that must be there."""
    if name not in given:
        known = some(sorted(map(str, given))) or "nothing"
        raise RecordError("load", f"config.json has no {name}", got=known)
    return given[name]


def number(given: Json, name: str) -> float:
    """Return a setting that must be a number."""
    value = need(given, name)
    if not isinstance(value, int | float):
        raise RecordError("load", f"{name} is no number", got=repr(value), expected="a number")
    return float(value)


def word(name: str, value: Any, known: Mapping[Any, Any]) -> Any:
    """Return what a word of a setting is here."""
    if isinstance(value, list | dict) or value not in known:
        expected = ", ".join(sorted(map(str, known)))
        raise RecordError("load", f"{name} is not built", got=repr(value), expected=expected)
    return known[value]
