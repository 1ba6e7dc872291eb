"""The derivative of every op that has one of its own: a row for each, by family.

How rows are written is said in ``phlox_autodiff._rule``.
"""

from typing import Final

from .._rule import Rule
from .activation import ACTIVATION
from .attention import ATTENTION
from .binary import BINARY
from .contraction import CONTRACTION
from .convolution import CONVOLUTION
from .creation import CREATION
from .indexing import INDEXING
from .interpolation import INTERPOLATION
from .movement import MOVEMENT
from .pooling import POOLING
from .random import RANDOM
from .reduction import REDUCTION
from .rows import ROWS
from .scan import SCAN
from .sort import SORT
from .unary import UNARY

TABLES: Final = (
    ACTIVATION,
    ATTENTION,
    BINARY,
    CONTRACTION,
    CONVOLUTION,
    CREATION,
    INDEXING,
    INTERPOLATION,
    MOVEMENT,
    POOLING,
    RANDOM,
    REDUCTION,
    ROWS,
    SCAN,
    SORT,
    UNARY,
)
RULES: Final[dict[str, Rule]] = {name: rule for table in TABLES for name, rule in table.items()}

__all__ = ["RULES", "TABLES"]
