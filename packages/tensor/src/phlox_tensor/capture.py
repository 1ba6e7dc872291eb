"""What compiled functions are made of: graphs of ops as data, numbers, cells, recordings."""

from ._ambient import EAGER, MODES, ambient, depend_on, runs_eagerly
from ._cell import RECORDINGS, Cell, Packed
from ._graph import Formula, Graph, Guard, Node, Value, shown, values_of, written
from ._number import Number, call, plain, same
from ._recording import Recording, line_of_user, recorded, recording

__all__ = [
    "EAGER",
    "MODES",
    "RECORDINGS",
    "Cell",
    "Formula",
    "Graph",
    "Guard",
    "Node",
    "Number",
    "Packed",
    "Recording",
    "Value",
    "ambient",
    "call",
    "depend_on",
    "line_of_user",
    "plain",
    "recorded",
    "recording",
    "runs_eagerly",
    "same",
    "shown",
    "values_of",
    "written",
]
