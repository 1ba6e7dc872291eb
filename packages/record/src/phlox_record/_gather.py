"""Joining a compact file, which has no names, with the structure it is loaded into."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from phlox_tensor import Tensor

from ._binary import name_print
from ._content import Content, Positional
from ._errors import Malformed, shown
from ._tree import Keyed, ParamEntry, Record, TensorEntry, TensorLike, dotted

_SCALARS = (bool, int, float, str, bytes)


def with_names(opened: Content, like: Record) -> Content:
    """Return a compact file with the field names of `like` in its tree.

    Raises:
        Malformed: another structure, other shapes or kinds of tensors, other names.
    """
    tree = _Join().join(opened.tree, like)
    found = name_print(like)
    if opened.names != found:
        raise Malformed(
            "the field names are not those the file was written with",
            got=f"names with hash {found.hex()}",
            expected=opened.names.hex(),
            hint="a `like` with the old names in the old order",
        )
    return replace(opened, tree=tree)


def numbered(node: Any) -> Any:
    """Return the tree of a compact file with numbers for names, to be shown to people."""
    if isinstance(node, Positional):
        return {str(index): numbered(child) for index, child in enumerate(node.values)}
    if isinstance(node, list):
        return [numbered(child) for child in node]
    return node


class _Join:
    def __init__(self) -> None:
        self._parts: list[str | int] = []

    def join(self, node: Any, like: Record) -> Any:
        if isinstance(node, Positional):
            return self._dict(node, like)
        if isinstance(node, list):
            return self._list(node, like)
        if isinstance(node, Keyed):
            if not isinstance(like, Keyed):
                raise self._differs(node, like)
            return node
        if isinstance(node, ParamEntry):
            if not isinstance(like, ParamEntry):
                raise self._differs(node, like)
            self._tensor(node.tensor, like.tensor)
        elif isinstance(node, TensorEntry):
            if not isinstance(like, Tensor | TensorEntry):
                raise self._differs(node, like)
            self._tensor(node, like)
        elif like is not None and not isinstance(like, _SCALARS):
            raise self._differs(node, like)
        return node

    def _dict(self, node: Positional, like: Record) -> dict[str, Any]:
        if not isinstance(like, dict) or isinstance(like, Keyed):
            raise self._differs(node, like)
        if len(like) != len(node.values):
            raise self._differs(node, like)
        result = {}
        for (key, below), child in zip(like.items(), node.values, strict=True):
            self._parts.append(key)
            result[key] = self.join(child, below)
            self._parts.pop()
        return result

    def _list(self, node: list[Any], like: Record) -> list[Any]:
        if not isinstance(like, list):
            raise self._differs(node, like)
        if all(child is None or isinstance(child, _SCALARS) for child in node):
            return node
        if len(like) != len(node):
            raise self._differs(node, like)
        result = []
        for index, (child, below) in enumerate(zip(node, like, strict=True)):
            self._parts.append(index)
            result.append(self.join(child, below))
            self._parts.pop()
        return result

    def _tensor(self, node: TensorLike, like: TensorLike) -> None:
        same_kind = node.dtype.kind == like.dtype.kind
        if not same_kind or tuple(node.shape) != tuple(like.shape):
            raise self._differs(node, like)

    def _differs(self, node: Any, like: Any) -> Malformed:
        return Malformed(
            f"`like` has another structure at {dotted(self._parts)}",
            got=_described(like),
            expected=_described(node),
            hint="like=model.into_record() of the module that was saved; dicts whose keys are "
            "data belong in a Keyed",
        )


def _described(node: Any) -> str:
    if isinstance(node, ParamEntry):
        return f"a parameter of {_described(node.tensor)}"
    if isinstance(node, Tensor | TensorEntry):
        return f"{node.dtype.kind} tensor of shape {tuple(node.shape)}"
    if isinstance(node, Keyed):
        return "a Keyed"
    if isinstance(node, dict):
        return f"a dict of {len(node)}"
    if isinstance(node, Positional):
        return f"a dict of {len(node.values)}"
    if isinstance(node, list):
        return f"a list of {len(node)}"
    return shown(f"{type(node).__name__} value")
