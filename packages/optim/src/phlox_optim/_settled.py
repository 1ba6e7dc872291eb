"""Objects whose settings are made once: an assignment to one would be read by nobody."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Never, Self

from phlox_nn.ids import CopiedIds
from phlox_tensor import Backend, RecordError, Tensor, UnknownNameError, tree
from phlox_tensor.capture import is_ours

# Names of optimizers and schedulers of PyTorch -> what to type.
_NAMES: Final[Mapping[str, str]] = {
    "add_param_group": 'optim.GroupsConfig(optim.AdamConfig(), {"head.*": optim.SgdConfig()})',
    "defaults": "optimizer.settings",
    "get_last_lr": "schedule.rate",
    "last_epoch": "schedule.into_record()",
    "load_state_dict": "optimizer.load_record(record)",
    "lr": "the rate is an argument of each step: optimizer.step(0.1, model, grads)",
    "param_groups": 'optim.GroupsConfig(optim.AdamConfig(), {"head.*": optim.SgdConfig()})',
    "state": "optimizer.into_record()",
    "state_dict": "optimizer.into_record()",
    "zero_grad": "grads = loss.backward(): gradients are values, and there is nothing to reset",
}


def no_record(what: str, got: object, expected: object) -> RecordError:
    """Return the error for a record that an object cannot take over."""
    return RecordError("load_record", what, got=got, expected=expected)


def settings_of(value: Any) -> Any:
    """Return a tree of settings, which is equal for what was made alike; others stay themselves."""
    if isinstance(value, tuple | list):
        return type(value), *map(settings_of, value)
    if isinstance(value, dict):
        return dict, *((key, settings_of(item)) for key, item in value.items())
    if isinstance(value, MethodType):
        return value.__func__, settings_of(value.__self__)
    if is_ours(type(value).__module__) and not isinstance(value, Backend | Tensor):
        return type(value), settings_of(tree.attributes_of(value))
    return value


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

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy for the copies of the models in the same ``copy.deepcopy``, if any."""
        made = memo[id(self)] = object.__new__(type(self))
        for name, value in vars(self).items():
            setattr(made, name, deepcopy(value, memo))
        CopiedIds.of(memo).follow(made._rename)
        return made

    def _rename(self, old: str, new: str) -> None:
        """Keep by another id what belongs to a parameter: nothing, unless a class says more."""

    if not TYPE_CHECKING:  # checkers would take any name for one that exists

        def __getattr__(self, name: str) -> Never:
            """Say what a name of PyTorch is here."""
            if name in _NAMES:
                raise UnknownNameError(name, "phlox writes this otherwise", hint=_NAMES[name])
            what = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(what)
