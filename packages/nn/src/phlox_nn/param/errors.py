"""What is said about parameters whose gradients are not what they should be."""

from __future__ import annotations

from phlox_tensor import ArgumentError, GradientError


def no_gradient(role: str, *, trainable: bool) -> GradientError:
    """Return the error for a parameter of gradients that has none."""
    if trainable:
        return GradientError(
            "param",
            "no gradient was found for this parameter",
            got="gradients of another model, or of a loss that does not depend on it",
            expected="gradients of the very model that the loss was computed with",
            hint="loss_of(model).backward().of(model)",
        )
    return GradientError(
        "param",
        "no gradient belongs to a parameter that is not trained",
        got="a frozen weight" if role == "weight" else "state",
        expected="a trained weight",
        hint='model = model.unfreeze("...") before grad',
    )


def tracked(role: str) -> GradientError:
    """Return the error for a value with a history, of a parameter that is not trained."""
    frozen = "nn.Param(x.detach(), trainable=False)"
    return GradientError(
        "param",
        "a gradient flows to the value of a parameter that is not trained",
        got="a tracked tensor",
        expected="a constant",
        hint="nn.State(x.detach())" if role == "state" else frozen,
    )


def no_param(path: str, given: object) -> ArgumentError:
    """Return the error for a mapper that gives something else for a parameter."""
    return ArgumentError(
        "map",
        f"{path} becomes no parameter",
        got=type(given).__name__,
        expected="a Param for each",
        hint="model.map(lambda path, param: param.with_value(param.value.detach() * 2))",
    )


def no_tensor(given: object, *, own: bool) -> ArgumentError:
    """Return the error for a parameter of what is no tensor; ``own`` for one of a parameter."""
    return ArgumentError(
        "param",
        "the value is no tensor",
        got="a Param" if own else type(given).__name__,
        expected="a Tensor",
        hint="nn.Param(param.value.detach())" if own else "nn.Param(px.asarray(values))",
    )
