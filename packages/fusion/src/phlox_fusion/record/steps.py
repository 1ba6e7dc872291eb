"""Steps of optimizers in a compiled function: does its caller keep what they give?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, final
from weakref import ref

from phlox_tensor import Tensor, tree
from phlox_tensor.capture import Recording

from ..source import Source


class Step(NamedTuple):
    """One step, by places that stay from call to call, as text.

    Attributes:
        optimizer: its place among the arguments; or itself.
        before: the place of a parameter among the arguments.
        after: where in the result it is after the step; None where nobody gets it.
        model: the place of the argument that is another one whenever the parameter is.
        note: notes the step, and refuses it where the result of the last one was dropped.
    """

    optimizer: str | ref[Any]
    before: str
    after: str | None
    model: str
    note: Callable[[Any, Any, Any], None]


def steps_of(
    made: Recording, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any
) -> tuple[Step, ...]:
    """The steps of what is given; none of an optimizer that makes several, or for a cell."""
    given = {f"given[{at}]": item for at, item in enumerate(args)}
    given |= {f"kwargs[{name!r}]": item for name, item in kwargs.items()}
    owners = [id(step[0]) for step in made.steps]
    found = []
    for optimizer, before, after, note in made.steps:
        place, own = _place_of(before, given), _place_of(optimizer, given)
        left = _place_of(after, {"out": out})
        in_cell = left is None and _place_of(after, {"": [*made.outcomes.values()]}) is not None
        if place is not None and not in_cell and owners.count(id(optimizer)) == 1:
            step = own[0] if own else ref(optimizer), place[0], left and left[0], place[1], note
            found.append(Step(*step))
    made.steps.clear()  # which hold models
    return tuple(found)


def _place_of(goal: Any, roots: Mapping[str, Any]) -> tuple[str, str] | None:
    """Where an object stands, and the first on the way there that never changes."""
    work = [(text, item, "") for text, item in roots.items()]
    seen = set[int]()
    for text, item, whole in work:
        if item is goal:
            return text, whole or text
        node = None if isinstance(item, Tensor) or id(item) in seen else tree.node_of(item)
        if node is None:
            continue
        seen.add(id(item))
        frozen = whole or ("" if node.static is None else text)
        if isinstance(item, list | tuple):
            work += [(f"{text}[{at}]", part, frozen) for at, part in enumerate(item)]
        elif isinstance(item, dict):
            named = [(key, part) for key, part in item.items() if type(key) in (int, str)]
            work += [(f"{text}[{key!r}]", part, frozen) for key, part in named]
        elif isinstance(children := node.flatten(item)[0], dict):
            names = {str(key).partition(".")[0]: None for key in children}
            named = [(name, getattr(item, name, None)) for name in names if name.isidentifier()]
            work += [(f"{text}.{name}", part, frozen) for name, part in named]
    return None


@final
class Kept:
    """Whether a caller gives a model again that was stepped, and dropped what the step gave."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self._steps: Final = steps
        self._last: Final = [0 for _ in steps]  # ids of the models of the last call
        source = Source()
        for step in steps:
            own, note = step.optimizer, source.held(step.note, "note")
            source.line(f"own = {own if isinstance(own, str) else f'{source.held(own)}()'}")
            source.line(f"if own is not None: {note}(own, {step.before}, {step.after})")
        self._note: Final = source.function("note_steps", "given, kwargs, out")
        source = Source()
        source.line(f"return [{', '.join(f'id({step.model})' for step in steps)}]")
        self._models: Final = source.function("models", "given, kwargs")

    def settle(self, given: Any, kwargs: Any, out: Any, *, recorded: bool) -> None:
        """Tell optimizers of a call: of each one where a model comes that came the call before.

        Raises:
            GradientError: where that call stepped it too, and what it gave is gone.
        """
        now = self._models(given, kwargs)
        if recorded or any(map(int.__eq__, now, self._last)):
            self._note(given, kwargs, out)
        self._last[:] = now

    def write(self, source: Source, miss: str) -> None:
        """Add lines that do ``miss`` where a model comes that came the call before."""
        last = source.held(self._last, "last")
        for at, step in enumerate(self._steps):
            source.line(f"model = id({step.model})")
            source.line(f"if model == {last}[{at}]: {miss}")
            source.line(f"{last}[{at}] = model")
