"""The Wgpu backend: a GPU as a table from op to function."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from phlox_tensor import (
    REGISTRY,
    ArgumentError,
    Backend,
    BackendUnavailableError,
    DType,
    DTypeError,
    Entry,
    MemoryUse,
    Op,
    bool_,
    float16,
    float32,
    int32,
    uint32,
)
from phlox_tensor.arguments import explained
from phlox_tensor.capture import Kernel, Program, ProgramLimits, RowProduct, Run, expansion

from ._locks import lock

if TYPE_CHECKING:
    from ._array import GpuArray
    from ._copy import Shared
    from ._runtime import GpuDevice

Power = Literal["high", "low"]
Products = Literal["plain", "tensor"]

_ALWAYS = frozenset({bool_, float32, int32, uint32})


@final
class Wgpu(Backend):
    """A GPU through WebGPU: Vulkan, Metal or DX12.

    Making the object is cheap; the adapter is opened by the first op.

    Args:
        index: which adapter, best first, as ``Wgpu.found()`` lists them.
        power: ``"high"`` puts discrete GPUs first, ``"low"`` integrated ones.
        products: ``"tensor"`` computes large products of float32 by three of float16 on tensor
            cores, where the adapter has some: other bits, about as exact, and faster (see
            docs/numerics.md). ``"plain"`` never does.
    """

    name = "wgpu"
    default_float = float32
    default_int = int32
    slack = 2.0  # WGSL allows division and square root 2.5 ulp
    strict = False  # and it may flush denormals and drop the sign of a zero

    @explained
    def __init__(self, index: int = 0, power: Power = "high", products: Products = "plain") -> None:
        """Name an adapter.

        Raises:
            ArgumentError: for a negative index, an unknown power or unknown products.
        """
        if index < 0:
            raise ArgumentError("Wgpu", "no such adapter", got=index, expected="0, 1, ...")
        if power not in ("high", "low"):
            raise ArgumentError("Wgpu", "no such power", got=power, expected='"high" or "low"')
        if products not in ("plain", "tensor"):
            expected = '"plain" or "tensor"'
            raise ArgumentError("Wgpu", "no such products", got=products, expected=expected)
        self.index = index
        self.power: Power = power
        self.products: Products = products
        self.settings = (index, power, products)
        self._opening = lock()
        self._open: GpuDevice | None = None

    def __repr__(self) -> str:
        named = "" if self.power == "high" else f", power={self.power!r}"
        named += "" if self.products == "plain" else f", products={self.products!r}"
        return f"Wgpu({self.index}{named})" if self.index or named else "Wgpu()"

    @property
    def device(self) -> GpuDevice:
        """The runtime of the adapter, opened on first use.

        Raises:
            BackendUnavailableError: there is no such adapter; the hint says what to install.
        """
        opened = self._open
        if opened is None:
            from . import _adapter  # noqa: PLC0415 - wgpu takes 0.1 s to import
            from ._runtime import GpuDevice  # noqa: PLC0415

            with self._opening:
                if self._open is None:
                    adapter = _adapter.find(self.index, self.power)
                    engine = _adapter.request_device(adapter)
                    self._open = GpuDevice(
                        engine,
                        software=_adapter.is_software(adapter.info),
                        by_halves=self.products == "tensor",
                    )
                opened = self._open
        return opened

    @property
    def is_software(self) -> bool:
        """Whether the adapter is a CPU that plays a GPU: right results, slowly."""
        return self.device.software

    @property
    def dtypes(self) -> frozenset[DType]:  # type: ignore[override]
        """bool, float32, int32, uint32; float16 where the adapter has shader-f16."""
        return _ALWAYS | {float16} if "shader-f16" in self.device.features else _ALWAYS

    @classmethod
    def found(cls) -> list[Wgpu]:
        """One device per adapter of this machine; none without a driver."""
        from . import _adapter  # noqa: PLC0415 - wgpu takes 0.1 s to import

        return [cls(i) for i in range(len(_adapter.adapters("high")))]

    @classmethod
    def describe(cls) -> list[dict[str, Any]]:
        """What `phlox doctor` prints: name, driver, type, limits, features of every adapter.

        And whether its kernels of several ops give the bits of the ops, and whether it multiplies
        on tensor cores, both of which a short run tells.

        Raises:
            BackendUnavailableError: there is none; the hint says what to install.
        """
        from . import _adapter  # noqa: PLC0415 - wgpu takes 0.1 s to import
        from ._probe import keeps_ops_apart  # noqa: PLC0415 - loads wgpu
        from .products.tensor_cores import has_tensor_cores  # noqa: PLC0415 - loads wgpu

        found = _adapter.describe()
        for index, each in enumerate(found):
            try:
                each["bits of ops in a kernel"] = keeps_ops_apart(cls(index).device)
                each["tensor cores"] = has_tensor_cores(cls(index).device)
            except BackendUnavailableError as error:
                each["bits of ops in a kernel"] = str(error)
        return found

    def entry(self, name: str) -> Entry | None:
        """Return the function of the op of this name, or None."""
        from ._table import partial_table, table  # noqa: PLC0415 - loads wgpu

        function = table().get(name)
        if function is not None:
            return partial(function, self.device)
        function = partial_table().get(name)
        if function is None:
            return None
        return partial(function, self.device, expansion(REGISTRY[name], self))

    @property
    def limits(self) -> ProgramLimits:  # type: ignore[override]
        """What one kernel may bind: what the adapter says. The longest formula of an op fits."""
        return ProgramLimits(
            bindings=self.device.max_bindings,
            instrs=128,
            folds=True,
            products=frozenset({"linear", "words_linear"}),
            product_rows=4,
            product_norm="rms_norm",
        )

    def kernel(self, program: Program, /) -> Kernel | None:
        """Return what runs a program at once; None for ops and types that WGSL has no row for."""
        from ._programs import kernel  # noqa: PLC0415 - loads wgpu

        return kernel(self.device, program)

    def row_product(self, product: RowProduct, formula: Kernel, /) -> Kernel | None:
        """Return what runs products of few rows at once; None for words that have no kernel."""
        from .products.rows import row_product  # noqa: PLC0415 - loads wgpu

        return row_product(self.device, product, formula)

    def repeated(self, make: Callable[[], Run], /) -> Run:
        """Return what hands over the kernels that a function of ops ran, without the ops."""
        from ._repeat import Repeated  # noqa: PLC0415 - loads wgpu

        return Repeated(self.device, make())

    def checks_operands(self, op: Op) -> bool:
        """Whether there is an entry of a class that looks at its operands, once per shape."""
        from ._table import table  # noqa: PLC0415 - loads wgpu

        return op.op_class.checking and op.name in table()

    def shape_of(self, primitive: GpuArray, /) -> tuple[int, ...]:
        """Return the shape of an array."""
        return primitive.shape

    def dtype_of(self, primitive: GpuArray, /) -> DType:
        """Return the element type of an array."""
        return primitive.dtype

    def spec_of(self, primitive: GpuArray, /) -> tuple[tuple[int, ...], DType]:
        """Return shape and element type of an array at once."""
        return primitive.shape, primitive.dtype

    def strides_of(self, primitive: GpuArray, /) -> tuple[int, ...]:
        """Return how many elements lie between neighbors along each axis."""
        return primitive.strides

    def upload(self, array: np.ndarray[Any, Any], dtype: DType, /) -> GpuArray:
        """Copy an array to the GPU.

        Raises:
            DTypeError: the adapter lacks the element type.
        """
        device = self.device
        if dtype not in self.dtypes:
            names = ", ".join(sorted(d.name for d in self.dtypes))
            raise DTypeError("wgpu", "no such element type here", got=dtype, expected=names)
        return device.upload(array, dtype)

    def read(self, primitive: GpuArray, /) -> np.ndarray[Any, Any]:
        """Return the data as a NumPy array; waits for the GPU.

        Raises:
            IndexOutOfRangeError: an op since the last read met an index out of range.
        """
        from ._copy import packed  # noqa: PLC0415 - loads wgpu

        return self.device.read(packed(self.device, primitive))

    async def read_async(self, primitive: GpuArray, /) -> np.ndarray[Any, Any]:
        """Return the data as a NumPy array; another thread waits for the GPU, if there are some."""
        if sys.platform == "emscripten":  # where the event loop goes on while Python waits
            return self.read(primitive)
        return await asyncio.to_thread(self.read, primitive)

    def begin_read(self, primitive: GpuArray, /) -> bool:
        """Begin to bring a small array over, behind what was recorded so far; return True."""
        self.device.begin_read(primitive)
        return True

    def shared(self, memory: np.ndarray[Any, Any], /) -> Shared | None:
        """Return memory of the host as memory of the GPU; None where engine or driver cannot."""
        from ._copy import shared  # noqa: PLC0415 - loads wgpu

        return shared(self.device, memory)

    def sync(self) -> None:
        """Wait until all work handed to the GPU is done.

        Raises:
            IndexOutOfRangeError: as for `read`.
        """
        if self._open is not None:
            self._open.sync()

    def memory(self) -> MemoryUse:
        """Return how many bytes the tensors of this GPU hold, in whole buffers of the pool."""
        return MemoryUse(0, 0) if self._open is None else self._open.memory()

    def trim(self) -> None:
        """Give the buffers of tensors that are gone back to the driver."""
        if self._open is not None:
            self._open.trim()
