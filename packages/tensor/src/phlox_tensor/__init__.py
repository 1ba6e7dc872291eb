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
from . import linalg as linalg
from . import ops as ops
from . import random as random
from . import tree as tree
from ._backend import Backend as Backend
from ._backend import MemoryUse as MemoryUse
from ._backend import Pull as Pull
from ._backend import Standing as Standing
from ._backend import is_inside as is_inside
from ._cell import Cell as Cell
from ._checked import Checked as Checked
from ._composite import allclose as allclose
from ._composite import broadcast_arrays as broadcast_arrays
from ._composite import broadcast_shapes as broadcast_shapes
from ._composite import can_cast as can_cast
from ._composite import einsum as einsum
from ._composite import isdtype as isdtype
from ._composite import result_type as result_type
from ._conversion import asarray as asarray
from ._conversion import from_dlpack as from_dlpack
from ._conversion import from_numpy as from_numpy
from ._creation import arange as arange
from ._creation import empty as empty
from ._creation import empty_like as empty_like
from ._creation import eye as eye
from ._creation import full as full
from ._creation import full_like as full_like
from ._creation import linspace as linspace
from ._creation import meshgrid as meshgrid
from ._creation import ones as ones
from ._creation import ones_like as ones_like
from ._creation import tril as tril
from ._creation import triu as triu
from ._creation import zeros as zeros
from ._creation import zeros_like as zeros_like
from ._decorator import Decorator as Decorator
from ._device import as_device as as_device
from ._device import default_device as default_device
from ._device import devices as devices
from ._device import empty_cache as empty_cache
from ._device import use_device as use_device
from ._dtype import DTYPES as DTYPES
from ._dtype import DType as DType
from ._dtype import DTypeLike as DTypeLike
from ._dtype import as_dtype as as_dtype
from ._dtype import bfloat16 as bfloat16
from ._dtype import bool_ as bool_
from ._dtype import finfo as finfo
from ._dtype import float16 as float16
from ._dtype import float32 as float32
from ._dtype import float64 as float64
from ._dtype import iinfo as iinfo
from ._dtype import int8 as int8
from ._dtype import int16 as int16
from ._dtype import int32 as int32
from ._dtype import int64 as int64
from ._dtype import uint8 as uint8
from ._dtype import uint16 as uint16
from ._dtype import uint32 as uint32
from ._dtype import uint64 as uint64
from ._errors import ArgumentError as ArgumentError
from ._errors import BackendUnavailableError as BackendUnavailableError
from ._errors import BatchingError as BatchingError
from ._errors import CompileError as CompileError
from ._errors import DeviceError as DeviceError
from ._errors import DisagreementError as DisagreementError
from ._errors import DTypeError as DTypeError
from ._errors import GradientError as GradientError
from ._errors import IndexOutOfRangeError as IndexOutOfRangeError
from ._errors import KindError as KindError
from ._errors import PhloxError as PhloxError
from ._errors import RecordError as RecordError
from ._errors import Rejected as Rejected
from ._errors import ShapeError as ShapeError
from ._errors import SharingError as SharingError
from ._errors import TreeError as TreeError
from ._errors import UnknownArgumentError as UnknownArgumentError
from ._errors import UnknownNameError as UnknownNameError
from ._errors import UnknownOpError as UnknownOpError
from ._errors import WrongTypeError as WrongTypeError
from ._functions import *  # noqa: F403 - generated, with __all__
from ._info import VERSION as _version_of_the_standard
from ._info import NamespaceInfo as _NamespaceInfo
from ._install import install as _install
from ._kinds import Bool as Bool
from ._kinds import Float as Float
from ._kinds import Int as Int
from ._meta_backend import Meta as Meta
from ._mixed import Mixed as Mixed
from ._numpy_backend import Numpy as Numpy
from ._op import REGISTRY as REGISTRY
from ._op import Op as Op
from ._op import Restated as Restated
from ._op import Spec as Spec
from ._pickle import install as _install_pickle
from ._profile import Profile as Profile
from ._profile import ProfileReport as ProfileReport
from ._profile import ProfileRow as ProfileRow
from ._proposed import Proposed as Proposed
from ._quantized import fake_quantize as fake_quantize
from ._quantized import pack_int4 as pack_int4
from ._quantized import unpack_int4 as unpack_int4
from ._random_state import seed as seed
from ._repr import PrintOptions as PrintOptions
from ._repr import printoptions as printoptions
from ._repr import set_printoptions as set_printoptions
from ._sets import UniqueAll as UniqueAll
from ._sets import UniqueCounts as UniqueCounts
from ._sets import UniqueInverse as UniqueInverse
from ._sets import unique_all as unique_all
from ._sets import unique_counts as unique_counts
from ._sets import unique_inverse as unique_inverse
from ._sets import unique_values as unique_values
from ._spellings import install as _install_hints
from ._standard import argsort as argsort
from ._standard import astype as astype
from ._standard import concat as concat
from ._standard import conj as conj
from ._standard import nonzero as nonzero
from ._standard import quantile as quantile
from ._standard import real as real
from ._standard import reshape as reshape
from ._standard import searchsorted as searchsorted
from ._standard import sort as sort
from ._table import Entry as Entry
from ._table import Table as Table
from ._tensor import Tensor as Tensor
from ._with_host import WithHost as WithHost
from .arguments import explain as _explain
from .names import unknown_function as _unknown_function

trace = linalg.trace
Device = Backend  # a backend is a device: the word for annotations
bool = bool_
newaxis = None
__array_api_version__ = _version_of_the_standard
__array_namespace_info__ = _NamespaceInfo
__version__ = "0.1.0"

_install()
_install_pickle()
_install_hints(Tensor)
_explain(_sys.modules[__name__], fft, linalg, random, tree)


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
