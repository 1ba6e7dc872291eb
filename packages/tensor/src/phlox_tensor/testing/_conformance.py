"""The conformance suite: every op, element type and layout of a backend against the reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from .._device.backend import Backend, lacks
from .._device.compare import disagreement, narrow_error
from .._device.finding import use_device
from .._device.numpy_backend import Numpy
from .._errors.classes import PhloxError
from .._op.declaration import REGISTRY, Op, Spec
from .._values.dtype import DTYPES, DType, float64
from .._values.tensor import Tensor
from ._apart import apart_samples, called_short, outside
from ._far import FAR, far_samples
from ._layouts import LAYOUTS, Place
from ._samples import Sample, dtypes_for, refused_samples, samples
from ._special import placed_samples, special_samples

Array = np.ndarray[Any, Any]


@final
@dataclass(frozen=True, slots=True)
class _Trial:
    """A sample, how its operands lie, and what is special about it.

    ``grid`` samples hold special values everywhere and are compared without rounding on the way;
    where ``loose``, results count only where they are finite on the reference and here. ``lies``
    has a letter for each operand: i on the device inside of a decorator, o on that, n a number.
    ``size`` is that of large operands, in which results near zero are measured.
    """

    sample: Sample
    layout: str = "contiguous"
    what: str = ""
    grid: bool = False
    loose: bool = False
    lies: str = ""
    size: float = 1.0


@final
@dataclass(frozen=True, slots=True)
class Check:
    """One op with one element type on one backend; call it to run, an AssertionError fails it.

    A ``thorough`` check puts each special value into each operand of each sample, others one.
    A ``far`` check draws the cases that ``FAR`` has of the op, and nothing else.
    """

    backend: Backend
    op: Op
    dtype: DType
    thorough: bool = False
    far: bool = False

    def __str__(self) -> str:
        return f"{self.op.name}-{self.dtype.name}"

    def __call__(self) -> None:
        """Run the op over all samples and layouts, and the calls that it refuses.

        Raises:
            AssertionError: naming the sample, with a line to paste.
        """
        with np.errstate(all="ignore"):  # special values overflow on purpose
            for trial in self._trials():
                self._run(trial)
            for error, sample in self._refused():
                self._refuse(_Trial(sample, what="a wrong call"), error)

    def _trials(self) -> Iterator[_Trial]:
        if self.far:
            for what, size, sample in far_samples(self.op, self.dtype, self.backend):
                yield _Trial(sample, what=what, size=size)
            return
        drawn = list(samples(self.op, self.dtype, self.backend))
        for sample in drawn:
            for layout in LAYOUTS:
                if layout == "contiguous" or any(_can_lie(o) for o in sample.operands):
                    yield _Trial(sample, layout)
        for lies, sample in apart_samples(self.op, drawn):
            yield _Trial(sample, what=f"operands apart ({lies})", lies=lies)
        for sample in special_samples(self.op, self.dtype, self.backend):
            yield _Trial(sample, what="special values", grid=True)
        if not self.op.op_class.diagonal:  # whose grid has every pair
            for place, value, sample in placed_samples(self.op, drawn, every=self.thorough):
                name = self.op.signature.operands[place].name
                loose = name in self.op.tested.unpromised
                yield _Trial(sample, what=f"{value} in {name}", loose=loose)

    def _refused(self) -> Iterator[tuple[type[Exception], Sample]]:
        if not self.far:
            yield from refused_samples(self.op, self.dtype, self.backend)

    def _run(self, trial: _Trial) -> None:
        reference = Numpy(self.backend.default_float.name, self.backend.default_int.name)
        seen = _as_seen(trial.sample, trial.layout)
        narrow = self._referred(seen, reference, trial)
        if isinstance(narrow, type):  # a special value that is no index, no length, no matrix
            self._refuse(trial, narrow)
            return
        try:
            got = self._called(trial)
            for tensor in got:
                tensor.numpy()
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            raise self._failure(problem, "the call", trial) from error
        if not trial.lies:
            self._compare_inferred(got, trial)
        wide = narrow
        if self.op.tested.ulp and self.dtype.kind == "Float" and not trial.grid:
            wide = self._apply(_widened(seen), reference, LAYOUTS["contiguous"])
        for i, (a, b, c) in enumerate(zip(got, narrow, wide, strict=True)):
            self._compare(a, b, c, f"result {i}", trial)

    def _referred(
        self, sample: Sample, reference: Backend, trial: _Trial
    ) -> tuple[Any, ...] | type[PhloxError]:
        """What the reference gives, or the error that it gives for a special value."""
        try:
            return self._apply(sample, reference, LAYOUTS["contiguous"])
        except PhloxError as error:
            if not trial.what:
                raise
            return type(error)

    def _refuse(self, trial: _Trial, wanted: type[Exception]) -> None:
        expected = f"[{self.op.name}] {wanted.__name__}"
        called = False
        try:
            results = self._apply(trial.sample, self.backend, LAYOUTS[trial.layout])
            called = True
            for tensor in results:
                tensor.numpy()
        except Exception as error:
            # What a device finds only when it is read is reported by the op that looked.
            named = called or getattr(error, "op", self.op.name) == self.op.name
            if type(error) is wanted and named:
                return
            problem = f"{type(error).__name__}: {error}, expected {expected}"
            raise self._failure(problem, "the call", trial) from error
        raise self._failure(f"not refused, expected {expected}", "the call", trial)

    def _compare_inferred(self, got: tuple[Any, ...], trial: _Trial) -> None:
        """The declaration says what every backend gives; a size of -1 is any."""
        operands = [_spec(o) for o in trial.sample.operands]
        out = self.op.infer(*operands, device=self.backend, **trial.sample.attributes)
        inferred = out if self.op.signature.several else (out,)
        for i, (tensor, spec) in enumerate(zip(got, inferred, strict=True)):
            shape = tuple(
                n if m == -1 else m for n, m in zip(tensor.shape, spec.shape, strict=False)
            )
            if (tensor.shape, tensor.dtype) != (shape, spec.dtype) or len(shape) < len(spec.shape):
                problem = f"{tensor.shape} {tensor.dtype}, inferred {spec.shape} {spec.dtype}"
                raise self._failure(problem, f"result {i}", trial)

    def _compare(
        self, got: Tensor[Any], narrow: Tensor[Any], wide: Tensor[Any], what: str, trial: _Trial
    ) -> None:
        problem = None
        if got.dtype is not narrow.dtype:
            problem = f"type {got.dtype}, expected {narrow.dtype}"
        slack = self.backend.slack
        ulp = self.op.tested.ulp * slack + (1 if trial.grid and self.op.tested.ulp else 0)
        found, wanted = got.numpy(), wide.numpy()
        if trial.loose and found.dtype.kind in "iub":  # places, of which none is known
            wanted = found
        elif trial.loose:
            both = np.isfinite(found) & np.isfinite(wanted.astype(found.dtype))
            found, wanted = np.where(both, found, 0), np.where(both, wanted, 0)
        problem = problem or disagreement(
            found,
            wanted,
            ulp=ulp,
            atol=self.op.tested.atol * slack * trial.size,
            rounded=narrow_error(self.op),
            signed_zeros=trial.grid and self.backend.strict and self.op.tested.keeps_signs,
            denormals=self.backend.strict,
        )
        if problem is not None:
            raise self._failure(problem, what, trial)

    def _failure(self, problem: str, what: str, trial: _Trial) -> AssertionError:
        sample, names = trial.sample, [o.name for o in self.op.signature.operands]
        shapes = ", ".join(
            f"{n}={getattr(o, 'shape', o)}" for n, o in zip(names, sample.operands, strict=True)
        )
        note = f" {trial.what}" if trial.what else ""
        chosen = [name for name in ("thorough", "far") if getattr(self, name)]
        mode = "".join(f", {name}=True" for name in chosen)
        return AssertionError(
            f"{self.op.name} {self.dtype} {trial.layout}{note}, {what}: "
            f"{problem}\n  {shapes} {sample.attributes}\n  paste: from phlox_tensor.testing import "
            f"check; check({self.backend!r}, {self.op.name!r}, {self.dtype.name!r}{mode})"
        )

    def _called(self, trial: _Trial) -> tuple[Any, ...]:
        if not trial.lies:
            return self._apply(trial.sample, self.backend, LAYOUTS[trial.layout])
        around = outside(self.backend)
        devices = {"i": around.inner or around, "o": around}
        operands = [
            x if letter == "n" else _place(x, devices[letter], LAYOUTS["contiguous"])
            for letter, x in zip(trial.lies, trial.sample.operands, strict=True)
        ]
        out = called_short(self.op, operands, trial.sample.attributes)
        got = out if isinstance(out, tuple) else (out,)
        assert all(tensor.device is around for tensor in got), f"not on {around!r}"
        return got

    def _apply(self, sample: Sample, backend: Backend, place: Place) -> tuple[Any, ...]:
        operands = [_place(o, backend, place) for o in sample.operands]
        with use_device(backend):  # where ops without operands make their result
            out = called_short(self.op, operands, sample.attributes)
        return out if isinstance(out, tuple) else (out,)


def _can_lie(operand: Any) -> bool:
    if isinstance(operand, tuple):
        return any(_can_lie(o) for o in operand)
    return isinstance(operand, np.ndarray) and operand.ndim > 0


def _place(operand: Any, backend: Backend, place: Place) -> Any:
    if operand is None or isinstance(operand, bool | int | float):
        return operand
    if isinstance(operand, tuple):
        return [_place(o, backend, place) for o in operand]
    return place(operand, _dtype_of(operand), backend)


def _spec(operand: Any) -> Any:
    if operand is None:
        return None
    if isinstance(operand, tuple):
        return [_spec(o) for o in operand]
    return Spec(operand.shape, _dtype_of(operand))


def _dtype_of(array: Array) -> DType:
    return DTYPES[array.dtype.name]


def _map(sample: Sample, function: Any) -> Sample:
    def visit(operand: Any) -> Any:
        if isinstance(operand, tuple):
            return tuple(visit(o) for o in operand)
        return function(operand) if isinstance(operand, np.ndarray) else operand

    return Sample(tuple(visit(o) for o in sample.operands), sample.attributes)


def _as_seen(sample: Sample, layout: str) -> Sample:
    """The broadcast layout shows the first row everywhere."""
    if layout != "broadcast":
        return sample
    return _map(
        sample,
        lambda a: a if a.ndim == 0 or a.shape[0] == 0 else np.broadcast_to(a[:1], a.shape),
    )


def _widened(sample: Sample) -> Sample:
    wide = _map(sample, lambda a: a.astype(float64.numpy) if _dtype_of(a).kind == "Float" else a)
    attributes = {
        k: float64 if isinstance(v, DType) and v.kind == "Float" else v
        for k, v in sample.attributes.items()
    }
    return Sample(wide.operands, attributes if sample.operands else sample.attributes)


def checks(
    backend: Backend, ops: list[str] | None = None, *, thorough: bool = False, far: bool = False
) -> list[Check]:
    """Return the suite for a backend, one check per op and element type.

    Use it as pytest parameters: ``@pytest.mark.parametrize("check", checks(b), ids=str)``.

    Args:
        backend: the backend to test.
        ops: names of ops; by default all but those that the device leaves to the host.
        thorough: try each special value in each operand of each sample, and not only one.
        far: of ops that subtract a mean or a largest element, or add squares, in place of all
            else: rows far from 0, of large elements, of equal ones, and led by an outlier.
    """
    names = sorted(REGISTRY) if ops is None else ops
    return list(_checks(backend, names, thorough, far))


def _checks(backend: Backend, names: list[str], thorough: bool, far: bool) -> Iterator[Check]:
    for name in names:
        op = REGISTRY[name]
        if lacks(backend, op) or (far and op.name not in FAR):
            continue
        for dtype in dtypes_for(op, backend):
            yield Check(backend, op, dtype, thorough, far)


def check(
    backend: Backend, op: str, dtype: str, *, thorough: bool = False, far: bool = False
) -> None:
    """Run one check; the line that a failure prints calls this."""
    Check(backend, REGISTRY[op], DTYPES[dtype], thorough, far)()


def conformance(backend: Backend, ops: list[str] | None = None) -> int:
    """Run the whole suite and return how many checks passed.

    Raises:
        AssertionError: listing every check that failed.
    """
    suite = checks(backend, ops)
    failures = []
    for item in suite:
        try:
            item()
        except Exception as error:  # a crash in one op must not hide the others
            failures.append(f"{item}: {type(error).__name__}: {error}")
    if failures:
        raise AssertionError(f"{len(failures)} of {len(suite)} failed\n" + "\n".join(failures))
    return len(suite)
