"""Which values come apart, by their types, and what may not hide in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import is_dataclass
from typing import Any, Final, final

from ._containers import (
    DATACLASS,
    KNOWN,
    LEAVES,
    NAMED_TUPLE,
    Children,
    Flatten,
    Late,
    Node,
    Rebuild,
    attributes_of,
    check_registration,
    takes_attributes,
    with_attributes,
)
from ._errors import TreeError
from ._tensor import Tensor

_CLOSED: Final[set[type]] = set()
_REGISTERED: Final[dict[type, Node]] = {}
# What a type is: looked up once. False: a leaf; True: a leaf that may hide what should be a part.
KINDS: Final[dict[type, Node | bool]] = {}


def register(
    type: type,
    flatten: Flatten,
    rebuild: Rebuild,
    static: Callable[[Any], Any] | None = None,
    *,
    shared: bool = False,
    slot: str | None = None,
    whole: bool = False,
    late: Late | None = None,
) -> None:
    """Make values of ``type`` and of its subclasses nodes of trees.

    Args:
        type: the class of a container.
        flatten: gives the children, a dict by name or a sequence, and whatever else is needed to
            make the value again.
        rebuild: makes a value of what ``flatten`` gave, with other children.
        static: for values that never change: gives, of whatever else ``flatten`` gave, a tree of
            what tells two values of one structure apart. Without it the whole is compared.
        shared: one object that stands at several places is one part: its leaves come once, and it
            is one object again after rebuilding.
        slot: for values that never change: an attribute of theirs in which compiled functions
            keep what they found, so that they need not take a value apart again.
        whole: nobody looks whether attributes hold what ``flatten`` leaves out. Without it a
            tensor in an attribute that is neither among the children nor among the rest is an
            error when the value comes apart, since no walk would see it.
        late: for values whose only child is a tensor: gives, of whatever else ``flatten`` gave and
            a ``Coming`` tensor, a function from the tensor's primitive on the base device to a
            value that makes the tensor when somebody asks for it; None where it has to be made.

    Raises:
        ArgumentError: when the type is registered already, or one of Python's containers.
        WrongTypeError: for what is no class, and functions that are none.

    >>> from phlox_tensor import tree
    >>> class Box:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    >>> tree.register(
    ...     Box,
    ...     lambda box: ({"low": box.low, "high": box.high}, None),
    ...     lambda children, rest: Box(**children),
    ... )
    >>> tree.leaves(tree.map(lambda x: x + 1, Box(1, [2, 3])))
    [2, 3, 4]
    """
    check_registration(type, flatten, rebuild, _REGISTERED)
    taken = flatten if whole else _Looking(flatten, _nothing_omitted)
    _REGISTERED[type] = Node(taken, rebuild, False, static, shared, slot, whole, late)
    KINDS.clear()


def register_leaf(type: type) -> None:
    """Make values of ``type`` and of its subclasses leaves that nobody looks into.

    For classes that would come apart, or be looked through, and hold no tensors.
    """
    _CLOSED.add(type)
    KINDS.clear()


def is_node(value: Any) -> bool:
    """Whether a value comes apart, as opposed to a leaf."""
    return type(kind_of(type(value))) is Node


def node_of(value: Any) -> Node | None:
    """Return how a value comes apart; None for a leaf.

    Raises:
        TreeError: for a container of a type that is not known that holds a tensor.
    """
    kind = kind_of(type(value))
    if kind is True:
        nothing_hidden(value)
    return kind if type(kind) is Node else None


def is_plain(value: Any) -> bool:
    """Whether a value is of a type that holds nothing: a number, text, an array, a function."""
    cls = type(value)
    return KINDS.get(cls) is False and cls is not Tensor


def kind_of(cls: type) -> Node | bool:
    """Return how values of a type come apart; for a leaf whether it may hide a tensor."""
    found = KINDS.get(cls)
    if found is not None:
        return found
    for base in cls.__mro__:
        if base in _CLOSED:
            found = False
            break
        if base in _REGISTERED:
            found = _REGISTERED[base]
            break
        if base in KNOWN:
            named = base is tuple and hasattr(cls, "_fields")
            found = NAMED_TUPLE if named else KNOWN[base]
            if takes_attributes(cls):
                found = _looking(with_attributes(found))
            break
    if found is None:
        found = _looking(DATACLASS) if is_dataclass(cls) else _may_hide(cls)
    KINDS[cls] = found
    return found


def _may_hide(cls: type) -> bool:
    """Whether objects of an unknown class could hold tensors that no walk would see."""
    if issubclass(cls, LEAVES) or hasattr(cls, "__array__") or cls.__module__ == "functools":
        return False
    own = cls.__module__ != "builtins" and bool(getattr(cls, "__dictoffset__", 0))
    return own or issubclass(cls, Collection)


# What no walk would see


def nothing_hidden(value: Any, place: str = "") -> None:
    """Refuse an object of an unknown class that holds a tensor or a registered value.

    Raises:
        TreeError: naming the place.
    """
    attributes = getattr(value, "__dict__", None)
    parts = list(attributes.values()) if isinstance(attributes, dict) else []
    if isinstance(value, Mapping):
        parts.extend(value.values())
    elif isinstance(value, Collection):
        parts.extend(value)
    if any(_tensors_in(part, closed=True) for part in parts):
        name = type(value).__name__
        raise TreeError(
            "tree",
            f"a container of an unknown type holds a tensor{place}",
            got=name,
            expected="lists, tuples, dicts, deques, dataclasses or registered types",
            hint=f"phlox_tensor.tree.register({name}, flatten, rebuild), or a list",
        )


@final
class _Looking:
    """A function that takes values apart and looks whether they hide something."""

    __slots__ = ("_check", "plain")

    def __init__(self, plain: Flatten, check: Callable[[Any, Children, Any], None]) -> None:
        """Keep the function, and what looks at a value, its children and the rest."""
        self.plain, self._check = plain, check

    def __call__(self, value: Any) -> tuple[Children, Any]:
        children, rest = self.plain(value)
        self._check(value, children, rest)
        return children, rest


def _looking(node: Node) -> Node:
    """The node of a container whose attributes are no parts: the second half of its rest."""
    return node._replace(flatten=_Looking(node.flatten, _nothing_beside))


def _nothing_beside(value: Any, children: Children, rest: tuple[Any, dict[str, Any]]) -> None:
    """Refuse a container that holds a tensor in an attribute."""
    del children
    for name, part in rest[1].items():
        for found in _tensors_in(part):
            raise _hiding(value, name, found, f'{{"{name}": x.{name}}} beside the {_kind(value)}')


def _nothing_omitted(value: Any, children: Children, rest: Any) -> None:
    """Refuse a registered value that holds a tensor which ``flatten`` did not give."""
    parts = list(children.values() if isinstance(children, dict) else children)
    direct = {id(part) for part in parts}
    attributes = attributes_of(value)
    open_ = {n: x for n, x in attributes.items() if id(x) not in direct and not is_plain(x)}
    if not open_:
        return
    given = {id(found) for part in (parts, rest) for found in _tensors_in(part)}
    for name, part in open_.items():
        for found in _tensors_in(part):
            if id(found) not in given:
                code = f'lambda x: ({{"{name}": x.{name}, ...}}, rest) for flatten'
                raise _hiding(value, name, found, code)


def _hiding(value: Any, name: str, found: Any, hint: str) -> TreeError:
    return TreeError(
        "tree",
        f"{name} of a {_kind(value)} hides a {_kind(found)}",
        got="an attribute that is no part of the tree",
        expected="tensors in the parts alone",
        hint=hint,
    )


def _kind(value: Any) -> str:
    return type(value).__name__


def _tensors_in(part: Any, *, closed: bool = False) -> list[Any]:
    """The tensors, and the registered values that count as one thing, inside a value.

    Args:
        part: the value.
        closed: take every registered value for one thing, whatever is inside.
    """
    found: list[Any] = []
    work, seen = [part], set[int]()
    while work:
        value = work.pop()
        kind = kind_of(type(value))
        if isinstance(value, Tensor) or (
            type(kind) is Node and (kind.whole or (closed and not kind.known))
        ):
            found.append(value)
        elif type(kind) is Node and id(value) not in seen:
            seen.add(id(value))
            plain = kind.flatten.plain if isinstance(kind.flatten, _Looking) else kind.flatten
            children, _ = plain(value)
            work.extend(children.values() if isinstance(children, dict) else children)
    return found
