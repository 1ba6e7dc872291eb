"""What a compiled function may not do, and what to write instead."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from phlox_tensor import CompileError

# Limits of what is compared at each call.
MOST_BYTES: Final = 16_384  # of bytes, arrays and views of memory
MOST_NUMBERS: Final = 4_096  # of an array of NumPy
MOST_PARTS: Final = 1_000  # of a container
MOST_VALUES: Final = 10_000  # of one function
DEEPEST: Final = 16  # containers and objects in each other


class Refusal(NamedTuple):
    """An error of which the texts may have places for names."""

    what: str
    expected: str
    hint: str

    def of(self, got: object = None, **names: object) -> CompileError:
        """Return the error."""
        what, expected, hint = (text.format(**names) if names else text for text in self)
        return CompileError("compile", what, got=got, expected=expected, hint=hint)


# Arguments
ARRAY: Final = Refusal(
    "an array of NumPy is among the arguments, whose numbers may change unseen",
    "a tensor",
    "px.asarray(batch) outside of the function: step(model, px.asarray(batch))",
)
HISTORY: Final = Refusal(
    "{where} has a history, which a compiled function would lose",
    "a leaf or a constant",
    "x.detach(), or return the tensor",
)
INTO_HISTORY: Final = Refusal(
    "backward() inside of the function reaches an argument that has a history, whose own operands "
    "a replay does not know",
    "a leaf, or backward() outside of the function",
    "return the loss; or x.detach().require_grad() before the call",
)
REACHED_TWICE: Final = Refusal(
    "an object with state is an argument, and is reached in another way too",
    "one of both, as another call may give another object",
    "step(model, optimizer, batch), where step reads no optimizer but its argument",
)
TOLD_APART: Final = Refusal(
    "an argument is also there from outside, and the function compares objects by identity, where "
    "a replay could not tell",
    "arguments of their own",
    "None in the place of an object that stands for nothing; or a bool argument",
)
# What is read from outside
ITERATOR: Final = Refusal(
    "the function reads an iterator from outside, which a replay would not move on",
    "values that depend on arguments and cells",
    "step(x, next(schedule)) outside of the function; px.Cell for a count",
)
LARGE_ARRAY: Final = Refusal(
    "an array of NumPy from outside is too large to be compared at each call",
    f"tensors; arrays of at most {MOST_NUMBERS} elements",
    "px.asarray({name}) outside of the function; or {base}.setflags(write=False) for what never "
    "changes",
)
RANDOM: Final = Refusal(
    "the function draws random numbers of the host, which a replay would not draw again",
    "random numbers of px.random",
    "px.random.uniform(()) in place of random.random(); or give the number as an argument",
)
TOO_DEEP: Final = Refusal(
    "what the function reads from outside is too much to be compared at each call",
    f"at most {DEEPEST} containers in each other, and {MOST_VALUES} values",
    "give what is needed of it as an argument",
)
TOO_LARGE: Final = Refusal(
    "a container from outside is too large to be compared at each call",
    f"at most {MOST_PARTS} parts, {MOST_BYTES} bytes",
    "give what is needed of it as an argument; tuple({name}) for plain values that never change; "
    "px.Cell for what the function changes",
)
TRACKED: Final = Refusal(
    "the result depends on a tracked tensor that is no argument",
    "tracked tensors and models as arguments",
    "fast = px.compile(lambda model, x: model(x)); fast(model, x)",
)
TRANSFORM: Final = Refusal(
    "the result depends on a tensor of a transform, such as vmap, that is no argument",
    "tensors of the transform as arguments",
    "px.compile(px.vmap(function)); or give the tensor as an argument",
)
# What a run does and gives
CHANGES: Final = Refusal(
    "the function changes what a replay would leave as it is",
    "changes that are returned, or kept in a Cell",
    "{hint}",
)
HIDDEN: Final = Refusal(
    "a {name} has a tensor which a replay would keep as it is",
    "all tensors among the children",
    "tree.register(type, lambda x: ({{'low': x.low}}, None), rebuild)",
)
RUNS_DIFFER: Final = Refusal(
    "two runs on alike arguments did not do the same",
    "ops and captured data that depend on arguments and cells alone",
    "give what changes as an argument, or keep it in px.Cell; px.random in place of other random "
    "numbers; helper() once before, where it caches",
)
STATE_AGAIN: Final = Refusal(
    "a recorded run goes back through a compiled function that reads state",
    "both halves of it in one compiled function",
    "px.compile of the function that calls both",
)
STRANGE: Final = Refusal(
    "the function returns an object that a replay cannot make",
    "tensors, numbers, modules, and containers of them",
    "{hint}",
)
UNRELATED: Final = Refusal(
    "results have histories on devices of which none is inside of the other",
    "one device",
    "a compiled function for each device",
)


def too_large(item: Any, where: str) -> CompileError:
    """The error for a container of too many parts."""
    got = f"{where}, a {type(item).__name__} of {len(item)} parts"
    return TOO_LARGE.of(got, name=where.partition(" ")[0])


def large_array(item: Any, where: str, base: str) -> CompileError:
    """The error for an array of too many elements; ``base``: what may be written to."""
    name = where.partition(" ")[0]
    view = "" if base == name else ", a view of an array that may be written to"
    return LARGE_ARRAY.of(f"{where} of shape {item.shape}{view}", name=name, base=base)


def reached_twice(item: Any) -> CompileError:
    """The error for an object with state that a run finds in two ways."""
    return REACHED_TWICE.of(f"a {type(item).__name__} among the arguments, and in a name or Cell")
