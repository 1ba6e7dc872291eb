"""Entries of the Autodiff table: closures over an entry of the inner backend, one form per shape.

The forms for one and two operands carry training and are written out: no argument lists, no loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from phlox_tensor import Backend, Entry, GradientError, Op

from ._checkpoint_strategies import KEPT, Checkpointing, Recipe, recipe_for
from ._graph import (
    Node,
    Primitive,
    Shape,
    is_leaf,
    is_primitive,
    make_node,
    new,
    next_id,
    ports,
    primitive,
)
from ._mode import MODE, paused
from ._plan import OpPlan, OpRule
from ._rule import rounds_otherwise


def constant(op: Op, entry: Entry) -> Entry:
    """Entry of an op that has no derivative: nothing is recorded."""
    signature = op.signature
    if signature.several:

        def many(*args: Any) -> tuple[Primitive, ...]:
            return tuple(primitive(out) for out in entry(*map(_value, args)))

        return many
    bare = not signature.attributes and not any(o.variadic for o in signature.operands)
    if bare and len(signature.operands) == 1:

        def one(a: Any) -> Primitive:
            out = new(Primitive)
            out.value = entry(a.value)
            out.node = out.recipe = None
            return out

        return one
    if bare and len(signature.operands) == 2:

        def two(a: Any, b: Any) -> Primitive:
            out = new(Primitive)
            out.value = entry(
                a.value if type(a) is Primitive else a, b.value if type(b) is Primitive else b
            )
            out.node = out.recipe = None
            return out

        return two

    def any_count(*args: Any) -> Primitive:
        return primitive(entry(*map(_value, args)))

    return any_count


def _value(item: Any) -> Any:
    if is_primitive(item):
        return item.value
    if type(item) is tuple and item and is_primitive(item[0]):
        return tuple(p.value for p in item)
    return item


def unary(entry: Entry, rule: OpRule) -> Entry:
    """Entry of an elementwise op of one operand that keeps what its rule names."""
    plan = rule.plan((True,))
    keeps_x, keeps_y = 0 in plan.places(), 1 in plan.places()

    def run(a: Any) -> Primitive:
        x = a.value
        parent = a.node
        out = new(Primitive)
        out.value = y = entry(x)
        if parent is None or (MODE.pauses and paused()):
            out.node = None
            return out
        out.node = node = new(Node)
        node.id = next_id()
        node.parents = (parent,)
        node.plan = plan
        node.shape = parent.shape
        if keeps_y:
            node.saved = (x, y) if keeps_x else (y,)
        else:
            node.saved = (x,) if keeps_x else ()
        return out

    return run


# What a step of two operands keeps, by the places that its plan names; other sets are picked.
_KEEPS = {(): 0, (0,): 1, (1,): 2, (0, 1): 3}
_OTHER = 4


def binary(op: Op, entry: Entry, rule: OpRule) -> Entry:
    """Entry of an op of two operands, tensors or numbers, that keeps what its rule names."""
    both, first, second = (rule.plan(t) for t in ((True, True), (True, False), (False, True)))
    keep_both, keep_first, keep_second = (
        _KEEPS.get(p.places(), _OTHER) for p in (both, first, second)
    )
    shape_of = rule.inner.shape_of
    broadcasts = op.op_class.broadcasts

    def run(a: Any, b: Any) -> Primitive:
        if type(a) is Primitive:
            x1 = a.value
            m = a.node
        else:
            x1 = a
            m = None
        if type(b) is Primitive:
            x2 = b.value
            n = b.node
        else:
            x2 = b
            n = None
        out = new(Primitive)
        out.value = y = entry(x1, x2)
        if (m is None and n is None) or (MODE.pauses and paused()):
            out.node = None
            return out
        out.node = node = new(Node)
        node.id = next_id()
        if m is None:
            node.parents = (n,)
            node.plan = plan = second
            keep = keep_second
            node.shape = shape_of(y)
        elif n is None:
            node.parents = (m,)
            node.plan = plan = first
            keep = keep_first
            node.shape = shape_of(y)
        else:
            node.parents = (m, n)
            node.plan = plan = both
            keep = keep_both
            shape = m.shape
            node.shape = shape if broadcasts and shape == n.shape else shape_of(y)
        if keep == 0:
            node.saved = ()
        elif keep == 3:
            node.saved = (x1, x2)
        elif keep == 4:
            pool = (x1, x2, y)
            node.saved = tuple([pool[i] for i in plan.pool])
        else:
            node.saved = (x1,) if keep == 1 else (x2,)
        return out

    return run


def _typed(op: Op) -> int | None:
    """The place of the attribute that chooses the element type of the result, if there is one."""
    names = op.attribute_names
    return names.index("dtype") if "dtype" in names else None


def with_attributes(op: Op, entry: Entry, rule: OpRule) -> Entry:
    """Entry of an op of one tensor and attributes, such as a view or a reduction."""
    plan = rule.plan((True,))
    pick, keeps_dtype = plan.pick_pool, bool(plan.dtypes)
    shape_of, dtype_of = rule.inner.shape_of, rule.inner.dtype_of
    typed = _typed(op)

    def run(a: Any, *attributes: Any) -> Primitive:
        x = a.value
        parent = a.node
        out = new(Primitive)
        out.value = y = entry(x, *attributes)
        if (
            parent is None
            or (typed is not None and attributes[typed].kind != "Float")
            or (MODE.pauses and paused())
        ):
            out.node = None
            return out
        out.node = node = new(Node)
        node.id = next_id()
        node.parents = (parent,)
        node.plan = plan
        node.shape = shape_of(y)
        saved = pick((x, y, *attributes))
        node.saved = (*saved, dtype_of(x)) if keeps_dtype else saved
        return out

    return run


def recorded(op: Op, entry: Entry, rule: OpRule) -> Entry:
    """Entry of any op with a rule: operands that may be None, attributes, several results."""
    count = len(op.signature.operands)
    single = len(op.signature.results) == 1
    typed = _typed(op)
    shape_of = rule.inner.shape_of

    def run(*args: Any) -> Any:
        values = [*args]  # operands as the inner backend has them, then attributes
        nodes: list[Node | None] = [None] * count
        for i, item in enumerate(args):
            if type(item) is Primitive:
                values[i] = item.value
                nodes[i] = item.node
        out = entry(*values)
        if (
            not any(nodes)
            or (typed is not None and args[count + typed].kind != "Float")
            or (MODE.pauses and paused())
        ):
            return primitive(out) if single else tuple(map(primitive, out))
        plan = rule.plan(tuple(map(bool, nodes)))
        if not plan.steps:
            return primitive(out) if single else tuple(map(primitive, out))
        values[count:count] = (out,) if single else out  # now they are the pool
        node = new(Node)
        node.id = next_id()
        node.parents = plan.pick_parents(nodes)
        node.plan = plan
        node.saved = _saved(plan, rule, values, values)
        if single:
            node.shape = shape_of(out)
            return primitive(out, node)
        shapes = [shape_of(r) for r in out]
        node.shape = shapes[0]
        return ports(node, out, shapes, rule.keeps_float)

    return run


def _saved(plan: OpPlan, rule: OpRule, pool: list[Any], values: list[Any]) -> tuple[Any, ...]:
    """What a node keeps, in the order in which its plan names it; ``values`` are the operands."""
    saved = plan.pick_pool(pool)
    if plan.shapes:
        saved += tuple([rule.inner.shape_of(values[i]) for i in plan.shapes])
    if plan.dtypes:
        saved += tuple([rule.inner.dtype_of(values[i]) for i in plan.dtypes])
    return saved


def recomputed(op: Op, entry: Entry, rule: OpRule, strategy: Checkpointing) -> Entry:
    """Entry of any op with a rule, on a device that may compute values again."""
    count = len(op.signature.operands)
    single = len(op.signature.results) == 1
    recomputes = strategy.recomputes(op)
    typed = _typed(op)
    inner = rule.inner
    shape_of = inner.shape_of
    entries = [entry] if single else [_one_of(entry, i) for i in range(len(op.signature.results))]

    def run(*args: Any) -> Any:
        operands, attributes = args[:count], args[count:]
        values = [a.value if type(a) is Primitive else a for a in operands]
        nodes = [a.node if type(a) is Primitive else None for a in operands]
        out = entry(*values, *attributes)
        results = (out,) if single else out
        records = any(nodes) and (typed is None or attributes[typed].kind == "Float")
        if records and not (MODE.pauses and paused()):
            plan = rule.plan(tuple(map(bool, nodes)))
            if plan.steps:
                shapes = [shape_of(r) for r in results]
                node = make_node(plan, plan.pick_parents(nodes), (), shapes[0])
                held = [_held(a) for a in operands]
                for i in plan.pool:
                    if i < count:
                        _keep(operands[i])
                recipes: list[Recipe | None] = [None] * len(results)
                if recomputes:
                    costs = {id(a.value): _cost(a, inner) for a in operands if is_primitive(a)}
                    call = (*held, *attributes)
                    recipes = [
                        recipe_for(again, call, costs, _nbytes(r, inner))
                        if _is_worth(op, shape, values, inner)
                        else None
                        for again, r, shape in zip(entries, results, shapes, strict=True)
                    ]
                kept = [r if m is None else m for r, m in zip(results, recipes, strict=True)]
                node.saved = _saved(plan, rule, [*held, *kept, *attributes], values)
                made: tuple[Primitive, ...] = (
                    (primitive(out, node),)
                    if single
                    else ports(node, results, shapes, rule.keeps_float)
                )
                for i, (each, recipe) in enumerate(zip(made, recipes, strict=True), count):
                    each.recipe = recipe
                    if i in plan.pool:
                        _keep(each)
                return made[0] if single else made
        return primitive(out) if single else tuple(map(primitive, out))

    return run


def _one_of(entry: Entry, index: int) -> Entry:
    """The entry of an op of several results for one of them."""
    return lambda *args: entry(*args)[index]


def _is_worth(op: Op, shape: Shape, operands: list[Any], inner: Backend) -> bool:
    """Whether a result is as large as what it is computed from: sums over lines are kept."""
    if not op.op_class.lines:
        return True
    return prod(shape) >= max(prod(inner.shape_of(v)) for v in operands if v is not None)


def _keep(item: Any) -> None:
    """Note that a node keeps an operand or a result."""
    if not is_primitive(item):
        return
    recipe = getattr(item, "recipe", None)
    if type(recipe) is Recipe:
        recipe.kept = True
    else:
        item.recipe = KEPT


def _cost(item: Primitive, inner: Backend) -> int:
    """Bytes that are held for a recipe alone that computes from an operand."""
    if getattr(item, "recipe", None) is not None:  # the cost of recipes is what they hold
        return 0
    return 0 if item.node is not None and is_leaf(item.node) else _nbytes(item.value, inner)


def _nbytes(value: Any, inner: Backend) -> int:
    return prod(inner.shape_of(value)) * inner.dtype_of(value).itemsize


def by_attribute(op: Op, attribute: str, cases: Mapping[str, Entry]) -> Entry:
    """Entry that chooses among others by the value of an attribute."""
    place = len(op.signature.operands) + op.attribute_names.index(attribute)

    def run(*args: Any) -> Any:
        return cases[args[place]](*args)

    return run


def _held(item: Any) -> Any:
    """What to keep of an operand: how to compute it again, where the strategy wants that."""
    if not is_primitive(item):
        return item
    recipe = getattr(item, "recipe", None)
    return recipe if type(recipe) is Recipe else item.value


def variadic(op: Op, entry: Entry, rule: OpRule) -> Entry:
    """Entry of an op of one operand that is many tensors, such as joining them."""
    inner = rule.inner
    plan = rule.plan((True,))
    if 0 in plan.pool:
        raise ValueError(f"rule of {op.name}: it may keep shapes of the tensors, not the tensors")

    def run(items: tuple[Primitive, ...], *attributes: Any) -> Primitive:
        out = entry(tuple([p.value for p in items]), *attributes)
        parents = [p.node for p in items]
        if all(node is None for node in parents) or (MODE.pauses and paused()):
            return primitive(out)
        pool = (None, out, *attributes)
        saved = [pool[i] for i in plan.pool]
        saved += [tuple([inner.shape_of(p.value) for p in items]) for _ in plan.shapes]
        saved += [tuple([inner.dtype_of(p.value) for p in items]) for _ in plan.dtypes]
        return primitive(out, make_node(plan, parents, tuple(saved), inner.shape_of(out)))

    return run


def is_recorded(args: tuple[Any, ...]) -> bool:
    """Whether a call with these arguments has to be recorded."""
    each = [p for item in args for p in (item if type(item) is tuple else (item,))]
    tracked = any(type(p) is Primitive and p.node is not None for p in each)
    return tracked and not (MODE.pauses and paused())


def expanded(op: Op, entry: Entry, formula: Entry, backend: Backend) -> Entry:
    """Entry of an op without a rule: where a gradient flows, its expansion is differentiated.

    The value is the inner entry's all the same, so that asking for a gradient changes no value:
    an expansion rounds each of its steps.
    """
    plain = constant(op, entry)
    if not rounds_otherwise(op, backend):

        def run(*args: Any) -> Any:
            return formula(*args) if is_recorded(args) else plain(*args)

        return run
    several = op.signature.several

    def run_both(*args: Any) -> Any:
        out = plain(*args)
        if not is_recorded(args):
            return out
        followed = formula(*args)
        if not several:
            return primitive(out.value, followed.node)
        return tuple([primitive(o.value, f.node) for o, f in zip(out, followed, strict=True)])

    return run_both


def undifferentiable(op: Op, entry: Entry) -> Entry:
    """Entry of an op with neither rule nor expansion: an error where a gradient would flow."""
    plain = constant(op, entry)

    def run(*args: Any) -> Any:
        if is_recorded(args):
            raise GradientError(
                op.name,
                "the op has no derivative rule and no expansion",
                hint=f"x.detach(), or declare {op.name} with expand=",
            )
        return plain(*args)

    return run
