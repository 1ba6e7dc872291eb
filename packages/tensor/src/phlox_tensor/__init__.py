"""Tensors over interchangeable backends: op declarations, the Tensor type, the NumPy reference.

The package is an array API namespace; ``import phlox_tensor as pt`` is the usual way in.
"""

import sys as _sys
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from typing import TYPE_CHECKING as _TYPE_CHECKING

from . import capture as capture
from . import fft as fft
from . import groups as groups
from . import linalg as linalg
from . import ops as ops
from . import random as random
from . import tree as tree
from ._data.conversion import asarray as asarray
from ._data.conversion import from_dlpack as from_dlpack
from ._data.conversion import from_numpy as from_numpy
from ._data.creation import arange as arange
from ._data.creation import empty as empty
from ._data.creation import empty_like as empty_like
from ._data.creation import eye as eye
from ._data.creation import full as full
from ._data.creation import full_like as full_like
from ._data.creation import linspace as linspace
from ._data.creation import meshgrid as meshgrid
from ._data.creation import ones as ones
from ._data.creation import ones_like as ones_like
from ._data.creation import tril as tril
from ._data.creation import triu as triu
from ._data.creation import zeros as zeros
from ._data.creation import zeros_like as zeros_like
from ._decorators.base import Decorator as Decorator
from ._decorators.checked import Checked as Checked
from ._decorators.distributed import Distributed as Distributed
from ._decorators.meta import Meta as Meta
from ._decorators.mixed import Mixed as Mixed
from ._decorators.profile import Profile as Profile
from ._decorators.profile import ProfileReport as ProfileReport
from ._decorators.profile import ProfileRow as ProfileRow
from ._decorators.with_host import WithHost as WithHost
from ._device.backend import Backend as Backend
from ._device.backend import MemoryUse as MemoryUse
from ._device.backend import Pull as Pull
from ._device.backend import Standing as Standing
from ._device.backend import is_inside as is_inside
from ._device.finding import as_device as as_device
from ._device.finding import default_device as default_device
from ._device.finding import devices as devices
from ._device.finding import empty_cache as empty_cache
from ._device.finding import use_device as use_device
from ._device.numpy_backend import Numpy as Numpy
from ._device.table import Entry as Entry
from ._device.table import Table as Table
from ._elsewhere.spellings import install as _install_hints
from ._errors.classes import ArgumentError as ArgumentError
from ._errors.classes import BackendUnavailableError as BackendUnavailableError
from ._errors.classes import BatchingError as BatchingError
from ._errors.classes import CompileError as CompileError
from ._errors.classes import DeviceError as DeviceError
from ._errors.classes import DisagreementError as DisagreementError
from ._errors.classes import DTypeError as DTypeError
from ._errors.classes import GradientError as GradientError
from ._errors.classes import IndexOutOfRangeError as IndexOutOfRangeError
from ._errors.classes import KindError as KindError
from ._errors.classes import PhloxError as PhloxError
from ._errors.classes import RecordError as RecordError
from ._errors.classes import Rejected as Rejected
from ._errors.classes import ShapeError as ShapeError
from ._errors.classes import SharingError as SharingError
from ._errors.classes import TreeError as TreeError
from ._errors.classes import UnknownArgumentError as UnknownArgumentError
from ._errors.classes import UnknownNameError as UnknownNameError
from ._errors.classes import UnknownOpError as UnknownOpError
from ._errors.classes import WrongTypeError as WrongTypeError
from ._functions.composite import allclose as allclose
from ._functions.composite import broadcast_arrays as broadcast_arrays
from ._functions.composite import broadcast_shapes as broadcast_shapes
from ._functions.composite import can_cast as can_cast
from ._functions.composite import einsum as einsum
from ._functions.composite import isdtype as isdtype
from ._functions.composite import result_type as result_type
from ._functions.functions import *  # noqa: F403 - generated, with __all__
from ._functions.indexing import At as _At
from ._functions.indexing import AtIndex as _AtIndex
from ._functions.info import VERSION as _version_of_the_standard
from ._functions.info import NamespaceInfo as _NamespaceInfo
from ._functions.install import install as _install
from ._functions.quantized import fake_quantize as fake_quantize
from ._functions.quantized import pack_int4 as pack_int4
from ._functions.quantized import unpack_int4 as unpack_int4
from ._functions.sets import UniqueAll as UniqueAll
from ._functions.sets import UniqueCounts as UniqueCounts
from ._functions.sets import UniqueInverse as UniqueInverse
from ._functions.sets import unique_all as unique_all
from ._functions.sets import unique_counts as unique_counts
from ._functions.sets import unique_inverse as unique_inverse
from ._functions.sets import unique_values as unique_values
from ._functions.standard import argsort as argsort
from ._functions.standard import astype as astype
from ._functions.standard import concat as concat
from ._functions.standard import conj as conj
from ._functions.standard import nonzero as nonzero
from ._functions.standard import quantile as quantile
from ._functions.standard import real as real
from ._functions.standard import reshape as reshape
from ._functions.standard import searchsorted as searchsorted
from ._functions.standard import sort as sort
from ._op.declaration import REGISTRY as REGISTRY
from ._op.declaration import Op as Op
from ._op.declaration import Restated as Restated
from ._op.declaration import Spec as Spec
from ._pickle import install as _install_pickle
from ._random.state import seed as seed
from ._values.cell import Cell as Cell
from ._values.dtype import DTYPES as DTYPES
from ._values.dtype import DType as DType
from ._values.dtype import DTypeLike as DTypeLike
from ._values.dtype import as_dtype as as_dtype
from ._values.dtype import bfloat16 as bfloat16
from ._values.dtype import bool_ as bool_
from ._values.dtype import finfo as finfo
from ._values.dtype import float16 as float16
from ._values.dtype import float32 as float32
from ._values.dtype import float64 as float64
from ._values.dtype import iinfo as iinfo
from ._values.dtype import int8 as int8
from ._values.dtype import int16 as int16
from ._values.dtype import int32 as int32
from ._values.dtype import int64 as int64
from ._values.dtype import uint8 as uint8
from ._values.dtype import uint16 as uint16
from ._values.dtype import uint32 as uint32
from ._values.dtype import uint64 as uint64
from ._values.gradients import Ready as Ready
from ._values.kinds import Bool as Bool
from ._values.kinds import Float as Float
from ._values.kinds import Int as Int
from ._values.printing import PrintOptions as PrintOptions
from ._values.printing import printoptions as printoptions
from ._values.printing import set_printoptions as set_printoptions
from ._values.proposed import Proposed as Proposed
from ._values.tensor import Tensor as Tensor
from .arguments import explain as _explain
from .names import unknown_function as _unknown_function

trace = linalg.trace
Device = Backend  # a backend is a device: the word for annotations
bool = bool_
newaxis = None
__array_api_version__ = _version_of_the_standard
__array_namespace_info__ = _NamespaceInfo
__version__ = "0.2.0"

_install()
_install_pickle()
_install_hints(Tensor, globals())
_explain(_sys.modules[__name__], fft, linalg, random, tree, _At, _AtIndex)


# Type checkers would take any name for one that exists.
if not _TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what a name of another library is called here, or which name is near."""
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        raise _unknown_function(name, "phlox_tensor", "pt", __dir__())


def __dir__() -> list[str]:
    """Every public name."""
    return sorted(name for name in globals() if not name.startswith("_"))
