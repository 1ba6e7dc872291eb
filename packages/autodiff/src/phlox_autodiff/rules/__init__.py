"""The derivative of every op that has one of its own: a row for each, by family.

How rows are written is said in ``phlox_autodiff._rule``.
"""

from typing import Final

from .._rule import Rule, Second
from ._few import FEW
from .activation import ACTIVATION
from .attention import ATTENTION
from .binary import BINARY
from .collective import COLLECTIVE
from .contraction import CONTRACTION
from .convolution import CONVOLUTION, CONVOLUTION_FORWARD
from .factorization import FACTORIZATION
from .indexing import INDEXING, INDEXING_FORWARD
from .interpolation import INTERPOLATION
from .movement import MOVEMENT, MOVEMENT_FORWARD
from .piecewise import PIECEWISE
from .pooling import POOLING, POOLING_FORWARD
from .quantization import QUANTIZATION
from .recurrence import RECURRENCE
from .reduction import REDUCTION
from .rows import ROWS
from .signal import SIGNAL
from .sort import SORT
from .unary import UNARY

TABLES: Final = (
    ACTIVATION,
    ATTENTION,
    BINARY,
    COLLECTIVE,
    CONTRACTION,
    CONVOLUTION,
    FACTORIZATION,
    FEW,
    INDEXING,
    INTERPOLATION,
    MOVEMENT,
    PIECEWISE,
    POOLING,
    QUANTIZATION,
    RECURRENCE,
    REDUCTION,
    ROWS,
    SIGNAL,
    SORT,
    UNARY,
)
RULES: Final[dict[str, Rule]] = {name: row for table in TABLES for name, row in table.items()}
# Second lines, for forward mode: of ops whose rule does not say how tangents move, which are not
# declared linear, and which have no expansion to follow.
SECOND: Final[dict[str, Second]] = {
    **CONVOLUTION_FORWARD,
    **INDEXING_FORWARD,
    **MOVEMENT_FORWARD,
    **POOLING_FORWARD,
}

__all__ = ["RULES", "SECOND", "TABLES"]
