"""L-BFGS: steps from the whole loss, which it evaluates itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from math import isfinite, prod
from typing import Any, Literal, NamedTuple, final

from phlox_nn import Module, Param, updates_of
from phlox_record import Record
from phlox_tensor import (
    ArgumentError,
    Float,
    GradientError,
    Tensor,
    WrongTypeError,
    concat,
)
from phlox_tensor.arguments import accepts

from ._checked import CheckedConfig
from ._dropped import LastStep
from ._found import check_module, check_rate, find
from ._line_search import Trial, strong_wolfe
from ._optimizer import M
from ._settled import Settled, no_record
from ._state import moved

_KEEP = (
    "model, loss = optimizer.step(1.0, model, loss_of)",
    "; config.init() makes an optimizer that starts at one model again",
)
_CURVED = 1e-10  # the least curvature along a step that is remembered, as in minFunc


class LbfgsConfig(CheckedConfig):
    """Settings of ``Lbfgs``.

    Attributes:
        max_iterations: directions tried in one step.
        max_evaluations: of the loss in one step, about; None for 5 / 4 of the iterations.
        tolerance_grad: largest gradient at which a step ends.
        tolerance_change: least change of parameters or loss at which it goes on.
        history: number of steps that the curvature is made of.
        line_search: how far to go: ``"strong_wolfe"`` looks, None goes by the learning rate.
    """

    _not_inside_hint = (
        "it calls the loss many times in a step of the whole module: "
        "model, loss = optim.LbfgsConfig().init().step(1.0, model, loss_of)"
    )
    _: KW_ONLY
    max_iterations: int = 20
    max_evaluations: int | None = None
    tolerance_grad: float = 1e-7
    tolerance_change: float = 1e-9
    history: int = 100
    line_search: Literal["strong_wolfe"] | None = None

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("max_iterations", self.max_iterations > 0, "at least 1")
        fits = self.max_evaluations is None or self.max_evaluations > 0
        self.require("max_evaluations", fits, "at least 1, or None")
        self.require("history", self.history > 0, "at least 1")
        for name in ("tolerance_grad", "tolerance_change"):
            self.require(name, getattr(self, name) >= 0, ">= 0")

    def init(self) -> Lbfgs:
        """Return the optimizer."""
        return Lbfgs(self)


class _Memory(NamedTuple):
    """What one step leaves to the next; vectors hold all parameters one after the other."""

    iterations: int
    evaluations: int
    direction: Tensor[Float]
    length: float
    last: Tensor[Float]  # the gradient that the direction was made of
    scale: float
    changes: tuple[Tensor[Float], ...]  # of the gradient
    steps: tuple[Tensor[Float], ...]  # of the parameters


class _Evaluation(NamedTuple):
    loss: float
    grad: Tensor[Float]


@final
class Lbfgs(Settled):
    """Quasi-Newton steps by the curvature seen in the last ones.

    All trained parameters are one vector, on one device and of one type. It is for losses without
    noise: whole data, no dropout.

    ``step`` and ``load_record`` change the optimizer itself.
    Liu and Nocedal, 1989, https://doi.org/10.1007/BF01589116

    Example:
        >>> import phlox_nn as nn, phlox_optim as optim, phlox_tensor as pt
        >>> from phlox import Autodiff
        >>> model = nn.Linear(1, 1, device=Autodiff("numpy"))
        >>> x = pt.asarray([[0.0], [1.0]], device="numpy")
        >>> loss_of = lambda model: (model(x) - 3.0 * x - 1.0).square().sum()
        >>> optimizer = optim.LbfgsConfig(line_search="strong_wolfe").init()
        >>> model, loss = optimizer.step(1.0, model, loss_of)
        >>> round(model.weight.value.item(), 3)
        3.0
    """

    _hint = "optim.LbfgsConfig(...).init(): settings belong to the config"
    _not_inside_hint = LbfgsConfig._not_inside_hint

    def __init__(self, config: LbfgsConfig | None = None) -> None:
        """Take the settings.

        Raises:
            WrongTypeError: for what is no config, such as a learning rate.
        """
        if not isinstance(config, LbfgsConfig | None):
            raise WrongTypeError(
                "Lbfgs",
                "it is made of its config alone",
                got=type(config).__name__,
                expected="LbfgsConfig",
                hint="optim.LbfgsConfig().init(), then optimizer.step(1.0, model, loss_of)",
            )
        self._config = config or LbfgsConfig()
        self._memory: _Memory | None = None
        self._last_step = LastStep()
        self._owners: tuple[str, ...] = ()  # ids of the parameters that it was made of

    def step(self, lr: float, module: M, loss_of: Callable[[M], Tensor[Float]]) -> tuple[M, float]:
        """Return the module after a step of several iterations, and the loss before it.

        Args:
            lr: the length of a step, 1 as a rule; the first is shorter.
            module: on a device that records.
            loss_of: the loss of a module like it; called many times.

        Raises:
            GradientError: when the loss depends on no trained parameter, and where it or its
                gradient is not finite; module and optimizer stay as they were. When the last step
                was of this very model, and nobody kept what it gave.
            ArgumentError: when parameters are on several devices or of several types.
            WrongTypeError: when ``loss_of`` is no function, or gives no tensor.
        """
        check_rate(lr)
        check_module(module)
        params = _trained(module)
        if params:
            self._last_step.refuse_dropped(params[0], *_KEEP)
        self._refuse_others(params)
        here, updates = self._at(module, params, loss_of)
        before = here.loss
        x = _flat([_inside(p) for p in params])
        kept = self._memory
        if kept is not None:
            self._memory = _Memory(*moved(tuple(kept), x.device))
        try:
            x = self._moved(
                lr, x, here, lambda v: self._at(_with(module, params, v), params, loss_of)[0]
            )
        except GradientError:
            self._memory = kept
            raise
        new = {p.id: p for p in _params_of(params, x)}
        self._last_step.note(params[0], new[params[0].id], keeping=_KEEP[0])
        return module.with_params({**new, **updates}), before

    def _refuse_others(self, params: list[Param]) -> None:
        """Take parameters for those of the memory, if there is none yet."""
        owners = tuple(p.id for p in params)
        size = sum(prod(p.shape) for p in params)
        if self._memory is not None and (
            self._owners not in ((), owners) or self._memory.direction.shape != (size,)
        ):
            raise ArgumentError(
                "step",
                "the curvature in the state is of other parameters",
                got=f"{len(owners)} parameters of {size} numbers",
                expected="the parameters that the optimizer stepped before",
                hint="config.init() makes an optimizer for another module",
            )
        self._owners = owners

    def _rename(self, old: str, new: str) -> None:
        self._owners = tuple([new if id == old else id for id in self._owners])

    def _at(
        self, module: M, params: list[Param], loss_of: Callable[[M], Tensor[Float]]
    ) -> tuple[_Evaluation, dict[str, Param]]:
        """Loss and gradient of a module, and what its state becomes."""
        if not callable(loss_of):
            raise _no_loss("the loss is no function of the module", loss_of)
        if not accepts(loss_of, module):  # a closure of PyTorch takes nothing
            raise _no_loss("the function takes no module", loss_of)
        loss = loss_of(module)
        if not isinstance(loss, Tensor):
            raise _no_loss("the function gives no loss", loss)
        grads = loss.backward()
        owners, found, _ = find(module, grads, strict=True)
        known = {p.id: g for p, g in zip(owners, found, strict=True)}
        like = found[0]
        parts = [known[p.id] if p.id in known else like.zeros(p.shape) for p in params]
        return _Evaluation(float(loss), _flat(parts)), updates_of(module, grads).params(module)

    def _moved(
        self,
        lr: float,
        x: Tensor[Float],
        here: _Evaluation,
        at: Callable[[Tensor[Float]], _Evaluation],
    ) -> Tensor[Float]:
        """The vector of parameters after the iterations of a step."""
        c = self._config
        most = c.max_evaluations or c.max_iterations * 5 // 4
        evaluations = 1
        if _largest(here.grad) <= c.tolerance_grad:
            return x
        for round in range(1, c.max_iterations + 1):
            _refuse_nonfinite(here)
            memory = self._next(here.grad, lr)
            self._memory = memory
            slope = _dot(here.grad, memory.direction)
            if slope > -c.tolerance_change:
                break
            start, used = here, 0
            if c.line_search is not None:
                here, length, used = self._searched(x, here, slope, most - evaluations, at)
                self._memory = memory = memory._replace(length=length)
            x = x + memory.direction * memory.length
            if c.line_search is None and round < c.max_iterations:
                here, used = at(x), 1
            evaluations += used
            far = _largest(memory.direction) * abs(memory.length)
            if (
                evaluations >= most
                or _largest(here.grad) <= c.tolerance_grad
                or far <= c.tolerance_change
                or (round < c.max_iterations and abs(here.loss - start.loss) < c.tolerance_change)
            ):
                break
        _refuse_nonfinite(here)
        assert self._memory is not None
        total = self._memory.evaluations + evaluations
        self._memory = self._memory._replace(evaluations=total)
        return x

    def _searched(
        self,
        x: Tensor[Float],
        here: _Evaluation,
        slope: float,
        most: int,
        at: Callable[[Tensor[Float]], _Evaluation],
    ) -> tuple[_Evaluation, float, int]:
        """Where a line search ends, how far along the direction that is, and what it cost."""
        assert self._memory is not None
        direction = self._memory.direction

        def along(length: float) -> Trial:
            there = at(x + direction * length)
            return Trial(length, there.loss, there.grad, _dot(there.grad, direction))

        start = Trial(0.0, here.loss, here.grad, slope)
        narrow = self._config.tolerance_change / _largest(direction)
        end, used = strong_wolfe(along, start, self._memory.length, most, narrow)
        return _Evaluation(end.loss, end.grad), end.length, used

    def _next(self, grad: Tensor[Float], lr: float) -> _Memory:
        """The memory with the direction from a gradient."""
        old = self._memory
        if old is None:
            length = min(1.0, 1.0 / float(grad.abs().sum())) * lr
            return _Memory(1, 0, -grad, length, grad, 1.0, (), ())
        changes, steps, scale = old.changes, old.steps, old.scale
        change, step = grad - old.last, old.direction * old.length
        curvature = _dot(change, step)
        if curvature > _CURVED:
            changes = (*changes, change)[-self._config.history :]
            steps = (*steps, step)[-self._config.history :]
            scale = curvature / _dot(change, change)
        direction = _two_loops(grad, changes, steps, scale)
        return _Memory(
            old.iterations + 1, old.evaluations, direction, lr, grad, scale, changes, steps
        )

    def into_record(self) -> dict[str, Record]:
        """Return the state as a tree; the tensors are shared, not copied."""
        if self._memory is None:
            return {"rule": "Lbfgs"}
        fields: dict[str, Any] = self._memory._asdict()
        lists = {"changes": list(fields["changes"]), "steps": list(fields["steps"])}
        return {"rule": "Lbfgs", "params": list(self._owners), **fields, **lists}

    def load_record(self, record: Record) -> Lbfgs:
        """Take over the state of a record, and return the optimizer itself.

        Raises:
            RecordError: when the record is not one of L-BFGS.
        """
        known: Any = record if isinstance(record, dict) else {}
        if known.get("rule") != "Lbfgs" or not _is_memory(known):
            raise no_record(
                "not a record of L-BFGS",
                repr(known.get("rule", type(record).__name__)),
                "what optimizer.into_record() gave",
            )
        self._last_step = LastStep()
        self._owners = tuple(known.get("params", ()))  # older records have none
        if len(known) == 1:
            self._memory = None
            return self
        fields = {name: known[name] for name in _Memory._fields}
        lists = {"changes": tuple(fields["changes"]), "steps": tuple(fields["steps"])}
        self._memory = _Memory(**{**fields, **lists})
        return self

    def __repr__(self) -> str:
        done = 0 if self._memory is None else self._memory.iterations
        return f"Lbfgs({self._config!r}, iterations={done})"


def _is_memory(known: dict[str, Any]) -> bool:
    """Whether a record holds what a step can go on from, or nothing yet."""
    if set(known) == {"rule"}:
        return True
    if known.keys() - {"params"} != {"rule", *_Memory._fields}:
        return False
    lists = known["changes"], known["steps"]
    if not all(isinstance(each, list) for each in (*lists, known.get("params", []))):
        return False
    vectors = [known["direction"], known["last"], *lists[0], *lists[1]]
    if not all(isinstance(v, Tensor) and v.ndim == 1 for v in vectors):
        return False
    numbers = all(type(known[name]) in (float, int) for name in ("length", "scale"))
    counts = all(type(known[name]) is int for name in ("iterations", "evaluations"))
    alike = len({v.shape for v in vectors}) == 1 and len(lists[0]) == len(lists[1])
    return numbers and counts and alike


def _refuse_nonfinite(found: _Evaluation) -> None:
    """Refuse to go on from where there is no direction, and to return it."""
    slope = _dot(found.grad, found.grad)
    if not (isfinite(found.loss) and isfinite(slope)):
        raise GradientError(
            "step",
            "the loss or its gradient is not finite",
            got=f"a loss of {found.loss}",
            expected="finite numbers: the module stays as it was",
            hint='a smaller rate, or optim.LbfgsConfig(line_search="strong_wolfe")',
        )


def _no_loss(what: str, given: object) -> WrongTypeError:
    return WrongTypeError(
        "Lbfgs",
        what,
        got=type(given).__name__,
        expected="a function from a module to its loss, which is called many times",
        hint="optimizer.step(1.0, model, lambda model: (model(x) - y).square().mean())",
    )


def _trained(module: Module) -> list[Param]:
    """The trained parameters, each once."""
    params = list({p.id: p for p in module.param_list() if p.trainable}.values())
    forms = {(p.device, p.dtype) for p in params}
    if len(forms) > 1:
        raise ArgumentError(
            "step",
            "parameters do not make one vector",
            got=", ".join(sorted(f"{dtype} on {device!r}" for device, dtype in forms)),
            expected="one device and one element type",
            hint="model = model.to_device(device)",
        )
    return params


def _inside(param: Param) -> Tensor[Float]:
    """The value of a parameter on the device that steps it, as a constant."""
    return param.value.inner().detach() if param.device.records else param.value


def _with(module: M, params: list[Param], x: Tensor[Float]) -> M:
    return module.with_params({p.id: p for p in _params_of(params, x)})


def _params_of(params: list[Param], x: Tensor[Float]) -> list[Param]:
    """The parameters with the values in a vector."""
    made, at = [], 0
    for param in params:
        size = prod(param.shape)
        made.append(param.with_value(x[at : at + size].reshape(param.shape).astype(param.dtype)))
        at += size
    return made


def _flat(tensors: list[Tensor[Float]]) -> Tensor[Float]:
    """One vector, in full precision: products of narrow numbers leave their range."""
    return concat([t.reshape(-1) for t in tensors], axis=0).to_full_precision()


def _two_loops(
    grad: Tensor[Float],
    changes: tuple[Tensor[Float], ...],
    steps: tuple[Tensor[Float], ...],
    scale: float,
) -> Tensor[Float]:
    """Minus the gradient times the inverse curvature. Nocedal and Wright, 2006, algorithm 7.4."""
    q, shares = -grad, []
    pairs = [(y, s, 1.0 / _dot(y, s)) for y, s in zip(changes, steps, strict=True)]
    for y, s, inverse in reversed(pairs):
        share = _dot(s, q) * inverse
        shares.append(share)
        q = q - y * share
    q = q * scale
    for (y, s, inverse), share in zip(pairs, reversed(shares), strict=True):
        q = q + s * (share - _dot(y, q) * inverse)
    return q


def _dot(a: Tensor[Float], b: Tensor[Float]) -> float:
    return float((a * b).sum())


def _largest(x: Tensor[Float]) -> float:
    return float(x.abs().max()) if x.size else 0.0
