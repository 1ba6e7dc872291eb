"""Arrays of other libraries: whether an object is one, and how errors name its type."""

from __future__ import annotations

from typing import Final

from .own_modules import is_ours

_PLAIN: Final = ("builtins", "numpy")  # whose names say what they are


def is_array(item: object) -> bool:
    """Whether an object is what ``px.asarray`` reads as numbers, in the words of its type."""
    kind = type(item)
    return hasattr(kind, "__dlpack__") or hasattr(kind, "__array__")


def type_name(item: object) -> str:
    """Return the name of a type; of an array of another library with its module, torch.Tensor."""
    kind = type(item)
    module = kind.__module__
    if not is_array(item) or module in _PLAIN or is_ours(module):
        return kind.__name__
    return f"{module}.{kind.__qualname__}"
