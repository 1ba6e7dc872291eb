"""A written package beside its file at several sizes, and the gradients of its weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from phlox_tensor import Backend, PhloxError, Tensor, asarray, default_device
from phlox_tensor.random import Generator, use_generator

from .._errors import RAW, OnnxError
from .._graph import Value
from ..read._limits import Limits
from ..read._read import Source
from ..run._model import OnnxModel, model_of
from ..run._quantized import Quantized
from ._options import names_of
from ._package import Package
from ._verify import (
    INSTALL,
    Against,
    Feeds,
    elements_of,
    feeds_of,
    forgotten,
    imported,
    in_order,
    shares,
)

# What sizes that nobody gave are tried with, but for the first axis: the smallest that run are
# taken once, twice and three times.
LADDER: Final = (4, 16, 64, 128, 320, 640, 5120, 16000)
TIMES: Final = (1, 2, 3)
MOST: Final = 1 << 24  # elements that are drawn for all inputs together
# How far source and file may be apart, and where weights or inputs have 16 bits.
CLOSE: Final = 1e-4
HALF: Final = 1e-2

Train = Callable[[Backend], Backend]


@final
@dataclass
class Proof:
    """What was found.

    Attributes:
        lines: for readers, each a point of a list.
        wrong: those that say that the package does not do what the file does, or does not train.
    """

    lines: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether none is wrong."""
        return not self.wrong

    def fail(self, line: str) -> None:
        """Note what does not hold."""
        self.lines.append(line)
        self.wrong.append(line)


@final
@dataclass(frozen=True)
class Asked:
    """How a package is looked at.

    Attributes:
        sizes: sizes by name that are no choice: those that were bound.
        freed: names of sizes that are numbers in the file, with these numbers.
        sample: inputs, in the place of drawn ones.
        train: makes a device that records, for gradients.
        cure: what a line ends with that says why nothing ran.
        limits: what the file may ask for.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    freed: Mapping[str, int] = field(default_factory=dict)
    sample: Feeds | None = None
    against: Against = "load"
    quantized: Quantized = "fake"
    train: Train | None = None
    cure: str = ""
    limits: Limits = field(default_factory=Limits)


def proven(file: Source, folder: Path, made: Package, asked: Asked) -> Proof:
    """Run a package beside its file at up to three sizes, and take gradients of its weights."""
    proof = Proof()
    device = default_device()
    loaded = model_of(file, device, asked.quantized, asked.limits)
    most = HALF if _in_16_bits(made) else CLOSE
    ran: list[Feeds] = []
    with _package(folder) as module:
        try:
            for feeds in _cases(loaded, made, asked):
                found = shares(file, loaded, module, feeds, asked.against)
                sizes = ", ".join(f"{k!r} {np.shape(v)}" for k, v in feeds.items())
                for name, off in found.items():
                    line = f"- {name!r} beside {asked.against}: {off:.1e} of its largest value"
                    (proof.lines.append if off <= most else proof.fail)(f"{line}, for {sizes}")
                ran.append(feeds)
            if ran:
                _gradients(proof, module, loaded, ran[0], asked.train)
        except PhloxError as error:
            said = " ".join(str(error).split())
            cure = "" if error.hint == INSTALL else asked.cure  # it is no matter of inputs
            proof.fail(f"- not verified: {said}{cure}")
    return proof


def _in_16_bits(made: Package) -> bool:
    types = {str(array.dtype) for array, _ in made.params.values()} | {v.dtype for v in made.inputs}
    return made.precision == "half" or not types.isdisjoint(("float16", "bfloat16"))


@contextmanager
def _package(folder: Path) -> Iterator[Any]:
    module = imported(folder)
    try:
        yield module
    finally:
        forgotten(module)


def _cases(loaded: OnnxModel, made: Package, asked: Asked) -> Iterator[Feeds]:
    """The sample, or drawn inputs at each size that the file itself runs with."""
    if asked.sample is not None:
        yield in_order(loaded, asked.sample, "an input is missing in the sample")
        return
    names = _open(made.inputs, asked)
    error: Exception | None = None
    best: list[Feeds] = []
    for base in LADDER if any(first is False for first in names.values()) else (1,):
        good: list[Feeds] = []
        for times in TIMES if names else (1,):
            sizes = dict(asked.sizes)
            sizes |= {n: asked.freed.get(n, 1 if first else base) * times
                      for n, first in names.items()}  # fmt: skip
            if elements_of(made.inputs, sizes) > MOST:
                continue
            feeds = feeds_of(made.inputs, sizes)
            try:
                loaded(*feeds.values())
                good.append(feeds)
            except PhloxError as raised:
                error = error or raised
        found = bool(best)
        best = max(best, good, key=len)
        if found or len(good) == len(TIMES) or not names:
            break  # where one size ran, larger ones are tried once more: they may be all fixed
    if best:
        yield from best
        return
    what = "the file runs at none of the sizes that were tried"
    got = str(error or f"inputs of more than {MOST:,} elements")
    raise OnnxError("verify", what, got=got)


def _open(inputs: list[Value], asked: Asked) -> dict[str, bool]:
    """Names of sizes that may be chosen, and whether each is of a first axis alone."""
    out: dict[str, bool] = {}
    for value in inputs:
        for axis, (n, name) in enumerate(zip(value.shape or (), names_of(value), strict=True)):
            if name not in asked.sizes and not (isinstance(n, int) and n > 0):
                first = axis == 0 or name in asked.freed
                out[name] = out.get(name, True) and first
    return out


def _gradients(
    proof: Proof, module: Any, loaded: OnnxModel, feeds: Feeds, train: Train | None
) -> None:
    """Whether every weight that is trained has a gradient, and a finite one."""
    if train is None:
        proof.lines.append("- gradients: not looked at, for want of a device that records")
        return
    device = train(default_device())
    model = module.load(device).with_training(False)
    weights = model.params(trainable=True)
    if not weights:
        proof.lines.append("- gradients: nothing is trained")
        return
    try:
        with use_generator(Generator()):
            found = model(*(asarray(feeds[n], device=device) for n in loaded.inputs))
        total = sum(v.sum() for v in _floats(found))
        taken = total.backward() if isinstance(total, Tensor) else None
    except (PhloxError, *RAW) as error:
        proof.fail(f"- gradients: none, since {' '.join(str(error).split())}")
        return
    given = {p: None if taken is None else taken.get(w.value) for p, w in weights.items()}
    none = [path for path, g in given.items() if g is None]
    odd = [p for p, g in given.items() if g is not None and not np.isfinite(_wide(g)).all()]
    if odd:
        proof.fail(
            f"- gradients: not finite for {len(odd)} of {len(given)} weights, first {odd[0]}"
        )
    elif none:
        few = f"{len(none)} of {len(given)} weights, first {none[0]}"
        proof.lines.append(f"- gradients: finite, but none for {few}")
    else:
        proof.lines.append(f"- gradients: finite for all {len(given)} weights")


def _wide(gradient: Tensor[Any]) -> Any:
    return gradient.numpy().astype(np.float64)


def _floats(found: Any) -> list[Tensor[Any]]:
    if isinstance(found, tuple | list):
        return [t for each in found for t in _floats(each)]
    return [found] if isinstance(found, Tensor) and found.dtype.kind == "Float" else []
