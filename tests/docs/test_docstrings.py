"""Every example of a docstring runs, with the names of its module and of its package."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from doctest import ELLIPSIS, DocTest, DocTestFinder, DocTestRunner
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import numpy as np
import pytest

import phlox as px

PACKAGES = (
    "phlox",
    "phlox_autodiff",
    "phlox_data",
    "phlox_distributed",
    "phlox_fusion",
    "phlox_kernels",
    "phlox_nn",
    "phlox_onnx",
    "phlox_optim",
    "phlox_record",
    "phlox_tensor",
    "phlox_text",
    "phlox_train",
    "phlox_wgpu",
)


def names_of(package: str) -> dict[str, Any]:
    """What a reader of an example has: the package's own names, but for those of Python."""
    own = vars(import_module(package))
    found = {name: value for name, value in own.items() if not hasattr(builtins, name)}
    return {**found, "np": np, "nn": px.nn, "optim": px.optim, "pt": px, "px": px}


def examples() -> Iterator[DocTest]:
    """The docstrings that have examples, by module."""
    finder = DocTestFinder(exclude_empty=True)
    for package in PACKAGES:
        names = names_of(package)
        path = import_module(package).__path__
        modules = sorted(m.name for m in walk_packages(path, f"{package}."))
        for name in [package, *(m for m in modules if not m.endswith("__main__"))]:
            module = import_module(name)
            if module.__name__ != name:  # another package's module, whose turn comes there
                continue
            for test in finder.find(module, name, globs={**names, **vars(module)}):
                if test.examples:
                    yield test


EXAMPLES = [*examples()]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda test: test.name)
def test_examples_run(example: DocTest) -> None:
    said: list[str] = []
    with px.use_device("numpy"):
        result = DocTestRunner(optionflags=ELLIPSIS).run(example, out=said.append)
    assert not result.failed, "".join(said)


def test_every_package_of_functions_has_examples() -> None:
    found = {test.name.partition(".")[0] for test in EXAMPLES}
    assert found >= {p for p in PACKAGES if p not in ("phlox", "phlox_wgpu")}


def test_every_layer_rule_and_recorder_has_an_example() -> None:
    rules = [getattr(px.optim, name) for name in dir(px.optim) if f"{name}Config" in dir(px.optim)]
    layers = [getattr(px.nn, name) for name in dir(px.nn) if f"{name}Config" in dir(px.nn)]
    recorders = [kind for kind in vars(px.record).values() if getattr(kind, "writes", False)]
    bases = (px.optim.Optimizer, px.nn.Layer, px.record.Recorder)
    kinds = [kind for kind in [*rules, *layers, *recorders] if kind not in bases]
    assert len(kinds) > 110
    assert [kind.__name__ for kind in kinds if ">>>" not in (kind.__doc__ or "")] == []
