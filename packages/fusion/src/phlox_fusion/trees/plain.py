"""Whose a class is: values of Python's own compare by ``==``, objects of users never."""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from typing import Any, Final, final

from phlox_tensor import tree
from phlox_tensor.capture import is_ours

_INSTALLED: Final = ("site-packages", "dist-packages")
_PYTHON: Final = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})


_COMPILED: Final[set[str]] = set()  # packages with compiled functions, installed or not


def follow(function: Any) -> None:
    """Count the package of a function that is compiled as the user's own."""
    module = getattr(function, "__module__", None) or type(function).__module__
    root = str(module).partition(".")[0]
    if root not in _COMPILED and not is_pythons(root):
        _COMPILED.add(root)
        is_users.cache_clear()


def is_pythons(module: str) -> bool:
    """Whether a module is one of Python's own, NumPy's or ours."""
    root = module.partition(".")[0]
    return root == "numpy" or root in sys.stdlib_module_names or is_ours(module)


@cache
def is_users(module: str) -> bool:
    """Whether a module is the user's own: no package that is installed, nor Python's own."""
    if is_ours(module) or module in ("builtins", "abc", "typing"):
        return False
    if module.partition(".")[0] in _COMPILED:
        return True
    found = sys.modules.get(module)
    if found is None or module == "__main__":
        return True
    file = getattr(found, "__file__", None)
    if file is None:
        return module not in sys.builtin_module_names and not hasattr(found, "__path__")
    return not file.startswith(_PYTHON) and not any(part in file for part in _INSTALLED)


def is_plain(cls: type) -> bool:
    """Whether equal values of a class are one: it is Python's own, NumPy's or ours."""
    return is_pythons(cls.__module__)


def is_whole(cls: type) -> bool:
    """Whether attributes are all that objects of a class have, which says when they are equal."""
    own = cls.__mro__[:-1]
    says = any("__eq__" in vars(base) for base in own)
    return says and all(is_users(base.__module__) for base in own)


def is_frozen(item: Any) -> bool:
    """Whether an object never changes: a module, or another immutable node of trees."""
    node = tree.node_of(item) if tree.is_node(item) else None
    return node is not None and node.static is not None


@final
class _Itself:
    """Stands for an object in a set, where the object's own ``==`` would decide."""

    __slots__ = ("item",)

    def __init__(self, item: object) -> None:
        self.item: Final = item

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.item is other.item

    def __hash__(self) -> int:
        return id(self.item)


def typed(member: Any) -> tuple[type, Any]:
    """What stands for a member of a set, so that 1, 1.0 and True are three, and zeros two."""
    cls = type(member)
    if cls is float:
        return cls, member.hex()
    if isinstance(member, frozenset | tuple):
        parts = map(typed, member)
        return cls, frozenset(parts) if isinstance(member, frozenset) else (*parts,)
    return cls, member if is_plain(cls) else _Itself(member)
