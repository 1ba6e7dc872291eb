"""Forms of arguments, to say which of them keeps changing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from ..trees.flat import flat, twice
from ..trees.layout import (
    Layout,
    NodePart,
    NumberPart,
    Part,
    StatePart,
    StaticPart,
    TensorPart,
    equal_parts,
    flatten,
)
from ..trees.static import ALONE, same_static

Form = dict[str, Layout]
"""The layout of each argument, by what it is called."""


class Arguments(NamedTuple):
    """Arguments of a call, taken apart.

    Attributes:
        layout: of all of them, as ``(args, kwargs)``.
        leaves: of all of them, where what stands at two places comes once.
        order: for each leaf of each argument its place among these.
    """

    form: Form
    layout: Layout
    leaves: Sequence[Any]
    order: tuple[int, ...]


def arguments_of(
    args: tuple[Any, ...], kwargs: dict[str, Any], key: Sequence[Any] | None, leaves: list[Any]
) -> Arguments:
    """Take arguments apart, of which most is known.

    Args:
        key: has the layouts of all that is no leaf by itself; None in a transform.
        leaves: of each argument, as ``key_of`` gives them.
    """
    known = (part for part in key or () if type(part) is Layout)
    layouts = [
        (None if type(item) in ALONE else next(known, None)) or flat(item)[0]
        for item in (*args, *kwargs.values())
    ]
    names = (*[f"argument {place}" for place in range(len(args))], *kwargs)
    form = dict(zip(names, layouts, strict=True))
    if key is not None and not twice(leaves):
        whole = (*layouts[: len(args)],), dict(zip(kwargs, layouts[len(args) :], strict=True))
        return Arguments(form, flatten(whole)[0], leaves, (*range(len(leaves)),))
    layout, found, known_by = flatten((args, kwargs))
    by_tensor = {id(p): place for place, p in enumerate(known_by) if p is not None}
    numbers = (place for place, p in enumerate(known_by) if p is None)
    order = [
        next(numbers) if p is None else by_tensor[id(p)]
        for item in (*args, *kwargs.values())
        for p in flatten(item)[2]
    ]
    return Arguments(form, layout, found, (*order,))


def most_changed(forms: Sequence[Form]) -> str:
    """Return text that says how the argument of which there are most layouts changed last.

    Empty where there are fewer than two of all.
    """
    seen: dict[str, dict[Layout, None]] = {}
    for form in forms:
        for name, layout in form.items():
            seen.setdefault(name, {})[layout] = None
    name = max(seen, key=lambda name: len(seen[name]), default="")
    if not name or len(seen[name]) < 2:
        return ""
    *_, before, after = seen[name]
    for a, b in _other_parts(before, after):
        if isinstance(a, NodePart) and isinstance(b, NodePart) and _shown(a) == _shown(b):
            return f": {name} had {_told(a, b)}, then {_told(b, a)}{_of_ids(a, b)}"
        if isinstance(a, StatePart) and isinstance(b, StatePart) and a.type is b.type:
            return f": {name} was {_shown(a)} {_first_other(a.static, b.static)}"
        return f": {name} was {_shown(a)}, then {_shown(b)}{_advice(b)}"
    return ""


def other_form(mine: Layout, own: Layout) -> str:
    """Return text that says where two layouts differ first."""
    a, b = next(_other_parts(mine, own), (None, None))
    return f"{_shown(a)}, not {_shown(b)}"


def _other_parts(before: Layout, after: Layout) -> Iterator[tuple[Part | None, Part | None]]:
    for a, b in zip_longest(before.parts, after.parts):
        if a is None or b is None or not equal_parts(a, b):
            yield a, b


def _shown(part: Part | None) -> str:
    if isinstance(part, TensorPart):
        return f"{part.spec.dtype.name}{[*part.spec.shape]} on {part.levels[0][0]!r}"
    if isinstance(part, StaticPart):
        return _short(part.value)
    if isinstance(part, NumberPart):
        return part.type.__name__
    if isinstance(part, StatePart):
        return part.type.__name__
    if isinstance(part, NodePart):
        return f"{part.type.__name__} of {part.size} parts"
    return "absent" if part is None else "the same object again"


def _first_other(a: Any, b: Any) -> str:
    """Which setting two trees of them part in."""
    name = ""
    while type(a) is type(b) and type(a) in (tuple, dict) and len(a) == len(b):
        pairs = zip(*((x.items() if type(x) is dict else x) for x in (a, b)), strict=True)
        if type(a) is tuple and len(a) == 2 and type(a[0]) is str:
            name = f"{a[0]}="
        a, b = next((x, y) for x, y in pairs if not same_static(x, y))
    return f"with {name}{_short(a)}, then with {name}{_short(b)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def ids_in(form: Form) -> Counter[str]:
    """Count by type the parts of arguments that an id identifies, such as parameters."""
    parts = [part for layout in form.values() for part in layout.parts]
    return Counter(p.type.__name__ for p in parts if isinstance(p, NodePart) and p.node.whole)


def _told(part: NodePart, other: NodePart) -> str:
    """A node, by what is constant in it and differs from that of another one."""
    own, others = (p.static if type(p.static) is tuple else (p.static,) for p in (part, other))
    if part.keys is not None or len(own) != len(others):
        own, others = ((*(p.keys or ()), *given) for p, given in ((part, own), (other, others)))
    differing = [a for a, b in zip_longest(own, others) if not same_static(a, b)]
    return f"{_shown(part)} with {_short(differing[0]) if differing else ''}"


def _of_ids(part: NodePart, other: NodePart) -> str:
    """What to do where only an id, which comes first, is another one."""
    a, b = part.static, other.static
    if not part.node.whole or type(a) is not tuple or type(b) is not tuple:
        return ""
    if same_static(a[:1], b[:1]) or not same_static(a[1:], b[1:]):
        return ""
    return (
        "; another model is another version, as its parameters have other ids: give one model "
        "the values of the others by model.map"
    )


def _advice(part: Part | None) -> str:
    if isinstance(part, StaticPart) and hasattr(part.value, "__float__"):
        return f"; float({_shown(part)}) may be another at each call"
    return ""
