"""The derivative of every op that has one of its own: a row for each, by family.

How rows are written is said in ``phlox_autodiff._rule``.
"""

from typing import Final

from .._rule import Rule, Second
from .._tables import joined
from .activation import ACTIVATION
from .attention import ATTENTION
from .binary import BINARY
from .contraction import CONTRACTION
from .convolution import CONVOLUTION, CONVOLUTION_FORWARD
from .creation import CREATION
from .factorization import FACTORIZATION
from .indexing import INDEXING, INDEXING_FORWARD
from .interpolation import INTERPOLATION
from .movement import MOVEMENT, MOVEMENT_FORWARD
from .neighbor import NEIGHBOR
from .piecewise import PIECEWISE
from .pooling import POOLING, POOLING_FORWARD
from .quantization import QUANTIZATION
from .random import RANDOM
from .recurrence import RECURRENCE
from .reduction import REDUCTION
from .rows import ROWS
from .sampling import SAMPLING
from .scan import SCAN
from .selection import SELECTION
from .signal import SIGNAL
from .sort import SORT
from .special import SPECIAL
from .statistics import STATISTICS
from .unary import UNARY

TABLES: Final = (
    ACTIVATION,
    ATTENTION,
    BINARY,
    CONTRACTION,
    CONVOLUTION,
    CREATION,
    FACTORIZATION,
    INDEXING,
    INTERPOLATION,
    MOVEMENT,
    NEIGHBOR,
    PIECEWISE,
    POOLING,
    QUANTIZATION,
    RANDOM,
    RECURRENCE,
    REDUCTION,
    ROWS,
    SAMPLING,
    SCAN,
    SELECTION,
    SIGNAL,
    SORT,
    SPECIAL,
    STATISTICS,
    UNARY,
)
RULES: Final[dict[str, Rule]] = joined(TABLES)
# Second lines, for forward mode: of ops whose rule does not say how tangents move, which are not
# declared linear, and which have no expansion to follow.
SECOND: Final[dict[str, Second]] = joined(
    (CONVOLUTION_FORWARD, INDEXING_FORWARD, MOVEMENT_FORWARD, POOLING_FORWARD)
)

__all__ = ["RULES", "SECOND", "TABLES"]
