"""Versions: what was recorded for one form of arguments, and what it keeps alive."""

from __future__ import annotations

from typing import Final, final

from ..record.outside import Outside
from ..record.steps import Kept
from ..record.trace import Run
from ..record.watch import unchanged
from ..replay.halves import Join
from ..replay.replay import Replay
from .form import Form
from .probe import Probe

SPOT: Final = 4  # a replay is compared with the function at calls 4, 16, 64 and so on


@final
class Version:
    """What was recorded for one form of arguments.

    Attributes:
        arguments: the layout of all of them, which others of one form find as long as it lives.
        replay: does the same; None until a second run agreed.
        probe: knows such arguments at once; None where only a key does.
        due: after how many the next one is compared with the function again.
        join: how results go on with the history of arguments; None where they have none.
        kept: whether the caller keeps what it steps; None where it makes no step.
        filled_a_cache: the first run left something outside that the second one may find.
    """

    def __init__(self, outside: Outside, found: Run, form: Form, *, filled_a_cache: bool) -> None:
        self.form: Final = form
        self.arguments: Final = found.arguments
        self.pins: Final = found.pins
        self.filled_a_cache: Final = filled_a_cache
        self.kept: Final = Kept(found.steps) if found.steps else None
        self.outside = outside
        self.trace: Final = found.trace
        self.replay: Replay | None = None
        self.join: Join | None = None
        self.probe: Probe | None = None
        self.text = ""
        self.used = 0
        self.calls = 2  # the recorded ones
        self.due = SPOT - 1

    def unchanged(self) -> bool:
        """Whether all that it read outside is as it was."""
        return unchanged(self.outside.watches)

    def what_changed(self) -> str:
        """The first place outside that is not as it was; empty where all is."""
        return next((place for watch in self.outside.watches for place, _ in watch.changes()), "")
