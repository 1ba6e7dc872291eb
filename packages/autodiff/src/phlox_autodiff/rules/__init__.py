"""The derivative of every op that has one of its own: a row for each, by family.

How rows are written is said in ``phlox_autodiff._rule``.
"""

from typing import Final

from .._rule import Rule
from .activation import ACTIVATION
from .binary import BINARY
from .contraction import CONTRACTION
from .creation import CREATION
from .interpolation import INTERPOLATION
from .movement import MOVEMENT
from .reduction import REDUCTION
from .rows import ROWS
from .unary import UNARY

TABLES: Final = (
    ACTIVATION,
    BINARY,
    CONTRACTION,
    CREATION,
    INTERPOLATION,
    MOVEMENT,
    REDUCTION,
    ROWS,
    UNARY,
)
RULES: Final[dict[str, Rule]] = {name: rule for table in TABLES for name, rule in table.items()}

__all__ = ["RULES", "TABLES"]
