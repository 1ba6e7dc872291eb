"""What compiled functions are made of: graphs of ops, programs, numbers, cells, recordings."""

from ._call.dispatch import wrap
from ._device.backend import Watcher, watch
from ._device.compare import same_bits
from ._device.program import (
    Call,
    CallSequence,
    Instr,
    Kernel,
    Program,
    ProgramLimits,
    Run,
    SequenceRun,
)
from ._errors.foreign import is_ours
from ._op.declaration import registry_mark
from ._op.expansion import expansion
from ._programs.foreach import run_together
from ._programs.formula import Direct, ElementFormula
from ._programs.interpreter import interpreted
from ._programs.lowering import Lowered, Taken, arguments_of, fold_of, lowered, source_of
from ._random.state import drawing_by_lane, drawing_from, drawing_once, host_random_state, is_stream
from ._recording.active import recorded, unrecorded
from ._recording.graph import (
    Formula,
    Graph,
    Guard,
    Node,
    Value,
    filled,
    needed,
    shown,
    values_of,
    written,
)
from ._recording.raises import may_be_of_values
from ._recording.record import Recording, line_of_user, recording, refuse
from ._values.ambient import ALWAYS, EAGER, MODES, ambient, depend_on, runs_eagerly
from ._values.cell import RECORDINGS, STATEFUL, Cell, Packed, register_state
from ._values.kinds import KIND_SETS
from ._values.number import NOBODY, NeedsValue, Number, call, error_of, itself, plain, same
from ._values.primitives import each_primitive, on_primitives
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
    "expansion",
    "filled",
    "fold_of",
    "host_random_state",
    "infer_prepared",
    "interpreted",
    "is_ours",
    "is_stream",
    "itself",
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
    "registry_mark",
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
