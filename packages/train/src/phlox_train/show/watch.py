"""Curves of runs in a terminal while they go on; only files are read, so no run waits for it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.color import Color
from textual.containers import Horizontal, Vertical
from textual.widgets import Footer, OptionList, SelectionList, Static
from textual.widgets.option_list import Option
from textual_plot import AxisFormatter, HiResMode, NumericAxisFormatter, PlotWidget

from phlox_tensor import PhloxError

from ..runs.control import Wish, ask
from ..runs.line import clock
from .view import Top, View, views

COLORS: Final = ("#5b8def", "#e2703a", "#2fb380", "#c65bb5", "#d4b13c", "#35b5ca", "#e05a6d")
_EVERY: Final = 1.0  # seconds between two looks at the files
_AGAIN: Final = 5.0  # seconds in which a key that ends a run has to be pressed again
_SMOOTH: Final = (0.0, 0.6, 0.9, 0.97)


def watch(paths: Sequence[Path]) -> str:
    """Show runs until a key ends it, and return what to print after it.

    Raises:
        ArgumentError: where there is no run.
    """
    found = views(list(paths))
    return Watch(list(paths), found).run() or ""


@final
class _Powers(AxisFormatter):
    """An axis of logarithms that says what they are of."""

    def get_ticks(self, min_: float, max_: float, max_ticks: int = 8) -> list[float]:
        """Return whole powers of ten where there are some, else as on any axis."""
        whole = [float(n) for n in range(math.ceil(min_), math.floor(max_) + 1)]
        return whole[:: -(-len(whole) // max_ticks)] if len(whole) > 1 else _NUMBERS(min_, max_)

    def get_labels_for_ticks(self, ticks: Sequence[float]) -> list[str]:
        """Return the numbers themselves."""
        return [f"{10.0**tick:.3g}" for tick in ticks]


_NUMBERS: Final = NumericAxisFormatter().get_ticks


class Drawn(NamedTuple):
    """A curve as it is drawn: thinned, with its last and its best value."""

    view: View
    name: str
    table: NDArray[np.float64]
    last: float
    top: Top

    @property
    def split(self) -> str:
        """Which data the values are of."""
        return self.name.rpartition("/")[0]


@final
class Watch(App[str]):
    """The screen: runs and curves on the left, a plot of the chosen curve on the right."""

    CSS = """
    #side { width: 36; }
    SelectionList, OptionList { border: round $panel; border-title-color: $text-muted; }
    SelectionList { max-height: 50%; }
    SelectionList:focus, OptionList:focus { border: round $accent; }
    OptionList { height: 1fr; }
    #note { height: auto; max-height: 12; padding: 0 2; }
    PlotWidget { height: 1fr; border: round $panel; border-title-color: $text; }
    """
    BINDINGS: ClassVar[list[Any]] = [
        Binding("l", "turn('log')", "log scale"),
        Binding("m", "smooth", "smoothing"),
        Binding("t", "turn('time')", "steps/time"),
        Binding("s", "ask('save')", "save"),
        Binding("e", "ask('end')", "end after the epoch"),
        Binding("k", "ask('stop')", "stop now"),
        Binding("q", "quit", "leave"),
    ]
    TITLE = "phlox watch"
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, paths: list[Path], found: list[View]) -> None:
        """Hold the runs that there are; later ones in the folders come in by themselves."""
        super().__init__()
        self._paths, self._views = paths, found
        self._hidden: set[Path] = set()
        self._places: dict[Path, int] = {}  # in the order of their colors
        self._set = {"log": False, "time": False}
        self._share = 0.0
        self._key = "loss"
        self._pressed: tuple[Wish, Path, float] = ("save", Path(), 0.0)
        self._drawn: dict[tuple[Path, str, int], Drawn] = {}
        self._trouble = ""
        self._reading = asyncio.Lock()

    def compose(self) -> ComposeResult:
        """Yield the parts of the screen."""
        with Horizontal():
            with Vertical(id="side"):
                yield SelectionList[Path](id="runs")
                yield OptionList(id="curves")
            with Vertical():
                yield PlotWidget(id="plot", allow_pan_and_zoom=True)
                yield Static(id="note")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to look at the files."""
        self.query_one("#runs").border_title = "runs (space: show)"
        self.query_one("#curves").border_title = "curves"
        self.query_one("#curves").focus()
        self._look()
        self.set_interval(_EVERY, self._look)

    def _look(self) -> None:
        self.run_worker(self._looked())

    async def _looked(self) -> None:
        """Read in a thread: a log of many rows must not hold the keys up."""
        if self._reading.locked():
            return
        async with self._reading:
            await asyncio.to_thread(self._read)
        if self.query("#runs"):  # the screen may be gone meanwhile
            self._show()

    def _read(self) -> None:
        """Read what came since, and prepare what is drawn: it takes long for many rows."""
        try:
            known = {view.folder: view for view in self._views}
            self._views = [known.get(view.folder, view) for view in views(self._paths)]
            for view in self._views:
                view.read()
            self._trouble = ""
        except (PhloxError, OSError) as error:  # such as a log that is cut this very moment
            self._trouble = str(error)
        drawn = {}
        for view in self._views:
            for name, curve in view.curves.items():
                if key_of(name) == self._key:
                    place = view.folder, name, len(curve.values)
                    drawn[place] = self._drawn.get(place) or Drawn(
                        view, name, curve.thinned(), curve.values[-1], view.best(name)
                    )
        self._drawn = drawn

    # What is on the screen

    def _show(self) -> None:
        runs = self.query_one("#runs", SelectionList)
        lines = {
            view.folder: Text.assemble(
                ("━━ ", self._color(view)), f"{view.name}  ", (f"{view.state} {view.step:,}", "dim")
            )
            for view in self._views
        }
        if [*lines] == self._listed():
            for place, text in enumerate(lines.values()):
                runs.replace_option_prompt_at_index(place, text)
        else:  # a run may have come between two others, or be gone
            cursor = self._chosen()
            runs.clear_options()
            runs.add_options((text, at, at not in self._hidden) for at, text in lines.items())
            runs.highlighted = [*lines].index(cursor) if cursor in lines else 0
        runs.styles.height = len(lines) + 2
        curves = self.query_one("#curves", OptionList)
        keys = dict.fromkeys(key_of(name) for view in self._views for name in view.curves)
        order = sorted(keys, key=lambda key: (key.startswith("system/"), key != "loss", key))
        if order != [option.id for option in curves.options]:
            chosen = self._key if self._key in order or not order else order[0]
            curves.clear_options()
            curves.add_options([Option(key, id=key) for key in order])
            curves.highlighted = order.index(chosen) if order else None
        self._draw()

    def _draw(self) -> None:
        plot = self.query_one("#plot", PlotWidget)
        plot.clear()
        log, time = self._set["log"], self._set["time"]
        plot.set_y_formatter(_Powers() if log else NumericAxisFormatter())
        plot.set_xlabel("seconds" if time else "steps")
        scale = ", log scale" if log else ""
        smooth = f", smoothing {self._share:g}" if self._share else ""
        plot.border_title = f"{self._key}{scale}{smooth}"
        lines: dict[View, Text] = {}
        # Those of training are the densest, so others are drawn over them.
        for each in sorted(self._drawn.values(), key=lambda each: each.split != "train"):
            if each.view.folder in self._hidden:
                continue
            x = each.table[:, 2 if time else 0]
            y = smoothed(each.table[:, 3], self._share)
            with np.errstate(divide="ignore", invalid="ignore"):
                y = np.log10(y) if log else y
            color = Color.parse(self._color(each.view))
            style = color.darken(0.25) if each.split == "train" else color.lighten(0.1)
            if np.isfinite(y).any():
                plot.plot(x, y, line_style=style.hex, hires_mode=HiResMode.BRAILLE)
            head = Text.assemble(("━━ ", color.hex), each.view.name)
            text = lines.setdefault(each.view, head).append(f"  {each.split} {each.last:.4g}")
            if each.top.better:
                text.append(f" (best {each.top.value:.4g} at {each.top.step:,})", "dim")
        for view, text in lines.items():
            text.append(f"  epoch {view.epoch + 1}, {clock(view.seconds)}", "dim")
        note = [*lines.values(), *([Text(self._trouble, "red")] if self._trouble else [])]
        self.query_one("#note", Static).update(Text("\n").join(note))

    def _color(self, view: View) -> str:
        place = self._places.setdefault(view.folder, len(self._places))
        return COLORS[place % len(COLORS)]

    def _listed(self) -> list[Path]:
        """The folders of the runs as the screen lists them."""
        runs = self.query_one("#runs", SelectionList)
        return [runs.get_option_at_index(place).value for place in range(runs.option_count)]

    def _chosen(self) -> Path | None:
        """The folder of the run under the cursor."""
        place = self.query_one("#runs", SelectionList).highlighted
        return None if place is None else self._listed()[place]

    # What keys do

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Show another curve."""
        if event.option_list.id == "curves" and event.option_id and event.option_id != self._key:
            self._key = event.option_id
            self._look()

    def on_selection_list_selected_changed(self, event: Any) -> None:
        """Show or hide runs."""
        self._hidden = {*self._listed()} - {*event.selection_list.selected}
        self._draw()

    def action_turn(self, name: str) -> None:
        """Turn the scale or the axis."""
        self._set[name] = not self._set[name]
        self._draw()

    def action_smooth(self) -> None:
        """Take the next share of smoothing."""
        self._share = _SMOOTH[(_SMOOTH.index(self._share) + 1) % len(_SMOOTH)]
        self._draw()

    def action_ask(self, wish: Wish) -> None:
        """Ask the run under the cursor for something; what ends it, only at a second press."""
        folder = self._chosen()
        view = next((view for view in self._views if view.folder == folder), None)
        if view is None:
            self.notify(f"{folder or 'a run'} is gone", severity="warning")
            return
        if view.state != "running":
            self.notify(f"{view.name} is {view.state}", severity="warning")
            return
        told = {"save": "save", "end": "end after its epoch", "stop": "stop after its step"}[wish]
        *last, when = self._pressed
        if wish != "save" and not (last == [wish, folder] and monotonic() < when + _AGAIN):
            self._pressed = (wish, view.folder, monotonic())
            self.notify(f"again, and {view.name} will {told}")
            return
        try:
            ask(view.folder, wish)
        except OSError as error:
            self.notify(f"{view.name} cannot be asked: {error}", severity="error")
        else:
            self.notify(f"{view.name} will {told}")


def key_of(name: str) -> str:
    """Return what a curve is called among those of other splits.

    >>> key_of("valid/loss"), key_of("system/cpu")
    ('loss', 'system/cpu')
    """
    return name if name.startswith("system/") else name.rpartition("/")[2]


def smoothed(values: Any, share: float) -> Any:
    """Return running means, of which each leaves a share to the next; NaN stays NaN.

    >>> smoothed(np.array([1.0, 3.0]), 0.5).round(2).tolist()
    [1.0, 2.33]
    """
    if not share:
        return values
    found, mean, weight = [], 0.0, 0.0
    for value in values.tolist():
        if math.isfinite(value):
            mean, weight = share * mean + (1 - share) * value, share * weight + 1 - share
            found.append(mean / weight)
        else:
            found.append(value)
    return np.array(found)
