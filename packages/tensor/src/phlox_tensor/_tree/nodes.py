"""Which types are nodes of trees, and what may not hide in leaves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, Final, final

from .._errors.classes import TreeError
from .._values.tensor import Tensor
from ..by_class import ByClass
from .containers import (
    DATACLASS,
    KNOWN,
    LEAVES,
    NAMED_TUPLE,
    Changing,
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

_CLOSED: Final[set[type]] = set()
_REGISTERED: Final[dict[type, Node]] = {}


class Leaf(Enum):
    """What a type is whose values do not come apart."""

    OPAQUE = "may hide what should be a part"
    PLAIN = "holds nothing that a walk should see"


OPAQUE: Final = Leaf.OPAQUE
PLAIN: Final = Leaf.PLAIN


def register(  # noqa: PLR0913 - a node has as many fields
    type: type,
    flatten: Flatten,
    rebuild: Rebuild,
    static: Callable[[Any], Any] | None = None,
    *,
    shared: bool = False,
    slot: str | None = None,
    whole: bool = False,
    late: Late | None = None,
    changing: Changing | None = None,
    whole_parts: Flatten | None = None,
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
        changing: for values that never change: gives, of whatever else ``flatten`` gave, the
            attributes that hold lists and dicts, which somebody may change in place all the same.
        whole_parts: ``flatten`` for compiled functions, where a value has tensors that other walks
            leave alone. They have to be children there, and ``rebuild`` takes them.

    Raises:
        ArgumentError: when the type is registered already, or one of Python's containers.
        TreeError: later, when ``flatten`` gives no pair of children and rest, or ``rebuild``
            something else than a ``type``.
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
    if whole:
        node = Node(
            flatten, rebuild, False, static, shared, slot, whole, late, changing, whole_parts
        )
    else:
        checked = _Looking(_paired(type, flatten), _nothing_omitted)
        made = _of_type(type, rebuild)
        node = Node(checked, made, False, static, shared, slot, whole, late, changing, whole_parts)
    KINDS.forget(lambda: _REGISTERED.update({type: node}))


def register_leaf(type: type) -> None:
    """Make values of ``type`` and of its subclasses leaves that nobody looks into.

    For classes that would come apart, or be looked through, and hold no tensors.
    """
    KINDS.forget(lambda: _CLOSED.add(type))


def is_closed(type: type) -> bool:
    """Whether a type was made a leaf that nobody looks into, or one of its bases."""
    return not _CLOSED.isdisjoint(type.__mro__)


def is_node(value: Any) -> bool:
    """Whether a value comes apart, as opposed to a leaf."""
    return type(kind_of(type(value))) is Node


def node_of(value: Any) -> Node | None:
    """Return how a value comes apart; None for a leaf.

    Raises:
        TreeError: for a container of a type that is not known that holds a tensor.
    """
    kind = kind_of(type(value))
    if kind is OPAQUE:
        nothing_hidden(value)
    return kind if type(kind) is Node else None


def is_plain(value: Any) -> bool:
    """Whether a value is of a type that holds nothing: a number, text, an array, a function."""
    cls = type(value)
    return KINDS.found.get(id(cls)) is PLAIN and cls is not Tensor


def _kind_of(cls: type) -> Node | Leaf:
    for base in cls.__mro__:
        if base in _CLOSED:
            return PLAIN
        if base in _REGISTERED:
            return _REGISTERED[base]
        if base in KNOWN:
            named = base is tuple and hasattr(cls, "_fields")
            found = NAMED_TUPLE if named else KNOWN[base]
            return _looking(with_attributes(found)) if takes_attributes(cls) else found
    if is_dataclass(cls):
        return _looking(DATACLASS)
    return OPAQUE if _may_hide(cls) else PLAIN


# What a type is, looked up once.
KINDS: Final[ByClass[Node | Leaf]] = ByClass(_kind_of)
kind_of: Final = KINDS.of


def _may_hide(cls: type) -> bool:
    """Whether objects of an unknown class could hold tensors that no walk would see."""
    if issubclass(cls, LEAVES) or hasattr(cls, "__array__") or cls.__module__ == "functools":
        return False
    own = cls.__module__ != "builtins" and bool(getattr(cls, "__dictoffset__", 0))
    return own or issubclass(cls, Collection)


# What functions of registered types give


def _paired(cls: type, flatten: Flatten) -> Flatten:
    """The function, which has to give a pair of children and whatever else."""

    def checked(value: Any) -> tuple[Children, Any]:
        found: Any = flatten(value)
        if not isinstance(found, tuple) or len(found) != 2:
            raise _no_pair(cls, f"a {_kind(found)}")
        if not isinstance(found[0], dict | Sequence) or isinstance(found[0], str):
            raise _no_pair(cls, f"a {_kind(found[0])} as children")
        return found

    return checked


def _no_pair(cls: type, got: str) -> TreeError:
    return TreeError(
        "tree",
        f"flatten of {cls.__name__} gives no pair",
        got=got,
        expected="(children, rest), children a dict by name or a list",
        hint=f'lambda x: ({{"part": x.part}}, None) for flatten of {cls.__name__}',
    )


def _of_type(cls: type, rebuild: Rebuild) -> Rebuild:
    """The function, which has to give a value of the class."""

    def checked(children: Any, rest: Any) -> Any:
        made = rebuild(children, rest)
        if not isinstance(made, cls):
            raise TreeError(
                "tree",
                f"rebuild of {cls.__name__} gives something else",
                got=f"a {_kind(made)}",
                expected=f"a {cls.__name__}",
                hint=f"lambda children, rest: {cls.__name__}(...), which returns what it makes",
            )
        return made

    return checked


# What no walk would see


def nothing_hidden(value: Any, place: str = "") -> None:
    """Refuse an object of an unknown class that holds a tensor or a registered value.

    Raises:
        TreeError: naming the place; its hint is what the class has as ``instead_in_trees``, if any.
    """
    attributes = getattr(value, "__dict__", None)
    parts = list(attributes.values()) if isinstance(attributes, dict) else []
    if isinstance(value, Mapping):
        parts.extend(value.values())
    elif isinstance(value, Collection):
        parts.extend(value)
    if any(_tensors_in(part, closed=True) for part in parts):
        name = type(value).__name__
        register = f"phlox_tensor.tree.register({name}, flatten, rebuild), or a list"
        raise TreeError(
            "tree",
            f"a container of an unknown type holds a tensor{place}",
            got=name,
            expected="lists, tuples, dicts, deques, dataclasses or registered types",
            hint=getattr(type(value), "instead_in_trees", register),
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
    # Registered values among the parts look for themselves: all the way down only if need be.
    for closed in (True, False):
        given = {id(found) for part in (parts, rest) for found in _tensors_in(part, closed=closed)}
        left = {
            name: [x for x in _tensors_in(part, closed=closed) if id(x) not in given]
            for name, part in open_.items()
        }
        if not any(left.values()):
            return
    name = next(name for name, found in left.items() if found)
    code = f'lambda x: ({{"{name}": x.{name}, ...}}, rest) for flatten'
    raise _hiding(value, name, left[name][0], code)


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
            type(kind) is Node and (kind.whole or (closed and not kind.builtin))
        ):
            found.append(value)
        elif type(kind) is Node and id(value) not in seen:
            seen.add(id(value))
            plain = kind.flatten.plain if isinstance(kind.flatten, _Looking) else kind.flatten
            children, _ = plain(value)
            work.extend(children.values() if isinstance(children, dict) else children)
    return found
