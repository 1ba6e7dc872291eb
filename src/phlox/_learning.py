"""The tables behind ``phlox layers`` and ``phlox optimizers``."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from phlox_tensor import UnknownNameError

from . import nn, optim
from ._elsewhere import DIFFERENCES, LAYERS, OPTIMIZERS, Difference
from ._table import table

_OF_ALL_OPTIMIZERS = ("decayed", "grad_clipping", "groups")
HEAD = ("name", "settings", "PyTorch", "Burn")
_WIDE = 30  # characters of a cell: four stand side by side on a screen


def config_of(name: str) -> Any:
    """The config of a layer or an optimizer."""
    return getattr(nn if name in LAYERS else optim, f"{name}Config")


def layers() -> list[dict[str, str]]:
    """Return one record for each layer: name, settings, names elsewhere."""
    shown = {name: getattr(nn, name) for name in dir(nn)}
    found = [n for n, v in shown.items() if inspect.isclass(v) and vars(v).get("_config")]
    return [record_of(name, "nn", LAYERS) for name in sorted(found)]


def optimizers() -> list[dict[str, str]]:
    """Return one record for each optimizer: name, settings, names elsewhere."""
    return [record_of(name, "optim", OPTIMIZERS) for name in sorted(OPTIMIZERS)]


def default_of(field: Field[Any]) -> Any:
    """The default of a setting; ``MISSING`` for one that has to be given."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def named(name: str, records: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the records that have a name here, or else in PyTorch or Burn, whatever the case."""
    own = [record for record in records if record["name"].lower() == name.lower()]
    return own or [
        record
        for record in records
        if name.lower() in (record["pytorch"] + ", " + record["burn"]).lower().split(", ")
    ]


def meant(name: str) -> set[str]:
    """Names in what the packages say to type in the place of a name that they lack."""
    found: set[str] = set()
    for package in (nn, optim):
        try:
            getattr(package, name)
        except UnknownNameError as error:
            found.update(re.findall(r"\b(?:nn|optim)\.(\w+)", error.hint or ""))
    return found


def as_page(record: dict[str, str]) -> str:
    """Return all about a layer or an optimizer: settings with what they mean, differences."""
    config = config_of(record["name"])
    meant = {
        k: v
        for c in config.__mro__[::-1]
        for k, v in _attributes(inspect.cleandoc(c.__doc__ or ""))
    }
    lines = [record["name"], f"PyTorch: {record['pytorch']}", f"Burn: {record['burn']}"]
    lines += ["settings:"]
    lines += [f"  {_setting(f)}: {meant[f.name]}" for f in fields(config)]
    differing = [difference(row) for row in DIFFERENCES if row.name == record["name"]]
    if differing:
        lines += ["where something differs:"]
        lines += [
            f"  {what.partition(': ')[2]}: {ours}; PyTorch: {pytorch}; Burn: {burn}; {why}"
            for what, ours, pytorch, burn, why in differing
        ]
    return "\n".join(lines)


def _attributes(text: str) -> Iterator[tuple[str, str]]:
    """What a docstring says of each setting, on one line."""
    said = text.partition("Attributes:\n")[2].partition("\n\n")[0]
    for part in re.split(r"\n(?=    \w+: )", f"\n{said}"):
        name, _, rest = part.strip().partition(": ")
        if rest:
            yield name, " ".join(rest.split())


def as_text(records: list[dict[str, str]]) -> str:
    """Return records as a table for terminals, in which long cells go on below themselves."""
    rows: list[list[str]] = []
    for record in records:
        cells = [wrap(record[key.lower()], _WIDE) or [""] for key in HEAD]
        rows += [list(row) for row in zip_longest(*cells, fillvalue="")]
    return table(HEAD, rows)


def as_json(records: list[dict[str, str]]) -> str:
    """Return records as JSON."""
    return json.dumps(records, indent=2, ensure_ascii=False)


def record_of(name: str, package: str, names: dict[str, tuple[str, str]]) -> dict[str, str]:
    """The record of a layer, an optimizer or a schedule."""
    pytorch, burn = (name if other == "=" else other or "-" for other in names[name])
    shared = _OF_ALL_OPTIMIZERS if package == "optim" else ()
    own = [field for field in fields(config_of(name)) if field.name not in shared]
    settings = ", ".join(map(_setting, own))
    return dict(zip(map(str.lower, HEAD), (name, settings, pytorch, burn), strict=True))


def _setting(field: Field[Any]) -> str:
    value = default_of(field)
    if value is MISSING:
        return field.name
    return f"{field.name}={_shown(value)}"


def _shown(value: Any) -> str:
    """A default, without the settings of a config that is one."""
    return type(value).__name__ if isinstance(value, nn.Config) else repr(value)


def difference(row: Difference) -> list[str]:
    ours = row.ours
    if not ours:
        (field,) = [f for f in fields(config_of(row.name)) if f.name == row.what]
        ours = _shown(default_of(field))
    return [f"{row.name}: {row.what}", ours, row.pytorch, row.burn, row.why]
