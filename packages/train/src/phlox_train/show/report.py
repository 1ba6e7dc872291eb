"""One page about runs, which needs no network: curves, differences, best values."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from .view import POINTS, View

_MARK: Final = "/*DATA*/"
_ELSEWHERE: Final = frozenset(("state", "step", "better"))  # what the page says itself


def write_report(views: Sequence[View], path: Path, points: int = POINTS) -> Path:
    """Write the page of runs, each of whose curves has at most so many points.

    Raises:
        OSError: where it cannot be written.
        RunError: for a log that is damaged.
    """
    for view in views:
        view.read()
    text = json.dumps([_told(view, points) for view in views], separators=(",", ":"))
    page = files("phlox_train.show").joinpath("report.html").read_text(encoding="utf-8")
    # In a script element a tag would end the data.
    whole = page.replace(_MARK, text.replace("<", "\\u003c"))
    path.write_text(whole, encoding="utf-8")
    return path


def _told(view: View, points: int) -> dict[str, Any]:
    card = dict(view.card)
    return {
        "name": view.name,
        "state": view.state,
        "reason": card.pop("reason", ""),
        "step": view.step,
        "epoch": view.epoch,
        "seconds": view.seconds,
        "began": card.get("began", ""),
        "config": flat(view.config),
        "environment": flat({k: v for k, v in card.items() if k not in _ELSEWHERE}),
        "best": {name: _top(view, name) for name in view.curves},
        "curves": {name: _columns(view.curves[name].thinned(points)) for name in view.curves},
    }


def _columns(table: Any) -> dict[str, list[Any]]:
    """Columns as JSON has them, which knows no NaN."""
    steps, epochs, seconds, values = table.T.tolist()
    return {
        "step": list(map(int, steps)),
        "epoch": list(map(int, epochs)),
        "time": seconds,
        "value": list(map(_short, values)),
    }


def _top(view: View, name: str) -> dict[str, Any]:
    top = view.best(name)
    return {**top._asdict(), "value": _short(top.value)}


def _short(value: float) -> float | None:
    return float(f"{value:.7g}") if math.isfinite(value) else None


def flat(tree: Any, path: str = "") -> dict[str, str]:
    """Return the leaves of a tree as text, by their places.

    >>> flat({"model": {"kind": "Net", "width": 3}, "sizes": [1, 2]})
    {'model.kind': 'Net', 'model.width': '3', 'sizes': '[1, 2]'}
    """
    if isinstance(tree, dict):
        found: dict[str, str] = {}
        for key, value in tree.items():
            found |= flat(value, f"{path}.{key}" if path else str(key))
        return found
    return {path: tree if isinstance(tree, str) else json.dumps(tree)}
