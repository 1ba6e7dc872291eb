"""Objects whose settings are made once: an assignment to one would be read by nobody."""

from __future__ import annotations

from typing import Any, ClassVar


class Settled:
    """Base of optimizers and schedulers, which take no attributes from outside."""

    _hint: ClassVar[str]

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse what nobody would read, such as ``optimizer.lr = 0.1``."""
        if name[0] != "_":
            raise AttributeError(
                f"[{type(self).__name__}] takes no attribute from outside: got an assignment to "
                f"{name!r}\nhint: {self._hint}"
            )
        object.__setattr__(self, name, value)
