"""What a step and a model refuse to take for something else, and what modules do not share."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import ArgumentError, Autodiff, Cpu, GradientError, Tensor, WrongTypeError, nn, optim

CPU = Cpu()
TRAIN = Autodiff(CPU)
X = px.ones((1, 2), device=CPU)


def loss_of(model: nn.Linear) -> Tensor:
    return model(X).sum()


# Weights are no gradients


@pytest.mark.parametrize("device", [CPU, TRAIN], ids=["plain", "recording"])
def test_a_model_is_not_taken_for_gradients(device: Any) -> None:
    model = nn.Linear(2, 2, device=device)
    other = model.map(lambda _, p: p.with_value(p.value.detach() + 1))
    step = optim.SgdConfig().init().step
    for wrong in (model, other, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        with pytest.raises(
            GradientError, match=r"\[step\] .* holds weights .*Linear with its weight"
        ):
            step(0.5, model, wrong)
        with pytest.raises(GradientError, match="holds weights"):
            nn.gradients_of(wrong)


MADE: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda g: g,
    "mapped": lambda g: g.map(lambda _, p: p.with_value(p.value * 1)),
    "moved": lambda g: g.to_device(CPU),
    "pickled": lambda g: pickle.loads(pickle.dumps(g)),
    "tree": lambda g: px.tree.map(lambda x: x * 1, g),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_the_gradient_of_a_model_stays_one_however_it_is_handled(made: Callable[..., Any]) -> None:
    model = nn.Linear(2, 2, device=CPU)
    after = optim.SgdConfig().init().step(0.5, model, made(px.grad(loss_of)(model)))
    expected = model.weight.value.numpy() - 0.5
    assert np.array_equal(after.weight.value.numpy(), expected)


def test_what_a_step_gives_is_a_model_also_after_a_transform() -> None:
    model = nn.Linear(2, 2, device=TRAIN)
    step = optim.SgdConfig().init().step
    after = step(0.5, model, loss_of(model).backward().of(model))
    with pytest.raises(GradientError, match="holds weights"):
        step(0.5, after, after)
    moved = px.tree.map(lambda w: w * 1.0, model)
    again = step(0.5, moved, loss_of(after).backward().of(after))
    with pytest.raises(GradientError, match="holds weights"):
        step(0.5, again, again)


def test_gradients_that_are_no_module_are_told_how_to_become_one() -> None:
    model = nn.Linear(2, 2, device=TRAIN)
    grads = loss_of(model).backward()
    wrong: Any = grads
    with pytest.raises(ArgumentError, match=r"got Gradients(.|\n)*grads.of\(model\)"):
        nn.gradients_of(wrong)
    assert len(nn.gradients_of(grads.of(model))) == 2


# Arguments of a step


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (lambda m, g: (m, 0.1, g), "the learning rate is no number: got Linear"),
        (lambda m, g: ("0.1", m, g), "got '0.1'"),
        (lambda m, g: (float("nan"), m, g), "not finite: got nan"),
        (lambda m, g: (float("inf"), m, g), "not finite: got inf"),
        (lambda m, g: (-0.1, m, g), r"negative: got -0.1(.|\n)*\(-loss\).backward"),
        (lambda m, g: (0.1, [m, m], g), r"no module: got list(.|\n)*class Both\(nn.Module\)"),
        (lambda m, g: (0.1, {"a": m}, g), r"no module: got dict(.|\n)*class Both\(nn.Module\)"),
        (lambda m, g: (0.1, g, m), "what is stepped is no module: got Gradients"),
        (lambda m, g: (0.1, m, loss_of(m)), r"no gradients.*a loss(.|\n)*loss.backward\(\)"),
        (lambda m, g: (0.1, m, None), "no gradients were given: got NoneType"),
        (lambda m, g: (0.1, m, {m.weight.id: np.ones((2, 2))}), "weight is no tensor.*ndarray"),
    ],
    ids=[
        "order",
        "text",
        "nan",
        "infinity",
        "negative",
        "list",
        "dict",
        "gradients first",
        "loss",
        "none",
        "numpy",
    ],
)
def test_a_step_says_which_argument_is_wrong(
    arguments: Callable[[Any, Any], Any], match: str
) -> None:
    model = nn.Linear(2, 2, device=TRAIN)
    optimizer = optim.SgdConfig().init()
    with pytest.raises(ArgumentError, match=match):
        optimizer.step(*arguments(model, loss_of(model).backward()))
    assert optimizer.steps == 0


@pytest.mark.parametrize("lr", [1, np.float32(0.5), 0.5])
def test_numbers_of_any_type_are_rates(lr: Any) -> None:
    model = nn.Linear(2, 2, device=TRAIN)
    after = optim.SgdConfig().init().step(lr, model, loss_of(model).backward())
    expected = model.weight.value.numpy() - float(lr)
    assert np.allclose(after.weight.value.numpy(), expected)


def test_lbfgs_refuses_a_rate_that_is_none() -> None:
    model = nn.Linear(2, 2, device=TRAIN)
    with pytest.raises(ArgumentError, match="not finite"):
        optim.LbfgsConfig().init().step(float("nan"), model, loss_of)


# Parameters that are results


def test_parameters_that_are_results_say_how_they_become_leaves() -> None:
    layers = [nn.Linear(2, 2, device=TRAIN) for _ in range(3)]
    ensemble = px.tree.map(lambda *weights: px.stack(list(weights)), *layers)
    optimizer = optim.SgdConfig().init()
    with pytest.raises(GradientError, match=r"are results, not leaves(.|\n)*model.train\(device\)"):
        optimizer.step(0.1, ensemble, ensemble.weight.value.sum().backward())
    model = ensemble.train(TRAIN)
    after = optimizer.step(0.1, model, model.weight.value.sum().backward())
    assert after.weight.shape == (3, 2, 2)
    assert optimizer.steps == 1


class _Alone(optim.SimpleOptimizer):
    def step(self, lr: float, tensor: Any, grad: Any, state: Any) -> Any:
        return tensor - grad * lr


class _Triple(optim.SimpleOptimizer):
    def step(self, lr: float, tensor: Any, grad: Any, state: Any) -> Any:
        return tensor - grad * lr, state, state


@pytest.mark.parametrize(
    ("rule", "got"), [(_Alone(), "Tensor"), (_Triple(), r"\(Tensor, NoneType, NoneType\)")]
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_rule_that_gives_no_pair_says_what_to_return(rule: Any, got: str, dtype: str) -> None:
    model = px.tree.map(lambda w: w.astype(dtype), nn.Linear(2, 2, device="cpu")).train(TRAIN)
    match = f"step gives no pair of a tensor and a state: got {got}(.|\n)*return tensor, state"
    with pytest.raises(WrongTypeError, match=match):
        optim.OptimizerAdaptor(rule).step(0.1, model, model.weight.value.sum().backward())


# Frozen


def test_the_way_out_for_a_frozen_model_runs() -> None:
    model = nn.Linear(2, 2, device=TRAIN).freeze()
    with pytest.raises(GradientError, match=r"frozen: model = model.unfreeze\(\)"):
        loss_of(model).backward()
    assert len(loss_of(model.unfreeze()).backward()) == 2


def test_the_gradient_of_another_model_is_not_called_frozen() -> None:
    model, other = nn.Linear(2, 2, device=TRAIN), nn.Linear(2, 2, device=TRAIN)
    found: Any = loss_of(model).backward().of(other)
    with pytest.raises(GradientError, match=r"no gradient was found.*another model"):
        _ = found.weight.value
    frozen: Any = loss_of(model.freeze("bias")).backward().of(model.freeze("bias"))
    with pytest.raises(GradientError, match="a frozen weight"):
        _ = frozen.bias.value


# Lists


class Named(nn.Module):
    lin: nn.Linear
    names: list[str] = field(default_factory=list)
    more: dict[str, list[int]] = field(default_factory=dict)
    pair: tuple[list[int], int] = field(default_factory=lambda: ([1], 2))


@pytest.mark.parametrize(
    "again",
    [
        lambda m: optim.SgdConfig().init().step(0.1, m, loss_of(m.lin).backward()),
        lambda m: m.to_device(CPU),
        lambda m: m.fork(TRAIN),
        lambda m: m.valid(),
        lambda m: m.map(lambda _, p: p.with_value(p.value.detach())),
        lambda m: px.tree.map(lambda w: w, m),
    ],
    ids=["step", "to_device", "fork", "valid", "map", "tree"],
)
def test_a_module_made_of_another_has_lists_of_its_own(again: Callable[[Named], Named]) -> None:
    model = Named(nn.Linear(2, 2, device=TRAIN), ["a"], {"k": [1]})
    after = again(model)
    after.names.append("b")
    after.more["k"].append(2)
    after.pair[0].append(2)
    assert (model.names, model.more, model.pair) == (["a"], {"k": [1]}, ([1], 2))
    third = after.map(lambda _, p: p)
    assert (third.names, third.more, third.pair) == (["a", "b"], {"k": [1, 2]}, ([1, 2], 2))


def test_a_step_in_a_compiled_function_that_no_result_needs_is_refused() -> None:
    device = Autodiff(Cpu())
    model, optimizer = nn.Linear(3, 2, device=device), optim.AdamConfig().init()
    x, cell = px.ones((4, 3), device=device), px.Cell(model)

    def stepped(model: Any, x: Any, *, strict: bool = True) -> Any:
        return optimizer.step(0.1, model, (model(x) ** 2).mean().backward(), strict=strict)

    def dropped(model: Any, x: Any) -> Any:
        stepped(model, x)
        return model(x).detach()

    def on_trial(model: Any, x: Any) -> Any:
        return stepped(model, x)(x).detach()

    def several(model: Any, x: Any) -> Any:
        stepped(model, x, strict=False)
        return model(x).detach()

    def in_a_cell(model: Any, x: Any) -> Any:
        cell.set(stepped(cell.get(), x))
        return model(x).detach()

    def a_part(model: Any, x: Any) -> Any:
        return stepped(model, x).bias.value.detach()

    for _ in range(2):
        with pytest.raises(px.GradientError, match="thrown away inside of a compiled function"):
            px.compile(dropped)(model, x)
    for function in (several, in_a_cell):
        fast = px.compile(function)
        for _ in range(4):
            fast(model, x)
    for function in (on_trial, a_part):  # as written: what the first step gave is gone
        for run in (px.compile(function), function):
            optimizer, fresh = optim.AdamConfig().init(), nn.Linear(3, 2, device=device)
            run(fresh, x)
            with pytest.raises(px.GradientError, match="of this very model"):
                run(fresh, x)
