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
_MOST: Final = 256  # forms that are kept: a constant that changes each step makes one each step


class _Place(NamedTuple):
    """Where a tensor lies: in which flat tensor (-1 if empty), at which offset; shape and dtype."""

    flat: int
    offset: int
    shape: tuple[int, ...]
    dtype: DType


def _packed(leaves: Sequence[Any]) -> list[tuple[list[int], Tensor[Any]]]:
    """Join tensors of the same device and dtype: their indices among leaves, one flat tensor."""
    groups: dict[Any, list[int]] = {}
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            groups.setdefault((leaf.device.base, leaf.dtype), []).append(place)
    found = []
    for (device, _), places in groups.items():
        tensors = [leaves[place].detach().to_device(device).reshape(-1) for place in places]
        found.append((places, concat(tensors)))
    return found


def marked(values: Any) -> tuple[Any, list[Tensor[Any]]]:
    """Return a tree with a text in place of each tensor, and the flat tensors that hold them."""
    leaves, structure = tree.flatten(values)
    assert not any(isinstance(x, str) for x in leaves), "a form would take it for a tensor"
    flats = _packed([x if isinstance(x, Tensor) and x.size else None for x in leaves])
    flat_of = {place: number for number, (places, _) in enumerate(flats) for place in places}
    told = [
        " ".join(map(str, (flat_of.get(place, -1), x.dtype.name, *x.shape)))
        if isinstance(x, Tensor)
        else x
        for place, x in enumerate(leaves)
    ]
    return structure.rebuild(told), [flat for _, flat in flats]


@final
class Form:
    """What the small values of a rank look like: all but their numbers.

    Attributes:
        flats: dtype and size of each flat tensor.
        numbers: the types of the numbers, as they travel.
    """

    def __init__(self, structure: Any, marks: list[Any]) -> None:
        """Take a structure and its marks: types of numbers, texts of tensors, and constants."""
        self.structure, self.marks = structure, marks
        self.data: Final = pickle.dumps(structure.rebuild(marks), protocol=5)
        self.digest: Final = int.from_bytes(blake2b(self.data, digest_size=8).digest(), "little")
        flats: dict[int, tuple[DType, int]] = {}
        self._leaves: list[Any] = []
        for mark in marks:
            if not isinstance(mark, str):
                self._leaves.append(mark)
                continue
            number, name, *sizes = mark.split()
            flat, dtype, shape = int(number), DTYPES[name], tuple(map(int, sizes))
            _, offset = flats.get(flat, (dtype, 0))
            self._leaves.append(_Place(flat, offset, shape, dtype))
            flats[flat] = dtype, offset + prod(shape)
        flats.pop(-1, None)  # of empty tensors
        self.flats: Final = [flats[number] for number in range(len(flats))]
        self.numbers: Final = [_NUMBERS[mark] for mark in marks if _is_number(mark)]

    def nbytes(self, *, tensors: bool) -> int:
        """How many bytes travel, with those of tensors or without."""
        own = sum(dtype.numpy.itemsize * count for dtype, count in self.flats) if tensors else 0
        return 8 * len(self.numbers) + own

    def value(self, flats: Sequence[Any], numbers: Sequence[Any], device: Backend) -> Any:
        """Return the tree, with slices of flat tensors; empty tensors are made on ``device``."""
        rest = iter(numbers)
        leaves = []
        for leaf in self._leaves:
            if isinstance(leaf, _Place):
                leaves.append(_cut(leaf, flats, device))
            else:
                leaves.append(next(rest) if _is_number(leaf) else leaf)
        return self.structure.rebuild(leaves)


def _cut(place: _Place, flats: Sequence[Any], device: Backend) -> Any:
    flat, offset, shape, dtype = place
    if flat < 0:
        return zeros(shape, dtype=dtype, device=device)
    return flats[flat][offset : offset + prod(shape)].reshape(shape)


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

        It depends on how many forms are known here. A rank that an error kept from an exchange
        knows fewer, so that no note fits any longer, and all ranks send their forms again.
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
        arrays: one for each flat tensor of its form; None where these travel elsewhere.
    """
    own = forms[group.rank]
    pieces = [stored(x).tobytes() for stored, x in zip(own.numbers, numbers, strict=True)]
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
    numbers = [word.view(own)[0].item() for word, own in zip(words, form.numbers, strict=True)]
    arrays = []
    for dtype, count in form.flats if tensors else ():
        high = low + count * dtype.numpy.itemsize
        arrays.append(np.frombuffer(data[low:high].tobytes(), dtype.numpy))
        low = high
    return numbers, arrays
