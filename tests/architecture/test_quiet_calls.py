"""No call quietly does nothing: what can be read from signatures, sources and samples of calls.

A method that gives a new value changes nothing, so that a call whose result is thrown away is
known by its form: each stands in a table here, and is called. Settings and attributes are read.
"""

from __future__ import annotations

import ast
import dis
import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import phlox_nn as nn
import phlox_optim as optim
import phlox_tensor as pt
from phlox_autodiff import Autodiff, Gradients
from phlox_tensor import REGISTRY
from tests.architecture.tree import files
from tools.shell import ROOT

DEVICE = Autodiff("numpy")

Use = Callable[[Any], Any]


def keep(path: str, param: nn.Param) -> nn.Param:
    del path
    return param.with_value(param.value.detach() * 2)


def first(model: nn.Module) -> nn.Param:
    return next(iter(model.params().values()))


# What each method gives; thrown away it is gone, and the object is what it was.
MODULE: dict[str, Use] = {
    "field_names": lambda m: m.field_names(),
    "fork": lambda m: m.fork(DEVICE),
    "freeze": lambda m: m.freeze("weight"),
    "from_fields": lambda m: type(m).from_fields(weight=m.weight, bias=m.bias, settings=m.settings),
    "into_record": lambda m: m.into_record(),
    "load_record": lambda m: m.load_record(m.into_record()),
    "load_report": lambda m: m.load_report(m.into_record()),
    "map": lambda m: m.map(keep),
    "no_grad": lambda m: m.no_grad(),
    "num_params": lambda m: m.num_params(),
    "param_list": lambda m: m.param_list(),
    "params": lambda m: m.params(),
    "path": lambda m: m.path("weight"),
    "replace": lambda m: m.replace(bias=None),
    "to_device": lambda m: m.to_device("numpy"),
    "train": lambda m: m.train(DEVICE),
    "unfreeze": lambda m: m.unfreeze("weight"),
    "valid": lambda m: m.valid(),
    "with_params": lambda m: m.with_params({first(m).id: keep("", first(m))}),
    "with_training": lambda m: m.with_training(False),
}
PARAM: dict[str, Use] = {
    "lazy": lambda p: type(p).lazy(lambda: p.value, p.shape, p.dtype, p.device),
    "moved": lambda p: p.moved(lambda x: x, p.device),
    "stepped": lambda p: type(p).stepped([p], [p.value.inner()]),
    "to_device": lambda p: p.to_device(pt.Numpy()),
    "with_trainable": lambda p: p.with_trainable(False),
    "with_value": lambda p: p.with_value(p.value.detach()),
}
GRADIENTS: dict[str, Use] = {
    "get": lambda g: [g.get(leaf) for leaf in LEAVES] and g,
    "map": lambda g: g.map(lambda x: x * 2),
    "nodes": lambda g: list(g.nodes()),
    "of": lambda g: [g.of(LEAVES)],
    "proposals": lambda g: [g.proposals(LEAVES[0])],
    "proposed": lambda g: [g.proposed(LEAVES[0])],
}
OPTIMIZER: dict[str, Use] = {"into_record": lambda o: o.into_record()}
# What does something although nobody looks at what it gives.
ACTS = {
    "Gradients.pop": "forgets the gradient",
    "Module.load_file": "reads a file: an error if there is none",
    "Module.save_file": "writes a file",
    "Module.visit": "calls a function",
    "OptimizerAdaptor.load_record": "takes over states, since an optimizer has them",
    "OptimizerAdaptor.step": "moves the states; its new model is what training goes on with",
}

LEAVES: list[Any] = [pt.ones(2, device=DEVICE).require_grad()]


def module() -> nn.Linear:
    return nn.Linear(2, 3, device=DEVICE)


def gradients() -> Gradients:
    found: Any = (LEAVES[0] * 2).sum().backward()
    assert isinstance(found, Gradients)
    return found


def state_of(value: Any) -> Any:
    """What may not change by a call."""
    if isinstance(value, nn.Module):
        return {**vars(value)}, value.params()
    if isinstance(value, nn.Param):
        return value.id, value.role, value.frozen, value.shape, value.device, id(value.value)
    if isinstance(value, Gradients):
        return len(value), [value.get(leaf) is not None for leaf in LEAVES]
    return value.into_record()


TABLES: dict[str, tuple[type, Callable[[], Any], dict[str, Use]]] = {
    "Gradients": (Gradients, gradients, GRADIENTS),
    "Module": (nn.Module, module, MODULE),
    "OptimizerAdaptor": (
        optim.OptimizerAdaptor, lambda: optim.SgdConfig().init(), OPTIMIZER,
    ),
    "Param": (nn.Param, lambda: module().weight, PARAM),
}  # fmt: skip


def methods(cls: type) -> set[str]:
    """The public methods, without the hints at members of tensors."""
    own = {name: inspect.getattr_static(cls, name) for name in dir(cls) if name[0] != "_"}
    kinds = (classmethod, staticmethod)
    return {n for n, m in own.items() if isinstance(m, kinds) or inspect.isfunction(m)}


@pytest.mark.parametrize("name", TABLES)
def test_every_method_gives_something_or_acts(name: str) -> None:
    cls, _, table = TABLES[name]
    acts = {row.partition(".")[2] for row in ACTS if row.startswith(f"{name}.")}
    assert not acts & set(table)
    assert methods(cls) == acts | set(table)


@pytest.mark.parametrize(
    ("name", "method"), [(name, method) for name, (_, _, rows) in TABLES.items() for method in rows]
)
def test_a_method_whose_result_is_thrown_away_changed_nothing(name: str, method: str) -> None:
    cls, make, table = TABLES[name]
    value = make()
    before = state_of(value)
    assert table[method](value) is not None
    assert repr(state_of(value)) == repr(before)
    text = inspect.getdoc(getattr(cls, method)) or ""
    assert text.startswith(("Return", "Make", "The leaves")), f"{name}.{method} says what it gives"


# Settings


@cache
def read_names(package: str) -> frozenset[str]:
    """Every attribute that a package reads by its name."""
    found = set[str]()
    for file in files(".py"):
        if file.is_relative_to(ROOT / "packages" / package / "src"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    found.add(node.attr)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.add(node.value)  # getattr, tables of names
    return frozenset(found)


def configs() -> dict[str, Any]:
    """The classes of settings, by their package and name."""
    found: dict[str, Any] = {}
    for package, exported in (("nn", nn), ("optim", optim)):
        for name in dir(exported):
            cls = getattr(exported, name)
            if name.endswith("Config") and hasattr(cls, "__dataclass_fields__"):
                found[f"{package}.{name}"] = cls
    return found


def test_every_setting_is_read() -> None:
    unread = [
        f"{name}.{setting}"
        for name, cls in configs().items()
        for setting in cls.__dataclass_fields__
        if setting not in read_names(name.partition(".")[0])
    ]
    assert len(configs()) > 60
    assert unread == []
    assert "no_setting_of_this_name" not in read_names("nn")


# Attributes of ops

# Attributes that a reference has and does not look at.
UNREAD = {
    ("avg_pool2d_backward", "ceil_mode"): "the shape of g says how many windows there are",
    ("rnn_steps_backward", "hidden"): "slopes follow from the states behind the steps",
}


def unread(function: Any) -> set[str]:
    """Parameters that a function of Python never loads; the code says it of lambdas too."""
    code = function.__code__
    loads = ("LOAD_CLOSURE", "LOAD_DEREF", "LOAD_FAST")
    loaded = {i.argval for i in dis.get_instructions(code) if i.opname.startswith(loads)}
    count = code.co_argcount + code.co_kwonlyargcount
    return {name for name in code.co_varnames[:count] if name not in loaded}


def test_references_read_every_operand_and_attribute() -> None:
    written = {op.name: op.numpy for op in REGISTRY.values() if hasattr(op.numpy, "__code__")}
    found = {(name, each) for name, function in written.items() for each in unread(function)}
    assert len(written) > 150
    assert found == set(UNREAD)


def test_an_unread_parameter_is_found() -> None:
    def used(x: int, y: int) -> Callable[[], int]:
        return lambda: y

    assert unread(used) == {"x"}
