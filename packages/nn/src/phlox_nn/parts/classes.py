"""What the class of a module has to be, found out when it is made; what its constructor gives."""

from __future__ import annotations

from abc import ABCMeta
from dataclasses import MISSING, field, fields
from functools import cached_property
from inspect import Parameter, Signature, get_annotations, signature
from typing import TYPE_CHECKING, Any, Final, final

from phlox_tensor import PhloxError, Tensor, TreeError, tree
from phlox_tensor.arguments import unknown_keyword
from phlox_tensor.no_operand import is_refusal

from ..param.param import Param
from . import fields as _fields
from . import walk as _walk

_CONTAINERS: Final = (dict, list, tuple)


def check_body(cls: type) -> None:
    """Refuse what a class body says that no walk over a module would see."""
    slots = vars(cls).get("__slots__", ())
    if slots:
        names = [slots] if isinstance(slots, str) else list(slots)
        raise TypeError(
            f"[module] {cls.__name__} keeps attributes in slots, which are no fields: got "
            f"{', '.join(names)}\nhint: class {cls.__name__}(nn.Module): without __slots__ and "
            "without @dataclass(slots=True); a module is a dataclass already"
        )
    annotated = get_annotations(cls)
    for name, value in vars(cls).items():
        part = _part_of(value) if name not in annotated else None
        if part is not None:
            kind = type(part).__name__
            raise TypeError(
                f"[module] {cls.__name__}.{name} is of the class, not a field, so it would never "
                f"train or be saved: got a {kind}, expected an annotated field or an attribute\n"
                f"hint: {name}: {_annotation(part)} in the class, or self.{name} = ... in __init__"
            )


def check_attribute(cls: type, name: str, value: Any) -> None:
    """Refuse a part that a class gets once it is made: no module of it has that for a field."""
    hint = next(
        (found[name] for base in cls.__mro__ if name in (found := get_annotations(base))), ""
    )
    part = None if "ClassVar" in str(hint) else _part_of(value)
    if part is not None:
        raise TypeError(
            f"[module] {cls.__name__}.{name} is set on the class, so it would never train or be "
            f"saved: got {type(part).__name__}, expected an attribute of a module\n"
            f"hint: {name}: {_annotation(part)} in the class, or self.{name} = ... in __init__"
        )


@final
class _CachedConstant(cached_property[Any]):
    """A cached property of a module: what it gives is no field, so that it may hold no part."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        found = super().__get__(instance, owner)
        if isinstance(instance, _fields.ModuleNode) and hasattr(instance, "_known"):
            try:
                _fields.fields_of(instance)
            except TreeError:
                vars(instance).pop(str(self.attrname), None)
                raise
        return found


def watch_cached(cls: type) -> None:
    """Let the cached properties of a class refuse to make layers, which no walk would see."""
    for name, value in list(vars(cls).items()):
        if type(value) is cached_property:
            watched = _CachedConstant(value.func)
            watched.__set_name__(cls, name)
            setattr(cls, name, watched)


def check_defaults(cls: type) -> None:
    """Refuse defaults that all modules of a class would share."""
    for each in fields(cls):
        part = _part_of(each.default)
        if part is None or (isinstance(part, _fields.ModuleNode) and not _walk.params(part)):
            continue
        kind = type(part).__name__
        raise TypeError(
            f"[module] all modules of {cls.__name__} would share the default of {each.name}: got "
            f"a {kind}, expected one for each\nhint: {each.name}: {_annotation(part)} = "
            f"dataclasses.field(default_factory=lambda: {_annotation(part)}(...))"
        )


def _annotation(part: Any) -> str:
    if isinstance(part, Tensor):
        return "nn.Param"
    return (
        f"nn.{type(part).__name__}"
        if type(part).__module__.startswith("phlox_nn")
        else (type(part).__name__)
    )


def _part_of(value: Any) -> Any:
    """A module, parameter or tensor that wants a gradient, in an attribute of a class."""
    if isinstance(value, _CONTAINERS):
        leaves = tree.leaves(value, leaf=_fields.PARTS)
        return next((leaf for leaf in leaves if _part_of(leaf) is not None), None)
    if isinstance(value, _fields.ModuleNode | Param):
        return value
    return value if isinstance(value, Tensor) and value.requires_grad else None


def own_fields(cls: type) -> tuple[Any, ...]:
    """The dataclass fields of a class; none before it is one."""
    return fields(cls) if hasattr(cls, "__dataclass_fields__") else ()


def let_required_follow(cls: type) -> None:
    """Take required fields by keyword alone where inherited ones have defaults."""
    inherited = {f.name: f for f in own_fields(cls)}
    if all(_is_required(f) or f.kw_only or not f.init for f in inherited.values()):
        return
    for name, hint in get_annotations(cls).items():
        if name not in inherited and name not in vars(cls) and "ClassVar" not in str(hint):
            setattr(cls, name, field(kw_only=True))


def constructed(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what the constructor of a class of modules makes of its arguments, complete.

    Raises:
        UnknownArgumentError: for one that it does not have.
    """
    try:
        made = ABCMeta.__call__(cls, *args, **kwargs)
    except TypeError as error:
        unknown = unknown_keyword(cls.__name__, signature(cls.__init__), kwargs)
        if unknown is None or isinstance(error, PhloxError):
            raise
        raise unknown from None
    _walk.complete(made)
    return made


def _is_required(given: Any) -> bool:
    return given.default is MISSING and given.default_factory is MISSING


class ModuleType(ABCMeta):
    """Lets layers be made from their config, and completes what constructors return."""

    if not TYPE_CHECKING:  # checkers read the generated constructors, or the fields

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            """Return a module; that of a layer takes the settings of its config, and a device."""
            config = vars(cls).get("_config")
            if config is None:
                return constructed(cls, args, kwargs)
            device = kwargs.pop("device", None)
            return config(*args, **kwargs).init(device)

        def __setattr__(cls, name: str, value: Any) -> None:
            if "_complete" in vars(cls):
                check_attribute(cls, name, value)
            super().__setattr__(name, value)

    def __dir__(cls) -> list[str]:
        """List what ``help`` of the class tells of: not what is there to be refused."""
        return [name for name in super().__dir__() if not is_refusal(cls, name)]

    @property
    def __signature__(cls) -> Signature:
        """What ``help`` and ``inspect.signature`` show."""
        config = vars(cls).get("_config")
        if config is None:
            own = signature(cls.__init__)  # type: ignore[misc]  # of this very class
            return own.replace(parameters=list(own.parameters.values())[1:])
        device = Parameter(
            "device", Parameter.KEYWORD_ONLY, default=None, annotation="Backend | str | None"
        )
        taken = signature(config).parameters.values()
        return Signature([*taken, device], return_annotation=cls.__name__)
