"""Small values that all ranks get in each step, such as losses and running statistics.

What they look like is told once. Then a step carries their numbers alone, in one message.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from hashlib import blake2b
from itertools import accumulate, pairwise
from math import prod
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import DTYPES, Backend, DType, Tensor, concat, tree, zeros
from phlox_tensor.groups import Group, all_gather_object

_NUMBERS: Final = {int: np.int64, float: np.float64}
_MOST: Final = 256  # forms that are known at a time: more come of constants that change each step


class _Place(NamedTuple):
    """Where the elements of a tensor are: in which flat one, from which on; and what it was."""

    kind: int
    low: int
    shape: tuple[int, ...]
    dtype: DType


def _packed(leaves: Sequence[Any]) -> list[tuple[list[int], Tensor[Any]]]:
    """Tensors among leaves, those of a device and element type as one: places, flat."""
    kinds: dict[Any, list[int]] = {}
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            kinds.setdefault((leaf.device.base, leaf.dtype), []).append(place)
    found = []
    for (device, _), places in kinds.items():
        tensors = [leaves[place].detach().to_device(device).reshape(-1) for place in places]
        found.append((places, concat(tensors)))
    return found


def marked(values: Any) -> tuple[Any, list[Tensor[Any]]]:
    """Return a tree with texts for its tensors, and these in one tensor for each element type."""
    leaves, structure = tree.flatten(values)
    flats = _packed([x if isinstance(x, Tensor) and x.size else None for x in leaves])
    kinds = {place: number for number, (places, _) in enumerate(flats) for place in places}
    told = [
        " ".join(map(str, (kinds.get(place, -1), x.dtype.name, *x.shape)))
        if isinstance(x, Tensor)
        else x
        for place, x in enumerate(leaves)
    ]
    return structure.rebuild(told), [flat for _, flat in flats]


@final
class Form:
    """What the small values of a rank look like: all but their numbers."""

    def __init__(self, structure: Any, marks: list[Any]) -> None:
        """Take a tree apart: of its leaves the types of numbers, texts for tensors, constants."""
        self.structure, self.marks = structure, marks
        self.data: Final = pickle.dumps(structure.rebuild(marks), protocol=5)
        self.digest: Final = int.from_bytes(blake2b(self.data, digest_size=8).digest(), "little")
        kinds: dict[int, tuple[DType, int]] = {}
        self._leaves: list[Any] = []
        for mark in marks:
            if not isinstance(mark, str):
                self._leaves.append(mark)
                continue
            number, name, *sizes = mark.split()
            kind, dtype, shape = int(number), DTYPES[name], tuple(map(int, sizes))
            _, low = kinds.get(kind, (dtype, 0))
            self._leaves.append(_Place(kind, low, shape, dtype))
            kinds[kind] = dtype, low + prod(shape)
        kinds.pop(-1, None)  # what is empty
        self.kinds: Final = [kinds[number] for number in range(len(kinds))]
        self.numbers: Final = [_NUMBERS[mark] for mark in marks if _is_number(mark)]

    def nbytes(self, *, tensors: bool) -> int:
        """How many bytes travel, with those of tensors or without."""
        own = sum(dtype.numpy.itemsize * count for dtype, count in self.kinds) if tensors else 0
        return 8 * len(self.numbers) + own

    def value(self, flats: Sequence[Any], numbers: Sequence[Any], device: Backend) -> Any:
        """Return the tree, of numbers and pieces of flat tensors; what is empty is on a device."""
        rest = iter(numbers)
        leaves = []
        for leaf in self._leaves:
            if isinstance(leaf, _Place):
                leaves.append(_cut(leaf, flats, device))
            else:
                leaves.append(next(rest) if _is_number(leaf) else leaf)
        return self.structure.rebuild(leaves)


def _cut(place: _Place, flats: Sequence[Any], device: Backend) -> Any:
    kind, low, shape, dtype = place
    if kind < 0:
        return zeros(shape, dtype=dtype, device=device)
    return flats[kind][low : low + prod(shape)].reshape(shape)


def _form_of(data: bytes) -> Form:
    marks, structure = tree.flatten(pickle.loads(data))
    return Form(structure, marks)


def _is_number(mark: Any) -> bool:
    return mark is int or mark is float


@final
class Forms:
    """The forms that all ranks know, each by a number of its own."""

    def __init__(self, group: Group) -> None:
        """Begin without any."""
        self._group = group
        self._known: dict[int, Form] = {}
        self._last: Form | None = None

    def of(self, told: Any) -> tuple[Form, list[Any]]:
        """Return the form of a tree with texts for tensors, and its numbers."""
        leaves, structure = tree.flatten(told)
        marks = [type(x) if type(x) in _NUMBERS else x for x in leaves]
        numbers = [x for x in leaves if type(x) in _NUMBERS]
        last = self._last
        if last is None or last.structure != structure or last.marks != marks:
            last = self._last = Form(structure, marks)
        return last, numbers

    def note(self, own: Form) -> int:
        """Return the number by which the others know a form.

        It covers how many are known: where a rank lost an exchange by an error, all tell again.
        """
        return own.digest ^ len(self._known)

    def of_all(self, own: Form, notes: Sequence[int]) -> list[Form]:
        """Return the forms of all ranks by their numbers; those that are new they tell now."""
        known = len(self._known)
        digests = [note ^ known for note in notes]
        if any(digest not in self._known for digest in digests):
            found = all_gather_object(self._group, (own.data, known))
            if any(count != known or count >= _MOST for _, count in found):
                self._known = {}
            forms = [_form_of(data) for data, _ in found]
            self._known |= {form.digest: form for form in forms}
            digests = [form.digest for form in forms]
        return [self._known[digest] for digest in digests]


def carried(
    group: Group,
    forms: Sequence[Form],
    numbers: Sequence[Any],
    arrays: Sequence[NDArray[Any]] | None,
) -> list[tuple[list[Any], list[NDArray[Any]]]]:
    """Return the numbers and arrays of all ranks.

    Args:
        group: the ranks.
        forms: the forms of all ranks.
        numbers: those of this rank.
        arrays: one for each kind of its tensors; None where these travel elsewhere.
    """
    own = forms[group.rank]
    pieces = [kind(x).tobytes() for kind, x in zip(own.numbers, numbers, strict=True)]
    send = np.frombuffer(b"".join([*pieces, *(x.tobytes() for x in arrays or ())]), np.uint8)
    counts = [form.nbytes(tensors=arrays is not None) for form in forms]
    receive = np.empty(sum(counts), np.uint8)
    if receive.size:
        group.all_gather(send, receive, counts)
    ends = [0, *accumulate(counts)]
    whole = [receive[low:high] for low, high in pairwise(ends)]
    return [_read(*each, tensors=arrays is not None) for each in zip(forms, whole, strict=True)]


def _read(form: Form, data: NDArray[Any], *, tensors: bool) -> tuple[list[Any], list[NDArray[Any]]]:
    low = 8 * len(form.numbers)
    words = data[:low].reshape(-1, 8)
    numbers = [word.view(kind)[0].item() for word, kind in zip(words, form.numbers, strict=True)]
    arrays = []
    for dtype, count in form.kinds if tensors else ():
        high = low + count * dtype.numpy.itemsize
        arrays.append(np.frombuffer(data[low:high].tobytes(), dtype.numpy))
        low = high
    return numbers, arrays
