"""The module: a class of typed fields, some of which hold parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    dataclass_transform,
)

from phlox_record import Record, Recorder, recorder_for
from phlox_tensor import Backend, DeviceError, as_device

from . import _records, _walk
from ._param import Param

if TYPE_CHECKING:
    from ._config import Config

Visitor = Callable[[str, Param], object]
Mapper = Callable[[str, Param], Param]


P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class _Forward(Protocol[P, R_co]):
    """A module that can be called."""

    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


# What a class may write itself to change how its modules are made.
_MAKERS = ("__init__", "__new__", "__post_init__", "__setattr__")


class _ModuleType(type):
    """Lets layers be made from their config; says what the constructor takes."""

    if not TYPE_CHECKING:  # checkers read the generated constructors, or the fields

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            config = vars(cls).get("_config")
            if config is None:
                return super().__call__(*args, **kwargs)
            device = kwargs.pop("device", None)
            return config(*args, **kwargs).init(device)

    @property
    def __signature__(cls) -> Signature:
        """What ``help`` and ``inspect.signature`` show."""
        config = vars(cls).get("_config")
        if config is None:
            own = signature(vars(cls).get("__init__", object.__init__))
            return own.replace(parameters=list(own.parameters.values())[1:])
        device = Parameter(
            "device", Parameter.KEYWORD_ONLY, default=None, annotation="Backend | str | None"
        )
        taken = signature(config).parameters.values()
        return Signature([*taken, device], return_annotation=cls.__name__)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
class Module(_walk.Walked, metaclass=_ModuleType):
    """Base of layers and models: typed fields, a generated constructor, no forced ``forward``.

    Any value can be a field: modules, parameters, lists, tuples and dicts of them are walked;
    everything else is a constant. Modules never change: ``map``, ``to_device``, ``load_record``
    return new ones that share what is equal.

    ``class Linear(Module, config=LinearConfig)`` is called with the config's arguments and
    ``device=``: ``Linear(784, 10, device=d)`` is ``LinearConfig(784, 10).init(d)``; its own fields
    are given to ``from_fields``. A subclass of such a layer is called with its fields again.
    """

    _config: ClassVar[type[Config] | None] = None

    def __init_subclass__(cls, config: type[Config] | None = None, **options: Any) -> None:
        """Turn the subclass into a dataclass."""
        super().__init_subclass__(**options)
        cls._config = config
        cls._plain = cls._plain and vars(cls).keys().isdisjoint(_MAKERS)
        dataclass(eq=False, repr=False)(cls)
        cls._names = tuple(f.name for f in fields(cls))  # type: ignore[arg-type]  # it is one now

    def __post_init__(self) -> None:
        """Decide for layers without parameters whether they train, then freeze."""
        _settle(self)
        object.__setattr__(self, "_frozen", True)

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse to change a module that is complete."""
        if getattr(self, "_frozen", False):
            raise AttributeError(
                f"[module] {type(self).__name__} does not change: got an assignment to {name!r}\n"
                f"hint: model = model.replace({name}=...)"
            )
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        """Refuse, as for an assignment."""
        self.__setattr__(name, None)

    @classmethod
    def field_names(cls) -> list[str]:
        """Return the names of the fields in order."""
        return list(cls._names)

    @classmethod
    def from_fields(cls, **values: Any) -> Self:
        """Make the module from its fields, past the config."""
        made: Self = type.__call__(cls, **values)
        return made

    def replace(self, **changes: Any) -> Self:
        """Return the module with some fields changed."""
        values = {name: getattr(self, name) for name in self.field_names()}
        unknown = set(changes) - set(values)
        if unknown:
            raise AttributeError(
                f"[replace] no such field: got {', '.join(sorted(unknown))}, "
                f"expected {', '.join(values)}"
            )
        return type(self).from_fields(**{**values, **changes})

    def __call__(self: _Forward[P, R_co], *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run ``forward``; for type checkers a call takes and gives what ``forward`` does."""
        forward = getattr(self, "forward", None)
        if forward is None:
            raise TypeError(f"{type(self).__name__} has no method 'forward' to call")
        made: R_co = forward(*args, **kwargs)
        return made

    # Walking

    def visit(self, visitor: Visitor) -> None:
        """Call ``visitor(path, param)`` for every parameter, in field order."""
        for path, param in _walk.params(self):
            visitor(path, param)

    def map(self, mapper: Mapper) -> Self:
        """Return the module with ``mapper(path, param)`` in place of every parameter."""
        made: Self = _walk.rebuild(self, mapper)
        return made

    def with_params(self, new: Mapping[str, Param]) -> Self:
        """Return the module with the parameters of ``new``, by id; all others stay."""
        made: Self = _walk.exchanged(self, new)
        return made

    def params(self) -> dict[str, Param]:
        """Return all parameters by path."""
        return dict(_walk.params(self))

    def param_list(self) -> list[Param]:
        """Return all parameters in field order; a shared one at each place."""
        return _walk.param_list(self)

    def num_params(self) -> int:
        """Return the number of trained values; shared parameters count once, state does not."""
        sizes = {p.id: _size(p.shape) for _, p in _walk.params(self) if p.trainable}
        return sum(sizes.values())

    @property
    def devices(self) -> list[Backend]:
        """The devices that parameters live on, each once."""
        return list(dict.fromkeys(p.device for _, p in _walk.params(self)))

    # Devices and modes

    def to_device(self, device: Backend | str) -> Self:
        """Return the module with all tensors on ``device``; parameters are new leaves there."""
        target = as_device(device)
        made: Self = _walk.rebuild(
            self, lambda _, p: p.to_device(target), on_tensor=lambda t: t.to_device(target)
        )
        return made

    def fork(self, device: Backend | str) -> Self:
        """Return the module on ``device`` with parameters that are leaves of their own."""
        target = as_device(device)
        made: Self = _walk.rebuild(
            self,
            lambda _, p: p.moved(lambda v: v.to_device(target), target),
            on_tensor=lambda t: t.to_device(target),
        )
        return made

    def valid(self) -> Self:
        """Return the module for inference: on the inner backend, not training.

        The parameters share their data. On a device that wraps no other it only stops training.
        """

        def lowered(param: Param) -> Param:
            inner = param.device.inner if param.device.records else None
            return param if inner is None else param.moved(lambda v: v.inner(), inner)

        made: Self = _walk.rebuild(
            self,
            lambda _, p: lowered(p),
            on_tensor=lambda t: t.inner() if t.device.records else t,
            on_module=_training(False),
        )
        return made

    def train(self, device: Backend | str) -> Self:
        """Return the module for training on ``device``, which must record.

        Raises:
            DeviceError: when the device does not record.
        """
        target = as_device(device)
        if not target.records:
            raise DeviceError(
                "train",
                "the device does not record",
                got=repr(target),
                expected=f"Autodiff({target!r})",
                hint=f"model.train(Autodiff({target!r}))",
            )
        return self.fork(target).with_training(True)

    def with_training(self, training: bool) -> Self:
        """Return the module, on the same device, in training or in inference."""
        made: Self = _walk.rebuild(self, lambda _, p: p, on_module=_training(training))
        return made

    def no_grad(self) -> Self:
        """Return the module with no parameter trainable."""
        return self.map(lambda _, p: p.with_trainable(False))

    # Records

    def into_record(self) -> dict[str, Record]:
        """Return the parameters as a tree; the tensors are shared, not copied."""
        return _records.into_record(self)

    def load_record(self, record: Record, device: Backend | str | None = None) -> Self:
        """Return the module with the parameters of a record; lazy ones are never initialized.

        Args:
            record: what ``into_record`` gave or a recorder loaded.
            device: where the parameters go; by default the module's own devices.

        Raises:
            RecordError: when the record is of another module: names or shapes differ.
        """
        return _records.load_record(self, record, None if device is None else as_device(device))

    def save_file(self, path: str | Path, recorder: Recorder | None = None) -> Path:
        """Write the parameters to a file and return its path.

        Args:
            path: where to; a recorder adds its extension when it is absent.
            recorder: by default the one that the extension names, in full precision; for a name
                without extension that is ``NamedMsgpackRecorder``.

        Raises:
            RecordError: without a recorder, when the extension names none.
        """
        return (recorder or recorder_for(path)).record(self.into_record(), path)

    def load_file(
        self,
        path: str | Path,
        recorder: Recorder | None = None,
        device: Backend | str | None = None,
    ) -> Self:
        """Return the module with the parameters of a file; recorders as in ``save_file``."""
        reader = recorder or recorder_for(path)
        like = self.into_record() if reader.needs_like else None
        return self.load_record(reader.open(path, like=like), device)

    def __repr__(self) -> str:
        from ._display import tree  # noqa: PLC0415 - only when printed

        return tree(self)


def _size(shape: tuple[int, ...]) -> int:
    count = 1
    for n in shape:
        count *= n
    return count


def _training(training: bool) -> _walk.OnModule:
    def change(module: Module, new: dict[str, Any]) -> dict[str, Any]:
        del module
        return {**new, "training": training} if "training" in new else new

    return change


def _settle(module: Module) -> None:
    """Give ``training`` to the layers that were made without a device.

    Such a layer (dropout) has ``training=None`` until it becomes part of a module with
    parameters: it trains when these live on a device that records.
    """
    open_parts = [m for _, m in _walk.modules(module) if getattr(m, "training", True) is None]
    if not open_parts:
        return
    device = next((p.device for _, p in _walk.params(module)), None)
    if device is None:
        return
    settled = _walk.rebuild(
        {name: getattr(module, name) for name in module.field_names()},
        lambda _, p: p,
        on_module=lambda m, new: (
            {**new, "training": device.records} if getattr(m, "training", True) is None else new
        ),
    )
    for name, value in settled.items():
        object.__setattr__(module, name, value)
