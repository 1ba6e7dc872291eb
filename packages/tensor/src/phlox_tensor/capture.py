"""What compiled functions are made of: graphs of ops, programs, numbers, cells, recordings."""

from ._ambient import ALWAYS, EAGER, MODES, ambient, depend_on, runs_eagerly
from ._backend import Watcher, watch
from ._call import wrap
from ._cell import RECORDINGS, STATEFUL, Cell, Packed, register_state
from ._compare import same_bits
from ._each import each_primitive, on_primitives
from ._formula import Direct, ElementFormula
from ._graph import Formula, Graph, Guard, Node, Value, filled, needed, shown, values_of, written
from ._host_random import host_random_state
from ._interpreter import interpreted
from ._kinds import KIND_SETS
from ._lowering import Lowered, Taken, arguments_of, fold_of, lowered, source_of
from ._number import NOBODY, NeedsValue, Number, call, error_of, itself, plain, same
from ._op import last_replaced
from ._ours import is_ours
from ._program import (
    Call,
    CallSequence,
    Instr,
    Kernel,
    Program,
    ProgramLimits,
    Run,
    SequenceRun,
)
from ._raising import may_be_of_values
from ._random_state import drawing_by_lane, drawing_from, drawing_once, is_stream
from ._recording import Recording, line_of_user, recording, refuse
from ._together import run_together
from ._under_way import recorded, unrecorded
from .inference import infer_prepared

__all__ = [
    "ALWAYS",
    "EAGER",
    "KIND_SETS",
    "MODES",
    "NOBODY",
    "RECORDINGS",
    "STATEFUL",
    "Call",
    "CallSequence",
    "Cell",
    "Direct",
    "ElementFormula",
    "Formula",
    "Graph",
    "Guard",
    "Instr",
    "Kernel",
    "Lowered",
    "NeedsValue",
    "Node",
    "Number",
    "Packed",
    "Program",
    "ProgramLimits",
    "Recording",
    "Run",
    "SequenceRun",
    "Taken",
    "Value",
    "Watcher",
    "ambient",
    "arguments_of",
    "call",
    "depend_on",
    "drawing_by_lane",
    "drawing_from",
    "drawing_once",
    "each_primitive",
    "error_of",
    "filled",
    "fold_of",
    "host_random_state",
    "infer_prepared",
    "interpreted",
    "is_ours",
    "is_stream",
    "itself",
    "last_replaced",
    "line_of_user",
    "lowered",
    "may_be_of_values",
    "needed",
    "on_primitives",
    "plain",
    "recorded",
    "recording",
    "refuse",
    "register_state",
    "run_together",
    "runs_eagerly",
    "same",
    "same_bits",
    "shown",
    "source_of",
    "unrecorded",
    "values_of",
    "watch",
    "wrap",
    "written",
]
