"""Tests for backends, generated from the op declarations.

``conformance(MyBackend())`` runs everything; ``checks(MyBackend())`` gives pytest parameters.
"""

from .._backend import lacks as lacks
from .._compare import disagreement as disagreement
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
