"""Products of few rows in one kernel with the norm before them and what is made of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Final, final

from phlox_tensor.capture import Kernel, RowProduct

from .._array import GpuArray, Result, result_of
from .._elementwise import chain_of, scalar
from .._launch import Launch
from .._layout import Shape
from .._runtime import GpuDevice
from ..wgsl import row_products as kernels
from ..wgsl import words
from ..wgsl.chain import Chain

_LEAST_EPSILON: Final = 1e-30  # a row whose squares vanish beside it has no other norm
_TOKENS = count()
_WIDE: Final = 1 << 13  # results from which on neighbors read longer parts of a row
_DEEP: Final = 1 << 12  # length of rows from which on more threads share a result
_TEAM: Final = 64  # threads that share results; of 32, 64 and 128 the fastest on an H200
_MOST_LANES: Final = 64


def row_product(device: GpuDevice, product: RowProduct, formula: Kernel) -> Kernel | None:
    """What runs products of few rows at once; the formula where operands do not fit."""
    form = product.attributes[0] if product.attributes else kernels.FLOATS
    if form and form not in words.FORMS:
        return None
    if product.epsilon is not None and not product.epsilon >= _LEAST_EPSILON:
        return None
    chain = None
    if product.last is not None:
        chain = chain_of(product.last)
        if chain is None or chain.sources():
            return None
    if product.arrays + (product.matrices if chain is None else 1) > device.max_bindings:
        return None
    return _RowProduct(device, product, form, chain, formula)


@final
class _Fit:
    """The launch for operands of one layout, and what it makes; without one the formula runs."""

    launch: Launch | None = None
    results: tuple[Result, ...] = ()


@final
class _RowProduct:
    """The kernel of one kind of products."""

    def __init__(
        self,
        device: GpuDevice,
        product: RowProduct,
        form: str,
        chain: Chain | None,
        formula: Kernel,
    ) -> None:
        self._device, self._product, self._form = device, product, form
        self._chain, self._formula = chain, formula
        self._token = next(_TOKENS)

    def __call__(self, *operands: Any) -> tuple[GpuArray, ...]:
        """Run it over arrays and numbers."""
        device, product = self._device, self._product
        arrays, numbers = operands[: product.arrays], operands[product.arrays :]
        key = ("rows", self._token, *[x.layout for x in arrays])
        fit: _Fit = device.plans.get(key) or device.plans.find(key, lambda: self._fit(arrays))
        if fit.launch is None:
            return self._formula(*operands)
        more: list[float] = [] if product.epsilon is None else [product.epsilon]
        if self._chain is not None:
            kinds = self._chain.inputs[len(self._chain.inputs) - len(numbers) :]
            more += [scalar(x, kind) for x, kind in zip(numbers, kinds, strict=True)]
        return (*fit.launch.run(device, arrays, [], more, fit.results),)

    def _fit(self, arrays: Sequence[GpuArray]) -> _Fit:
        fit, spec, (x, *_) = _Fit(), self._spec(arrays), arrays
        if spec is None:
            return fit
        front = x.shape[:-1]
        matrices = arrays[spec.first_matrix : spec.first_matrix + spec.matrices]
        results = [self._results(each.shape) for each in matrices]
        tiles = [-(-n // spec.way.results) for n in results]
        groups = tiles[0] if spec.together else sum(tiles)
        four = 4 if spec.form else 1
        wide = matrices[0].shape[-1]
        operands: list[tuple[int, tuple[float, ...]]] = [(four, ())] * spec.first_matrix
        for n, count_of in zip(results, tiles, strict=True):
            operands.append((1 if spec.form else 4, (n, count_of)))
        operands += [(1, ())] * spec.arrays
        fit.launch = Launch.of(
            self._device,
            (kernels.row_products, spec),
            groups,
            (groups, x.shape[-1], wide),
            (*operands,),
        )
        kept = results[:1] if spec.together else results
        fit.results = tuple(result_of((*front, n), x.dtype) for n in kept)
        return fit

    def _results(self, matrix: Shape) -> int:
        """How many results of a row a matrix gives."""
        return matrix[0] if self._form else matrix[1]

    def _spec(self, arrays: Sequence[GpuArray]) -> kernels.RowProducts | None:
        """The kernel for operands; None where some do not fit."""
        product, form, x = self._product, self._form, arrays[0]
        normed = product.epsilon is not None
        first, k = 1 + normed, x.shape[-1]
        matrices = arrays[first : first + product.matrices]
        more = arrays[first + product.matrices :]
        results = [self._results(each.shape) for each in matrices]
        unit = words.GROUP if form else 4
        fits = all(each.contiguous for each in arrays)
        fits = fits and all(not each.offset % 4 for each in arrays)
        fits = fits and not k % unit and 0 not in (k, *results)
        fits = fits and all(each.dtype is x.dtype for each in (*arrays[:first], *more))
        if form:
            fits = fits and all(each.item_bytes == 4 for each in matrices)
            fits = fits and len({each.shape[-1] for each in matrices}) == 1
        else:
            fits = fits and all(each.dtype is x.dtype for each in matrices)
            fits = fits and not any(n % 4 for n in results)
        if self._chain is not None:
            fits = fits and len({*results}) == 1
        rows = math.prod(x.shape[:-1])
        if not fits or x.wgsl not in ("f16", "f32") or not 0 < rows <= kernels.THICKNESS:
            return None
        depth = k if normed else 0
        memory = self._device.limits["max-compute-workgroup-storage-size"]
        for way in self._ways(k, sum(results), normed=normed):
            spec = kernels.RowProducts(
                form, x.wgsl, rows, len(matrices), depth, self._chain, len(more), way
            )
            if spec.workgroup_bytes <= memory:
                return spec
        return None

    def _ways(
        self, k: int, n: int, *, normed: bool
    ) -> Iterator[kernels.ByRows | kernels.ByColumns]:
        """How threads may share the work, the fastest way on an H200 first."""
        most = self._device.limits["max-compute-invocations-per-workgroup"]
        if not self._form:
            if self._device.software:  # to which a barrier of many threads is dear
                most = 128
            across, loads = (16, 16) if n >= _WIDE else (4, 8) if k >= _DEEP else (8, 16)
            for threads in (512, 256, 128):
                if threads <= most:
                    yield kernels.ByColumns(across, loads, threads)
            return
        lanes = _lanes(self._device)
        if normed and most >= 256:
            yield kernels.ByRows(_TEAM, 2, 2, 256, lanes)
        yield kernels.ByRows(_TEAM, 1, 2, 128, lanes)


def _lanes(device: GpuDevice) -> int:
    """Threads of every subgroup; 0 where that is open."""
    lanes = device.engine.lanes if "subgroup" in device.features else 0
    return lanes if 0 < lanes <= _MOST_LANES else 0
