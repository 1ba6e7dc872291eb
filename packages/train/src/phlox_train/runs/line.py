"""One live line in a terminal; a plain line now and then where there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, Final, NamedTuple, final

from phlox_tensor.needed import needed

_LIVE: Final = 0.5  # seconds between two pictures of the line; one takes about a millisecond
_PLAIN: Final = 30.0


class Facts(NamedTuple):
    """What a line says.

    Attributes:
        left: steps that are left; None where nobody knows.
        waited: seconds that loops waited for batches in this start.
        values: the last ones, by split and name.
    """

    step: int
    epoch: int
    left: int | None
    waited: float
    values: Mapping[str, float]


@final
class Line:
    """Shows where a run is: epoch, step, speed, time left, loss, and the wait for data.

    Attributes:
        total: how many epochs there will be.
    """

    def __init__(self, show: bool) -> None:
        """Show nothing yet."""
        self.total = 0
        self._show = show
        self._console: Any = None
        self._live: Any = None
        self._next = self._began = self._epoch = monotonic()
        self._first = 0

    def begin(self, step: int) -> None:
        """Count speed from here."""
        self._began = self._epoch = monotonic()
        self._next, self._first = self._began + _LIVE, step

    def step(self, facts: Callable[[], Facts]) -> None:
        """Show a step, if the line is old enough."""
        if not self._show or monotonic() < self._next:
            return
        self._open()
        now, text = monotonic(), self._text(facts())
        if self._live is not None:
            self._live.update(text, refresh=True)
            self._next = now + _LIVE
        elif now >= self._began + _PLAIN:
            self._say(text)
            self._next = now + _PLAIN
        else:
            self._next = self._began + _PLAIN

    def epoch(self, facts: Callable[[], Facts], epoch: int) -> None:
        """Leave a line for an epoch that ended."""
        if not self._show:
            return
        self._open()
        now = monotonic()
        values = "  ".join(f"{name} {value:.4g}" for name, value in facts().values.items())
        self._say(f"epoch {self._of(epoch)}  {clock(now - self._epoch)}  {values}")
        self._epoch = now

    def say(self, text: str) -> None:
        """Leave a line, such as why a run ended."""
        if self._show:
            self._open()
            self._say(text)

    def close(self) -> None:
        """Take the live line away."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        self._show = False

    def _open(self) -> None:
        if self._console is not None:
            return
        from rich.console import Console  # noqa: PLC0415 - slow, and only for runs that show
        from rich.live import Live  # noqa: PLC0415

        self._console = Console(highlight=False)
        if self._console.is_jupyter:
            self._live = _Cell()
        elif self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    def _of(self, epoch: int) -> str:
        return f"{epoch + 1}/{self.total}" if self.total else f"{epoch + 1}"

    def _text(self, facts: Facts) -> str:
        passed = max(monotonic() - self._began, 1e-9)
        speed = (facts.step - self._first) / passed
        parts = [f"epoch {self._of(facts.epoch)}", f"step {facts.step:,}", f"{speed:,.3g} steps/s"]
        if facts.left is not None and speed:
            parts.append(f"left {clock(facts.left / speed)}")
        parts += [
            f"{name.removeprefix('train/')} {value:.4g}" for name, value in facts.values.items()
        ]
        parts.append(f"data {facts.waited / passed:.0%}")
        return "  ".join(parts)


@final
class _Cell:
    """A line below the cell of a notebook that changes; that of rich needs widgets."""

    def __init__(self) -> None:
        shown = needed("run", "ipython", "IPython.display")  # notebooks have it
        self._handle: Any = shown.display({"text/plain": ""}, raw=True, display_id=True)

    def update(self, text: str, *, refresh: bool) -> None:
        """Change the line."""
        del refresh
        self._handle.update({"text/plain": text}, raw=True)

    def stop(self) -> None:
        """Leave it empty."""
        self._handle.update({"text/plain": ""}, raw=True)


def clock(seconds: float) -> str:
    """Return a time to read.

    >>> clock(7.25), clock(75), clock(7384)
    ('7.2 s', '1:15', '2:03:04')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
