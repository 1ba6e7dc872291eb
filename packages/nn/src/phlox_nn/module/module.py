"""The module: a class of typed fields, some of which hold parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import prod
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    dataclass_transform,
)

from phlox_record import Record, Recorder, recorder_for
from phlox_tensor import ArgumentError, Backend, PhloxError, as_device
from phlox_tensor.arguments import RAW
from phlox_tensor.scope import WATCH, run_inside, running_modules

from .. import _elsewhere
from ..ids import new_id
from ..loading import records as _records
from ..loading.meant import branch_of
from ..loading.report import Layout, LoadReport, Migration, Remap
from ..param.leaf import Role
from ..param.param import Param, check_field
from ..parts import copying as _copying
from ..parts import fields as _fields
from ..parts import hidden as _hidden
from ..parts import walk as _walk
from ..parts.classes import (
    ModuleType,
    check_body,
    check_defaults,
    constructed,
    let_required_follow,
    own_fields,
    watch_cached,
)
from ..parts.dropped import kept
from ..parts.training import for_inference, for_training, moved, set_training
from ..settings.config import Config
from ..where import Where, chosen
from .display import printed

Visitor = Callable[[str, Param], object]
Mapper = Callable[[str, Param], Param]
P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class _HasForward(Protocol[P, R_co]):
    """What a call looks at, so that it is typed as ``forward`` is."""

    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


# Not frozen to checkers: a constructor of one's own assigns. At run time nothing does later.
@dataclass_transform(eq_default=False, field_specifiers=(field,))
class Module(_fields.ModuleNode, metaclass=ModuleType):
    """Base of layers and models: fields, a generated constructor, no forced ``forward``.

    The fields of a module are its attributes when its constructor returns. Annotated ones make the
    constructor, in the manner of dataclasses (``field``, ``kw_only=True``, ``__post_init__``); a
    class may write ``__init__`` itself instead, and then its subclasses inherit it.

    Any value can be a field: modules, parameters and tensors are found in whatever containers
    ``phlox_tensor.tree`` knows; everything else is a constant, but for iterators, which are used up
    by going over them, and for what hides parts: errors. Modules never change: ``map``,
    ``to_device``, ``load_record`` return new ones that share what is equal, past constructors.
    Lists and dicts are copied then; change one by ``replace``, since walks may not see it in place.

    ``class Linear(Module, config=LinearConfig)`` is called with the config's arguments and
    ``device=``: ``Linear(784, 10, device=d)`` is ``LinearConfig(784, 10).init(d)``; its own fields
    are given to ``from_fields``. A subclass of such a layer is called with its fields again.

    A class whose parameters changed says ``record_version = 2`` and how a record of version 1
    becomes one of 2: ``migrations = {1: function}``, from entries by their path in the module to
    such entries. Records keep the version; loading runs the migrations one after the other.
    """

    __slots__ = ()

    record_version: ClassVar[int] = 1
    migrations: ClassVar[Mapping[int, Migration]] = {}

    _config: ClassVar[type[Config] | None] = None
    _handwritten: ClassVar[bool] = False
    _complete: ClassVar[bool]  # set when the class is finished: no part may come later

    def __init_subclass__(
        cls,
        config: type[Config] | None = None,
        *,
        kw_only: bool = False,
        init: bool = True,
        **options: Any,
    ) -> None:
        """Turn the subclass into a dataclass.

        Args:
            config: the class of settings that modules are made from.
            kw_only: whether the constructor takes fields by keyword alone.
            init: False tells type checkers that a class inherits a constructor written by hand;
                at run time it is known.
            options: for ``__init_subclass__`` of other bases.

        Raises:
            TypeError: when it adds fields to a class that writes its own constructor, has slots,
                holds modules or parameters that are no fields, or shares them as defaults.
        """
        super().__init_subclass__(**options)
        check_body(cls)
        cls._config = config
        inherits = (cls._handwritten or not init) and "__init__" not in vars(cls)
        cls._handwritten = cls._handwritten or "__init__" in vars(cls)
        before = {f.name for f in own_fields(cls)}
        if not kw_only:
            let_required_follow(cls)
        watch_cached(cls)
        dataclass(eq=False, repr=False, init=not inherits, kw_only=kw_only)(cls)
        check_defaults(cls)
        cls._complete = True
        added = [f.name for f in own_fields(cls) if f.name not in before and f.init]
        if inherits and added:
            raise TypeError(
                f"[module] {cls.__name__} adds fields to a class with an __init__ of its own: got "
                f"{', '.join(added)}\nhint: write __init__ in {cls.__name__} and call "
                "super().__init__() there"
            )

    def __post_init__(self) -> None:
        """Do nothing: a class of yours may define it, with or without calling this one."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse to change a module that is complete."""
        if hasattr(self, "_known"):
            raise AttributeError(
                f"[module] {type(self).__name__} does not change: got an assignment to {name!r}\n"
                f"hint: model = model.replace({name}=...)"
            )
        if name in _OWN:
            raise _hidden.no_field(name, type(self).__name__)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        """Refuse, as for an assignment."""
        self.__setattr__(name, None)

    @classmethod
    def from_fields(cls, **values: Any) -> Self:
        """Make the module from its fields, past the config."""
        return constructed(cls, (), values)

    def field_names(self) -> list[str]:
        """Return the names of the fields in order."""
        return list(self._known.names)

    @kept("model = model.replace(name=part)")
    def replace(self, **changes: Any) -> Self:
        """Return the module with some fields changed; its constructor is not called.

        Raises:
            AttributeError: when there is no such field.
        """
        values = _fields.fields_of(self)
        unknown = set(changes) - set(values)
        if unknown:
            raise AttributeError(
                f"[replace] no such field: got {', '.join(sorted(unknown))}, "
                f"expected {', '.join(values)}"
            )
        for name, value in changes.items():
            check_field(name, values[name], value)
        return _walk.remade(self, {**values, **changes})

    if TYPE_CHECKING:

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            """Compute; a class of yours defines it, with a signature that calls then have."""

    def __call__(self: _HasForward[P, R_co], /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run ``forward``."""
        try:
            forward = self.forward
        except AttributeError:
            if hasattr(type(self), "forward"):
                raise
            raise _elsewhere.no_forward(self) from None
        if WATCH.count:  # somebody asks which module an op belongs to
            path = _walk.place_of(self, running_modules())
            return run_inside(self, path, partial(forward, *args, **kwargs))
        try:
            return forward(*args, **kwargs)
        except RAW as error:
            own = type(self).__module__.startswith("phlox_nn.") and not isinstance(
                error, PhloxError
            )
            wrong = _elsewhere.odd_call(self, args, kwargs) if own else None
            _walk.name_place(self, wrong or error)
            if wrong is None:
                raise
            raise wrong from error

    # Copies and pickles

    def __copy__(self) -> Self:
        return self  # which never changes

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return another module: its parameters have ids of their own, ties are kept inside.

        An optimizer that is copied with it, ``copy.deepcopy((model, optimizer))``, goes on with it.
        """
        return _copying.copied(self, memo)

    def __reduce__(self) -> Any:
        """Pickle by fields; loading calls no constructor of the class."""
        return _copying.reduced(self)

    # Walking

    def visit(self, visitor: Visitor) -> None:
        """Call ``visitor(path, param)`` for every parameter, in field order."""
        for path, param in _walk.params(self):
            _walk.called("visit", visitor, path, param)

    @kept("model = model.map(function)")
    def map(self, mapper: Mapper) -> Self:
        """Return the module with ``mapper(path, param)`` in place of every parameter."""
        return _walk.mapped(self, mapper)

    def with_params(self, new: Mapping[str, Param]) -> Self:
        """Return the module with the parameters of ``new``, by id; all others stay.

        Raises:
            ArgumentError: for a key that is no id, and a value that is no parameter of the shape.
        """
        return _walk.with_params_by_id(self, new)

    def params(
        self, *, trainable: bool | None = None, role: Role | None = None
    ) -> dict[str, Param]:
        """Return the parameters by path: all, or those trained or not, or those of a role.

        Raises:
            ArgumentError: when two that are not the same object have the same id.
        """
        _walk.by_id(self)
        return {
            path: param
            for path, param in _walk.params(self)
            if trainable in (None, param.trainable) and role in (None, param.role)
        }

    def param_list(self) -> list[Param]:
        """Return all parameters in field order; a shared one at each place.

        Raises:
            ArgumentError: when two that are not the same object have the same id.
        """
        _walk.by_id(self)
        return _walk.listed(self)

    def num_params(self, *, trainable: bool | None = None) -> int:
        """Return the number of values in weights, frozen ones included; state does not count.

        Shared parameters count once. ``trainable=True`` counts those that are trained.
        """
        weights = self.params(trainable=trainable, role="weight").values()
        return sum(prod(p.shape) for p in {id(p): p for p in weights}.values())

    @property
    def devices(self) -> list[Backend]:
        """The devices that parameters live on, each once."""
        return list(dict.fromkeys(p.device for _, p in _walk.params(self)))

    def path(self, path: str) -> Any:
        """Return what is at a path, ``model.path("layers.3")``, or raise ArgumentError."""
        return _walk.part_at(self, path)

    # Freezing

    @kept("model = model.freeze()")
    def freeze(self, *where: Where) -> Self:
        """Return another module, whose weights are not trained: those ``where`` says, else all.

        Running statistics keep moving; what is neither trained nor moved is ``valid()``.

        Args:
            where: paths of parameters or modules, in which ``*`` stands for anything
                (``"encoder.*"``), or functions of path and parameter.

        Raises:
            ArgumentError: when a path or function fits no weight; for what is neither of them.
        """
        return self._with_trainable(where, False)

    @kept("model = model.unfreeze()")
    def unfreeze(self, *where: Where) -> Self:
        """Return the module with weights that are trained again; see ``freeze``."""
        return self._with_trainable(where, True)

    @kept("model = model.no_grad()")
    def no_grad(self) -> Self:
        """Return the module with all weights frozen: ``freeze()``."""
        return self.freeze()

    def _with_trainable(self, where: tuple[Where, ...], trainable: bool) -> Self:
        weights = self.params(role="weight")
        found = chosen("unfreeze" if trainable else "freeze", where, weights)
        ids = {id(weights[path]) for path in found}
        return self.map(lambda _, p: p.with_trainable(trainable) if id(p) in ids else p)

    # Devices and modes

    @kept("model = model.to_device(device)")
    def to_device(self, device: Backend | str) -> Self:
        """Return another module with all tensors on ``device``; parameters are new leaves there.

        On a device that records, where it was on none, it is in training, as if made there.
        """
        target = as_device(device)
        return moved(self, lambda _, p: p.to_device(target), target)

    @kept("other = model.fork(device)")
    def fork(self, device: Backend | str) -> Self:
        """Return a copy on ``device`` that trains by itself: its parameters have ids of their own.

        Parameters that are shared inside the module are shared inside the copy.
        """
        target = as_device(device)
        return moved(
            self, lambda _, p: p.moved(lambda v: v.to_device(target), target, id=new_id()), target
        )

    @kept("model = model.valid()")
    def valid(self) -> Self:
        """Return the module for inference: on the device without its recording, not training.

        The parameters share their data. On a device that records nothing it only stops training.
        """
        return for_inference(self)

    @kept("model = model.train(device)")
    def train(self, device: Backend | str | None = None) -> Self:
        """Return the module for training on ``device``, which must record.

        Raises:
            DeviceError: when the device does not record, or none is given.
        """
        _elsewhere.check_device(device)
        return for_training(self, as_device(device))

    @kept("model = model.with_training(True)")
    def with_training(self, training: bool) -> Self:
        """Return the module, on the same device, in training or in inference.

        Raises:
            ArgumentError: for anything but True and False.
        """
        if type(training) is not bool:
            raise ArgumentError(
                "with_training", "not a bool", got=repr(training), expected="True or False"
            )
        return _walk.changed(self, on_fields=set_training(training))

    # Records

    def into_record(self, *, layout: Layout = "phlox") -> dict[str, Record]:
        """Return the parameters as a tree; the tensors are shared, not copied.

        A parameter at two places is one entry. With ``layout="pytorch"`` the tree is that of the
        ``state_dict`` of the same layers in PyTorch: the weights of linear maps are transposed.
        """
        return _records.into_record(self, layout)

    @kept("model = model.load_record(record)")
    def load_record(
        self,
        record: Record | Mapping[str, Any],
        device: Backend | str | None = None,
        *,
        partial: bool = False,
        remap: Remap | None = None,
        layout: Layout | None = None,
    ) -> Self:
        r"""Return the module with the parameters of a record: another one, this one stays as it is.

        Parameters that are lazy are never initialized.

        Args:
            record: what ``into_record`` gave or a recorder loaded or opened; or arrays by path.
            device: where the parameters go; by default the module's own devices.
            partial: leave what the record lacks as it is, and let go what the module lacks.
            remap: patterns (``re``) of names in the record and what they become, one after the
                other; None leaves out what fits: ``{r"^bert\.": "", r"position_ids$": None}``.
            layout: ``"pytorch"`` for the ``state_dict`` of such layers in PyTorch, ``"phlox"`` for
                ours. By default what the record says: its own for tensors of PyTorch and of its
                files, else ours.

        Raises:
            RecordError: when the record is of another module: names or shapes differ, or nothing
                fits; when a pattern fits no name; when no migration leads from its version.
        """
        target = None if device is None else as_device(device)
        return _records.load_record(
            self, record, target, partial=partial, remap=remap, layout=layout
        )

    def load_report(
        self, record: Record, *, remap: Remap | None = None, layout: Layout | None = None
    ) -> LoadReport:
        """Return what ``load_record`` would apply, miss and not use; nothing is loaded."""
        return _records.load_report(self, record, remap, layout)

    def save_file(self, path: str | Path, recorder: Recorder | None = None) -> Path:
        """Write the parameters to a file and return its path.

        Args:
            path: where to; a recorder adds its extension when it is absent.
            recorder: by default the one that the extension names, for a name without extension
                ``NamedMsgpackRecorder``; element types stay as they are.

        Raises:
            RecordError: without a recorder, when the extension names none.
        """
        return (recorder or recorder_for(path)).record(self.into_record(), path)

    @kept("model = model.load_file(path)")
    def load_file(
        self,
        path: str | Path,
        recorder: Recorder | None = None,
        device: Backend | str | None = None,
        *,
        at: str | None = None,
        partial: bool = False,
        remap: Remap | None = None,
        layout: Layout | None = None,
    ) -> Self:
        """Return the module with the parameters of a file: another one, this one stays as it is.

        Recorders are chosen as in ``save_file``, the rest is as in ``load_record``.

        Args:
            path: of the file.
            recorder: by default the one that the extension names.
            device: where the parameters go; by default the module's own devices.
            at: where in the file they are, such as ``"state_dict"``; by default they are all of it.
            partial: leave what the file lacks as it is, and let go what the module lacks.
            remap: patterns of names in the file and what they become.
            layout: ``"pytorch"`` or ``"phlox"``; by default that of files of PyTorch is PyTorch's.

        Raises:
            FileNotFoundError: there is no such file.
            RecordError: the file is no record, or of another module; a file of another program
                does not say its layout, and would load in both.
        """
        reader = recorder or recorder_for(path)
        like = self.into_record() if reader.needs_like else None
        record = reader.open(path, like=like)
        if at is not None:
            record = branch_of(record, at)
        target = None if device is None else as_device(device)
        return _records.load_record(
            self,
            record,
            target,
            partial=partial,
            remap=remap,
            layout=layout,
            file_at=() if at is None else (at,),
        )

    def __repr__(self) -> str:
        return printed(self)


# Names that no field may have, since it would hide them; hints at other names may be hidden.
_OWN: Final = {name for name in vars(Module) if name[0] != "_"} | {
    name for name in _fields.ModuleNode.__slots__ if name[:2] != "__"
}
_elsewhere.install(Module)
