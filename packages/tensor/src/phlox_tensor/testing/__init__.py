"""Tests for backends, generated from the op declarations.

``conformance(MyBackend())`` runs everything; ``checks(MyBackend())`` gives pytest parameters.
"""

from typing import Final as _Final

from .._device.backend import lacks as lacks
from .._device.compare import disagreement as disagreement
from ..public import publish as _publish
from ._close import assert_close as assert_close
from ._conformance import Check as Check
from ._conformance import check as check
from ._conformance import checks as checks
from ._conformance import conformance as conformance
from ._layouts import LAYOUTS as LAYOUTS
from ._programs import assert_program as assert_program
from ._programs import strided as strided
from ._samples import Sample as Sample
from ._samples import draw as draw
from ._samples import dtypes_for as dtypes_for
from ._samples import samples as samples
from ._special import special_values as special_values

_EXACT: _Final = "px.testing.assert_close(got, want, rtol=0, atol=0)"
# What NumPy's and PyTorch's modules of this name have.
_NAMES: _Final = {
    "assert_allclose": "px.testing.assert_close(got, want, rtol=1e-6)",
    "assert_almost_equal": "px.testing.assert_close(got, want, rtol=0, atol=1e-6)",
    "assert_array_almost_equal": "px.testing.assert_close(got, want, rtol=0, atol=1e-6)",
    "assert_array_equal": _EXACT,
    "assert_equal": _EXACT,
    "make_tensor": "px.random.uniform((2, 3), -9.0, 9.0)",
}


_publish(__name__, _NAMES, owner="px.testing")
