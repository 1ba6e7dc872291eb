"""Attention as exporters write it, in its many ways to turn the key."""

from __future__ import annotations

from typing import Any, Final

from ..._graph import OWN, Node
from ._finder import Finder, in_place


def _scaled(f: Finder, name: str) -> tuple[str, float]:
    """A value without a number that it is multiplied with."""
    node = f.maker(name, "Mul", "Div")
    inner = f.split(node)
    if node is None or inner is None or not f.once(name):
        return name, 1.0
    if node.op == "Div":
        return (inner[0], 1 / inner[1]) if node.inputs[0] == inner[0] and inner[1] else (name, 1.0)
    return inner


def _softmax(f: Finder, name: str) -> Node | None:
    """The softmax behind a value, guarded or not against rows that see nothing."""
    found = f.maker(name, "Softmax")
    guard = f.maker(name, "Where")
    test = f.maker(guard.inputs[0], "IsNaN") if guard is not None else None
    if guard is not None and test is not None and test.inputs[0] == guard.inputs[2]:
        found = f.maker(guard.inputs[2], "Softmax") if f.number(guard.inputs[1]) == 0 else None
    known = found is not None and found.attributes.get("axis", -1) in (-1, 3)
    return found if known else None


def attention(node: Node, f: Finder) -> Node | None:
    """``softmax(query @ keyᵀ * scale + bias) @ value`` of three axes or four."""
    if node.op != "MatMul":
        return None
    shares = _softmax(f, node.inputs[0])
    if shares is None:
        return None
    scores, bias = shares.inputs[0], ""
    added = f.maker(scores, "Add")
    if added is not None and f.once(scores):
        for one, two in f.pairs(added):
            if f.maker(_scaled(f, one)[0], "MatMul") is not None:
                scores, bias = one, two
    scores, scale = _scaled(f, scores)
    product = f.maker(scores, "MatMul")
    if product is None or not f.once(scores):
        return None
    usual = [_without_root(f, name, product) for name in product.inputs]
    if all(usual):
        query, key, words = usual[0], usual[1], {}
    else:
        query, by = _scaled(f, product.inputs[0])
        key, times = _scaled(f, product.inputs[1])
        words = {"scale": scale * by * times}
    ways = (_swapped, _split, _transposed)
    whole = f.once(key) and (words or scale == 1)
    rows = next((k for way in ways if (k := way(f, key, product))), None) if whole else None
    if rows is None:
        return None
    inputs = [query, rows, node.inputs[1], *([bias] if bias else [])]
    return in_place("Attention", inputs, node, OWN, **words)


def _without_root(f: Finder, name: str, product: Node) -> str:
    """One side of a product without the root of the usual scale, as PyTorch writes it.

    It is ``sqrt(1 / sqrt(size))`` for the size of the last axis of the left side.
    """
    left, made = f.maker(product.inputs[0], "Mul"), f.maker(name, "Mul")
    if left is None or made is None or not f.once(name):
        return ""
    known = [query for query, _ in f.pairs(left)]
    return next((x for x, root in f.pairs(made) if _root_of_usual(f, root) in known), "")


def _root_of_usual(f: Finder, name: str) -> str | None:
    """The x of ``sqrt(1 / sqrt(size))`` for the size of its last axis."""
    for op, place in (("Sqrt", 0), ("Div", 1), ("Sqrt", 0)):
        step = f.maker(_uncast(f, name), op)
        if step is None or (place and f.number(step.inputs[0]) != 1):
            return None
        name = step.inputs[place]
    part = f.maker(_uncast(f, name), "Slice")
    shape = f.maker(part.inputs[0], "Shape") if part is not None else None
    if part is None or shape is None or _sizes(f, part.outputs[0], shape.inputs[0]) != (-1, None):
        return None
    return shape.inputs[0]


def _uncast(f: Finder, name: str) -> str:
    """What a cast to floats is of, or a value itself."""
    cast = f.maker(name, "Cast")
    return cast.inputs[0] if cast is not None and cast.attributes["to"] in (1, 10, 11) else name


def _order(turned: Node | None) -> tuple[int, ...]:
    """The order of axes that a transposition gives; () for none."""
    return tuple(turned.attributes.get("perm", ())) if turned is not None else ()


def _transposed(f: Finder, key: str, product: Node) -> str | None:
    """What a key is with its last two axes the other way round."""
    turned = f.maker(key, "Transpose")
    perm = _order(turned)
    if turned is None or len(perm) not in (3, 4):
        return None
    way = (*perm[:-2], perm[-1], perm[-2])
    if way == tuple(range(len(perm))):
        return turned.inputs[0]
    return _rows(f, f"{key}/rows", product, "Transpose", [turned.inputs[0]], {"perm": way})


def _rows(
    f: Finder, name: str, product: Node, op: str, inputs: list[str], words: dict[str, Any]
) -> str:
    """A key that is not turned, made in front of the product that reads it."""
    rows = Node(op, "", inputs, [name], words, product.name, 28)
    f.before.setdefault(id(product), []).append(rows)
    f.makers[name] = rows
    return name


def _split(f: Finder, key: str, product: Node) -> str | None:
    """What PyTorch's exporter turns as a stack of matrices of known sizes, and cuts into heads.

    ``x.permute(0, 2, 1).reshape(*lead, c, r)`` of r rows and c columns.
    """
    last = f.maker(key, "Reshape")
    turned = f.maker(last.inputs[0], "Transpose") if last is not None else None
    perm = _order(turned)
    if last is None or turned is None or len(perm) != 3:
        return None
    shape, stack = f.whole(last.inputs[1]), _shape(f, last.inputs[0])
    if len(shape) != 4 or min(shape) < 1 or stack is None or stack[1:] != shape[2:]:
        return None
    (source,), wanted = turned.inputs, (*shape[:2], shape[3], shape[2])
    flat = f.maker(source, "Reshape")
    if perm != (0, 2, 1):
        way = {"perm": (perm[0], perm[2], perm[1])}
        source = _rows(f, f"{key}/turned", product, "Transpose", [source], way)
    elif flat is not None and _shape(f, flat.inputs[0]) == wanted:
        return flat.inputs[0]
    sizes = f.axes(key, list(wanted))
    return _rows(f, f"{key}/rows", product, "Reshape", [source, sizes], {})


def _shape(f: Finder, name: str) -> tuple[int, ...] | None:
    """The sizes of what a constant shape makes, turned or not; one of them may be -1."""
    made = f.maker(name, "Reshape", "Transpose")
    if made is None:
        return None
    if made.op == "Reshape":
        found = f.whole(made.inputs[1])
        return found if found and 0 not in found else None
    inner, perm = _shape(f, made.inputs[0]), tuple(made.attributes.get("perm", ()))
    if inner is None or len(perm) != len(inner):
        return None
    return tuple(inner[i] for i in perm)


def _swapped(f: Finder, name: str, product: Node) -> str | None:
    """What PyTorch's exporter turns as a stack of matrices, by its sizes: all but two axes as one.

    ``x.reshape(-1, r, c).permute(0, 2, 1).reshape(*x.shape[:-2], c, r)`` of r rows and c columns.
    """
    last = f.maker(name, "Reshape")
    turned = f.maker(last.inputs[0], "Transpose") if last is not None else None
    stack = f.maker(turned.inputs[0], "Reshape") if turned is not None else None
    if last is None or turned is None or stack is None:
        return None
    source, back = stack.inputs[0], f.maker(last.inputs[1], "Concat")
    flat = f.maker(stack.inputs[1], "Concat")
    if flat is None or back is None or turned.attributes.get("perm") != (0, 2, 1):
        return None
    if len(flat.inputs) != 3 or len(back.inputs) != 3 or f.whole(flat.inputs[0]) != (-1,):
        return None
    (_, rows, columns), (front, *rest) = flat.inputs, back.inputs
    parts = [_sizes(f, each, source) for each in (front, rows, columns)]
    wanted = [(None, -2), (-2, -1), (-1, None)]
    return source if rest == [columns, rows] and parts == wanted else None


def _sizes(f: Finder, name: str, of: str) -> tuple[int | None, int | None] | None:
    """Which part of the shape of a value another one is; what lies beyond an end is None."""
    part = f.maker(name, "Slice")
    shape = f.maker(part.inputs[0], "Shape") if part is not None else None
    if part is None or shape is None or shape.inputs != [of] or len(part.inputs) != 3:
        return None
    if shape.attributes.get("start", 0) or shape.attributes.get("end") is not None:
        return None
    ends = [f.whole(each) for each in part.inputs[1:]]
    if [len(each) for each in ends] != [1, 1]:
        return None
    (start,), (end,) = ends
    return None if start < -_FAR else start, None if end > _FAR else end


_FAR: Final = 10**9  # sizes and axes are less
