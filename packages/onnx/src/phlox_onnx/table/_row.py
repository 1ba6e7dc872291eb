"""What a row of the table is: a function whose parameters have the names of the schema.

Positional parameters are the inputs of an op, those by keyword its attributes. What a parameter
takes stands in its annotation:

- nothing or ``Tensor``: a tensor, whatever it was before;
- ``Host``: an array of NumPy, read from the device where that is needed;
- ``Ints``: a tuple of integers, read likewise; ``Scalar``: one Python number;
- ``Raw``: a tensor, an array, a list or None, as it comes.

Attributes that several ops share may be ``**how: Unpack[...]`` of a dict whose keys they are. One
that is a ``Literal`` has to be one of its words, which is looked at before anything runs.
``outputs``, ``device`` and ``stacked`` among the keywords are no attributes: how many outputs are
wanted, where new tensors belong, and what a body gives that is stacked. A function returns a
value, or a tuple of them.
"""

from __future__ import annotations

import inspect
import sys
from ast import literal_eval
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, final, get_args, get_origin

import numpy as np

from .._errors import OnnxError
from .._graph import Array, Node

Host: TypeAlias = np.ndarray[Any, Any]
Ints: TypeAlias = tuple[int, ...]
Scalar: TypeAlias = bool | int | float
Raw: TypeAlias = Any

# What the graphs inside of a node are: branches, of which one runs; bodies of a loop, of what goes
# over slices of tensors, over such slices for each of a batch, or over the items of a list.
Body: TypeAlias = Literal["", "batches", "branch", "items", "loop", "slices"]
# Whether a node gives its first input, as far as the constants say.
Same: TypeAlias = Callable[[Node, Mapping[str, Array]], bool]

CONTEXT: Final = ("outputs", "device", "stacked")


def whole(value: Host) -> Ints:
    """The numbers of an array that says sizes, axes or places.

    Raises:
        OnnxError: when it is no list of whole numbers.
    """
    if value.dtype.kind not in "iuO" or value.ndim > 1:
        got = f"{value.dtype} of shape {value.shape}"
        raise OnnxError("onnx", "no list of whole numbers", got=got, expected="int64, one axis")
    return tuple(int(n) for n in value.reshape(-1))


@final
@dataclass(frozen=True, slots=True)
class Parameter:
    """An input of a row."""

    name: str
    takes: str
    default: Any
    required: bool


@final
@dataclass(frozen=True)
class Row:
    """How an op runs.

    Attributes:
        version: the newest version of the op that the function fits.
        run: the function.
        host: what runs instead where all inputs are on the host.
        trained: inputs whose constants are trained.
        inputs: the parameters by position.
        rest: the parameter that takes all further inputs.
        attributes: the parameters by keyword, with whether the node has to bring them.
        words: what those may be that are a ``Literal``.
        registered: whether the function is a user's.
        optional_test: whether it asks if an input is there at all.
        bias: where the bias stands if the second input is the weight of a layer: ``"input"`` is
            the third one, ``"sum"`` what is added to the result.
        inner: what the graphs inside of its nodes are.
        draws: whether the same inputs may give something else each time.
        file_sized: whether numbers in the file say how large the result is.
        measures: whether it reads the sizes of its inputs alone.
        movement: whether elements of the inputs come out as they were, in other places.
        numbers: whether what is trained may be one number.
        same: tells whether a node gives its first input.
        scalar: whether it may make one number without axes of what has axes.
        transposed_by: the attribute that says that the second input is a transposed matrix.
    """

    version: int
    run: Callable[..., Any]
    host: Callable[..., Any] | None
    trained: frozenset[str]
    inputs: tuple[Parameter, ...]
    rest: Parameter | None
    attributes: dict[str, bool]
    words: dict[str, tuple[Any, ...]]
    context: tuple[str, ...]
    registered: bool = False
    optional_test: bool = False
    bias: Literal["", "input", "sum"] = ""
    inner: Body = ""
    draws: bool = False
    file_sized: bool = False
    measures: bool = False
    movement: bool = False
    numbers: bool = False
    same: Same | None = None
    scalar: bool = False
    transposed_by: str = ""


def row(
    opset: int,
    run: Callable[..., Any],
    *,
    host: Callable[..., Any] | None = None,
    trained: str = "",
    **marks: Any,
) -> Row:
    """Return the row of an op; ``trained`` names inputs, apart by spaces."""
    inputs: list[Parameter] = []
    rest = None
    attributes: dict[str, bool] = {}
    words: dict[str, tuple[Any, ...]] = {}
    for each in inspect.signature(run).parameters.values():
        takes = _takes(each.annotation)
        bare = each.default is inspect.Parameter.empty
        default = None if bare else each.default
        required = bare and "None" not in str(each.annotation)
        if each.kind is inspect.Parameter.VAR_POSITIONAL:
            rest = Parameter(each.name, takes, None, required and takes == "Tensor")
        elif each.kind is inspect.Parameter.KEYWORD_ONLY:
            attributes[each.name] = bare
            words[each.name] = _words(each.annotation, run.__globals__)
        elif each.kind is inspect.Parameter.VAR_KEYWORD and "Unpack[" in str(each.annotation):
            made = run.__globals__[str(each.annotation)[len("Unpack[") : -1]]
            attributes |= dict.fromkeys(made.__annotations__, False)
            names = vars(sys.modules[made.__module__])
            words |= {k: _words(v.__forward_arg__, names) for k, v in made.__annotations__.items()}
        else:
            inputs.append(Parameter(each.name, takes, default, required))
    context = tuple(name for name in CONTEXT if attributes.pop(name, None) is not None)
    known = {name: each for name, each in words.items() if each}
    found = (frozenset(trained.split()), tuple(inputs), rest, attributes, known, context)
    return Row(opset, run, host, *found, **marks)


def _words(annotation: Any, names: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a ``Literal`` holds, or the name of one; nothing for other types."""
    text = str(annotation)
    if text.startswith("Literal["):
        return tuple(literal_eval(text.removeprefix("Literal")))
    found = names.get(text)
    return get_args(found) if get_origin(found) is Literal else ()


_KINDS: Final = ("Host", "Ints", "Raw", "Scalar")


def _takes(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    word = text.split("|")[0].strip()
    return word if word in _KINDS else "Tensor"
