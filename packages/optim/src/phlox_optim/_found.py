"""Gradients and the parameters that they belong to."""

from __future__ import annotations

from math import isfinite
from numbers import Real
from typing import Any, Final

from phlox_nn import Module, Param, gradients_of, updates_of
from phlox_tensor import ArgumentError, Float, GradientError, Tensor
from phlox_tensor.capture import Number
from phlox_tensor.names import some

from ._optimizer import AnyGradients

# What to type for several modules under one optimizer.
_ONE_MODULE: Final = (
    "class Both(nn.Module): one: nn.Module; other: nn.Module, then "
    "optimizer.step(0.1, Both(one, other), grads)"
)


def check_rate(lr: object) -> None:
    """Refuse a learning rate that is no finite number, or negative."""
    if type(lr) is Number:
        return
    if not isinstance(lr, float | Real) or isinstance(lr, bool):  # floats are found out faster
        raise ArgumentError(
            "step",
            "the learning rate is no number",
            got=f"{lr!r}" if isinstance(lr, str) else type(lr).__name__,
            expected="a number, then the model, then its gradients",
            hint="optimizer.step(0.1, model, grads)",
        )
    if not isfinite(lr):
        raise ArgumentError(
            "step", "the learning rate is not finite", got=lr, expected="a finite number"
        )
    if lr < 0:
        raise ArgumentError(
            "step",
            "the learning rate is negative",
            got=lr,
            expected="at least 0",
            hint="to go up a function, step down its opposite: (-loss).backward()",
        )


def check_divisor(divide_by: object) -> None:
    """Refuse to divide gradients by what is no finite number, or by 0."""
    if type(divide_by) is Number:
        return
    if not isinstance(divide_by, Real) or not isfinite(divide_by) or divide_by == 0:
        raise ArgumentError(
            "step", "divide_by", got=divide_by, expected="a finite number that is not 0"
        )


def check_module(module: object) -> None:
    """Refuse to step what is no module."""
    if not isinstance(module, Module):
        raise ArgumentError(
            "step",
            "what is stepped is no module",
            got=type(module).__name__,
            expected="a module",
            hint=_ONE_MODULE
            if isinstance(module, dict | list | tuple)
            else "optimizer.step(0.1, model, grads)",
        )


def _checked(module: Module, grads: Any) -> Any:
    """Gradients by leaf, or a dict of them by parameter id."""
    if isinstance(grads, Module):
        try:
            return gradients_of(grads)
        except GradientError as error:
            got, expected = error.got, error.expected
            raise GradientError(
                "step", error.what, got=got, expected=expected, hint=error.hint
            ) from None
    if isinstance(grads, dict):
        odd = [key for key, grad in grads.items() if not isinstance(grad, Tensor)]
        if odd:
            paths = {param.id: path for path, param in module.params().items()}
            raise ArgumentError(
                "step",
                f"the gradient of {paths.get(odd[0], odd[0])} is no tensor",
                got=type(grads[odd[0]]).__name__,
                expected="a Tensor",
                hint="px.asarray(gradient)",
            )
        return grads
    if isinstance(grads, Tensor) or not hasattr(grads, "get"):
        loss = isinstance(grads, Tensor)
        raise ArgumentError(
            "step",
            "no gradients were given",
            got="a tensor, such as a loss" if loss else type(grads).__name__,
            expected="what loss.backward() or px.grad(loss)(model) gave",
            hint="optimizer.step(0.1, model, loss.backward())",
        )
    return grads


def find(
    module: Module, grads: AnyGradients, *, strict: bool
) -> tuple[list[Param], list[Tensor[Float]], bool]:
    """The trained parameters that have a gradient, each once; the gradients; if there is state.

    Gradients are constants of a step: their own history, if any, ends here.

    Raises:
        ArgumentError: for a module or gradients that are none.
        GradientError: for weights as gradients; when ``strict``, and gradients would be
            lost or there is nothing to step, statistics of layers among it, or a weight beside
            those that are stepped can get no gradient where it is.
    """
    check_module(module)
    grads = _checked(module, grads)
    by_id: dict[str, Tensor[Float]] | None = grads if isinstance(grads, dict) else None
    get: Any = grads.get  # type: ignore[union-attr]  # what is none was refused
    params: list[Param] = []
    found: list[Tensor[Float]] = []
    every = dict.fromkeys(module.param_list())
    if strict and by_id is not None:
        known = {param.id for param in every}
        if not by_id.keys() <= known:
            raise _unknown(module, [key for key in by_id if key not in known])
    has_state = left = False
    for param in every:
        if not param.trainable:
            has_state = has_state or param.role == "state"
            continue
        if by_id is not None:
            grad = get(param.id)
        else:
            grad = get(param.value) if param.is_initialized else None
        if grad is not None:
            params.append(param)
            found.append(_constant(grad, param) if grad.device.records else grad)
        elif not param.device.records:
            left = True
    if strict and left and any(param.device.records for param in params):
        raise _left_behind(module, params)
    if strict and not params and not (has_state and updates_of(module, grads).params(module)):
        raise _nothing(module, grads)
    return params, found, has_state


def _left_behind(module: Module, stepped: list[Param]) -> GradientError:
    """Weights on a device that records nothing, such as where ``device=`` was forgotten."""
    known = {id(param) for param in stepped}
    weights = {path: p for path, p in module.params().items() if p.trainable}
    left = [path for path, p in weights.items() if id(p) not in known and not p.device.records]
    device = next(param.device for param in stepped if param.device.records)
    return GradientError(
        "step",
        "weights are on a device that records nothing, and never get a gradient",
        got=f"{some(left)} on {weights[left[0]].device!r}, others on {device!r}",
        expected="one device that records, or weights that are frozen",
        hint=f"model = model.train({device!r}) before the first step; "
        "model = model.freeze(lambda _, param: not param.device.records) to keep them as they are",
    )


def _constant(grad: Tensor[Float], param: Param) -> Tensor[Float]:
    """A gradient without history; one on the parameter's device comes to the one that steps."""
    grad = grad.detach()
    return grad.inner().detach() if grad.device is param.device else grad


def _unknown(module: Module, keys: list[str]) -> GradientError:
    paths = module.params()
    path = next((key for key in keys if key in paths), "weight")
    return GradientError(
        "step",
        "keys of gradients are no ids of the module's parameters",
        got=some(keys),
        expected="ids of parameters",
        hint=f"{{model.params()[{path!r}].id: gradient}}; strict=False ignores others",
    )


def _nothing(module: Module, grads: AnyGradients) -> GradientError:
    trained = [path for path, param in module.params().items() if param.trainable]
    results = [path for path, param in module.params().items() if param.trainable and _made(param)]
    if results:
        return GradientError(
            "step",
            "the parameters are results, not leaves: no gradient stays with them",
            got=f"{some(results)}, computed on {module.params()[results[0]].device!r}",
            expected="leaves, which gradients belong to",
            hint="model = model.train(device) where they were made, and the loss of that model",
        )
    return GradientError(
        "step",
        "no gradient belongs to a trained parameter of the module",
        got="no gradients" if grads == {} else _named(grads),
        expected=f"gradients of {some(trained)}" if trained else "a module with such parameters",
        hint="grads = loss_of(model).backward() with the very model that step gets; "
        "strict=False where a process may own none of it",
    )


def _made(param: Param) -> bool:
    """Whether a parameter is the result of recorded ops."""
    return param.is_initialized and param.device.standing(param.value.primitive) == "result"


def _named(grads: AnyGradients) -> str:
    return f"gradients of {some(list(grads))}" if isinstance(grads, dict) else repr(grads)
