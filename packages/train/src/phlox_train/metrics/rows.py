"""All metrics by name: the classes over ``Row`` that are no base of others."""

from __future__ import annotations

from typing import Final

from . import (
    clusters,
    counts,
    curves,
    detection,
    features,
    images,
    likelihood,
    moments,
    orders,
    ranking,
    regression,
    signals,
    text,
)
from .row import Row

MODULES: Final = (
    clusters,
    counts,
    curves,
    detection,
    features,
    images,
    likelihood,
    moments,
    orders,
    ranking,
    regression,
    signals,
    text,
)


def _found() -> dict[str, type[Row]]:
    each = [kind for module in MODULES for kind in vars(module).values()]
    rows = [kind for kind in each if isinstance(kind, type) and issubclass(kind, Row)]
    own = {kind.__name__: kind for kind in rows if not kind.__subclasses__()}
    return dict(sorted(own.items(), key=lambda item: item[0].lower()))


ROWS: Final = _found()
