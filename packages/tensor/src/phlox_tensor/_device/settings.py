"""Settings of a device, which tell it from others of its class, and what its constructor takes."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import Parameter, signature
from typing import Any


def require_settings(cls: type, made: Any) -> None:
    """Refuse a device whose settings leave out what it was made of."""
    taken = _taken(cls)
    names = [p.name for p in taken if p.kind is not p.VAR_POSITIONAL]
    missing = names[len(made.settings) :] if len(taken) == len(names) else []
    if missing:
        say = "self.settings = (%s,)" if made.inner is None else "super().__init__(%s)"
        raise TypeError(
            f"[{cls.__name__}] devices that differ in {', '.join(missing)} would be one device\n"
            f"hint: {say % ', '.join(names)}"
        )


def _taken(cls: Any) -> list[Parameter]:
    """What the constructor of a device takes, without self."""
    # Of the class itself, the signature would be the metaclass's.
    found = [*signature(cls.__init__).parameters.values()][1:]
    return [p for p in found if p.kind < p.VAR_KEYWORD]


def of_settings(cls: Any, settings: Sequence[Any]) -> Any:
    """Return the device of a class with these settings."""
    by_keyword = [p.name for p in _taken(cls) if p.kind is p.KEYWORD_ONLY]
    count = max(len(settings) - len(by_keyword), 0)
    return cls(*settings[:count], **dict(zip(by_keyword, settings[count:], strict=False)))
