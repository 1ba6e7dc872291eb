"""Gradients and the parameters that they belong to."""

from __future__ import annotations

from typing import Any

from phlox_nn import Module, Param, gradients_of
from phlox_tensor import Float, GradientError, Tensor

from ._optimizer import AnyGradients
from ._state import some


def find(
    module: Module, grads: AnyGradients, *, strict: bool
) -> tuple[list[Param], list[Tensor[Float]]]:
    """The trained parameters that have a gradient, each once, and the gradients.

    Raises:
        GradientError: when ``strict``, and gradients would be lost or there is nothing to step.
    """
    if isinstance(grads, Module):
        grads = gradients_of(grads)
    by_id: dict[str, Tensor[Float]] | None = grads if isinstance(grads, dict) else None
    by_leaf: Any = grads
    params: list[Param] = []
    found: list[Tensor[Float]] = []
    known = {param.id: param for param in module.param_list()}
    if strict and by_id is not None and not by_id.keys() <= known.keys():
        raise _unknown(module, [key for key in by_id if key not in known])
    for param in known.values():
        if not param.trainable:
            continue
        if by_id is not None:
            grad = by_id.get(param.id)
        else:
            grad = by_leaf.get(param.value) if param.is_initialized else None
        if grad is not None:
            params.append(param)
            found.append(grad)
    if strict and not params:
        raise _nothing(module, grads)
    return params, found


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
    return GradientError(
        "step",
        "no gradient belongs to a trained parameter of the module",
        got="no gradients" if grads == {} else _named(grads),
        expected=f"gradients of {some(trained)}" if trained else "a module with such parameters",
        hint="grads = loss_of(model).backward() with the very model that step gets; "
        "strict=False where a process may own none of it",
    )


def _named(grads: AnyGradients) -> str:
    return f"gradients of {some(list(grads))}" if isinstance(grads, dict) else repr(grads)
