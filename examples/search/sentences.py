"""A few hundred sentences to search: each subject does each thing at each place."""

from itertools import product

_SUBJECTS = (
    "The old cat",
    "A young engineer",
    "My grandmother",
    "The orchestra",
    "A hungry dog",
    "The finance minister",
    "The football team",
)
_DOINGS = (
    "fell asleep",
    "was cooking soup",
    "lost all the money",
    "practiced a difficult melody",
    "repaired a broken bicycle",
    "celebrated a victory",
    "waited for the train",
)
_PLACES = (
    "in the garden",
    "on a rainy morning",
    "near the harbor",
    "during the meeting",
    "at the station",
    "before sunrise",
)


def sentences() -> list[str]:
    """Return them: 294."""
    return [f"{who} {what} {where}." for who, what, where in product(_SUBJECTS, _DOINGS, _PLACES)]
